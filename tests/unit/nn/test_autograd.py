"""Models in the hands of torch's own machinery: second derivatives, `torch.compile`."""

import pytest
import torch

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.rewiring import GumbelMPNN
from helpers import small_data


@pytest.mark.parametrize(("name", "norm"), [("gcn", "none"), ("sage", "none"), ("gat", "none"), ("mlp", "batch")])
def test_second_derivatives_are_refused_and_not_silently_wrong(name, norm):
    data = small_data()
    model = backbones[name](6, out_channels=3, hidden_channels=4, num_layers=2, dropout=0.0, norm=norm)
    x = data.x.clone().requires_grad_()
    with pytest.raises(UserError, match="no second derivatives"):
        torch.autograd.grad((model(x, data.edge_index) ** 3).sum(), x, create_graph=True)


def test_an_mlp_has_second_derivatives():
    model = backbones["mlp"](6, out_channels=3, hidden_channels=4, num_layers=2, dropout=0.0).double()
    data = small_data()
    x = data.x[:5].double().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda features: model(features, data.edge_index[:, :0]) ** 3, x)


@pytest.mark.filterwarnings("ignore")
def test_models_can_be_compiled():
    """With breaks in the graph, but with the same results."""
    data = small_data()
    data.train_mask = data.train_mask[:, 0]
    plain = GumbelMPNN(6, out_channels=3, hidden_channels=4, dropout=0.0, num_layers=2).eval()
    compiled = torch.compile(plain, backend="eager")
    out = compiled(data)
    torch.testing.assert_close(out, plain(data))
    (out.sum() + plain.auxiliary_loss(data)).backward()
    assert all(parameter.grad is not None for parameter in plain.parameters())
