"""A PyG user's own model, rewired in one line."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.rewiring.edge_models import scorers
from helpers import random_edges, small_data


class OwnGCN(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.first, self.second = GCNConv(in_channels, 8), GCNConv(8, out_channels)

    def forward(self, x, edge_index, edge_weight=None):
        return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


@pytest.fixture
def data():
    data = small_data()
    data.train_mask = data.train_mask[:, 0] if data.train_mask.dim() == 2 else data.train_mask
    data.candidate_index = random_edges(data.num_nodes, 30, seed=5)
    return data


def wrapped(data, **changes):
    torch.manual_seed(0)
    return gm.Rewired(OwnGCN(data.num_features, 3), data.num_features, 3, **changes)


@pytest.mark.parametrize("scorer", list(scorers))
def test_one_step_of_a_loop_of_ones_own(data, scorer):
    model = wrapped(data, scorer=scorer)
    out, graph = model(data)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + model.auxiliary_loss(data)
    (loss + gm.regularizers.LabelConsistency(0.05)(out, graph, data)).backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


def test_weights_reach_the_model_as_edge_weight(data):
    model = wrapped(data, evaluation="threshold").eval()
    out, graph = model(data)
    kept = graph.graph.pair_index[:, graph.weight[0] > 0]
    torch.testing.assert_close(out, model.model(data.x, torch.cat([kept, kept.flip(0)], 1)))


def test_evaluation_is_deterministic_and_training_is_not(data):
    model = wrapped(data)
    assert not torch.equal(model(data)[1].weight, model(data)[1].weight)
    model.eval()
    assert torch.equal(model(data)[0], model(data)[0])


def test_its_seed_settles_the_draws_as_that_of_a_gumbel_mpnn(data):
    one, same, other = (gm.Rewired(OwnGCN(6, 3), 6, 3, scorer="mixed", seeds=[seed]) for seed in (7, 7, 8))
    drawn = one(data)[1].weight
    assert torch.equal(drawn, same(data)[1].weight)
    assert not torch.equal(drawn, other(data)[1].weight)
    model = gm.GumbelMPNN(6, out_channels=3, dropout=0.0, scorer="mixed", seeds=[7])
    assert torch.equal(drawn, model(data, return_graph=True)[1].weight)


def test_one_model_has_one_seed(data):
    with pytest.raises(gm.UserError, match="seeds must have one entry per replica, 1, not 2"):
        wrapped(data, seeds=[1, 2])
    with pytest.raises(gm.UserError, match=r"seeds are a list of whole numbers, as \[0\] or range\(3\), not 7"):
        wrapped(data, seeds=7)


def test_it_is_called_as_pygs_models_are(data):
    model, weight = wrapped(data).eval(), torch.rand(data.num_edges)
    listed = Data(x=data.x, edge_index=data.edge_index, edge_weight=weight)
    assert torch.equal(model(data.x, data.edge_index, weight)[0], model(listed)[0])
    assert torch.equal(model(data.x, edge_index=data.edge_index, edge_weight=weight)[0], model(listed)[0])
    assert not torch.equal(model(data.x, data.edge_index)[0], model(listed)[0])
    with pytest.raises(gm.UserError, match="edge_weight needs an edge_index"):
        model(listed, None, weight)


def test_the_learned_graph(data):
    rewired = wrapped(data, scorer="mixed").rewire(data, threshold=0.0)
    assert rewired.edge_index.shape[1] == 2 * gm.PairGraph.of(data).num_pairs
    assert ((rewired.edge_weight > 0) & (rewired.edge_weight < 1)).all()


@pytest.mark.parametrize(
    "change", [{"decoys": 3.0}, {"agreement": 1.0}, {"candidates": "two_hop"}, {"lr": 0.1}], ids=str
)
def test_settings_that_would_have_no_effect_are_refused(data, change):
    with pytest.raises(gm.UserError, match=f"^{next(iter(change))} has no effect"):
        wrapped(data, **change)


def test_a_mean_of_samples_is_refused(data):
    with pytest.raises(gm.UserError, match="expected"):
        wrapped(data, evaluation="mean_of_samples")


def test_it_can_be_pickled_after_use(data, tmp_path):
    model = wrapped(data, scorer="mixed")
    model(data)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(again(data)[0], model(data)[0])


def test_a_failed_rewire_leaves_every_module_in_its_mode(data, monkeypatch):
    def fail(*given):
        raise RuntimeError

    model = wrapped(data, scorer="class-space")
    model.model.first.eval()
    modes = [module.training for module in model.modules()]
    with monkeypatch.context() as patch:
        patch.setattr(model.rewirer.scorer, "forward", fail)
        with pytest.raises(RuntimeError):
            model.rewire(data)
    model.rewire(data)
    assert [module.training for module in model.modules()] == modes


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_is_not_finite_refuses_to_rewire(value):
    """The fault: a graph without edges, as if it had learned that."""
    model = gm.GumbelMPNN(6, out_channels=3, hidden_channels=4)
    with torch.no_grad():
        next(iter(model.backbone.parameters())).fill_(value)
    with pytest.raises(UserError, match=r"of this model has values that are NaN or infinite, .* training diverged"):
        model.rewire(small_data())
