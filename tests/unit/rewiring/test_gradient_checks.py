"""Parts of one's own training loop that get no gradient are told, once, and nothing else is."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import gumbel_mpnn as gm
from gumbel_mpnn.rewiring.own_loop import can_look
from gumbel_mpnn.util.errors import DataWarning
from helpers import small_data


class Wrapped(nn.Module):
    """A layer of PyG that is given the weights, or not."""

    def __init__(self, conv, passes_on=True, zeros=False):
        super().__init__()
        self.conv, self.passes_on = conv, passes_on
        self.head = nn.Linear(8, 3)
        if zeros:
            nn.init.zeros_(self.head.weight)

    def forward(self, x, edge_index, edge_weight):
        weights = (edge_weight,) if self.passes_on else ()
        hidden = F.dropout(self.conv(x, edge_index, *weights).relu(), training=self.training)
        return self.head(hidden).log_softmax(-1)


@pytest.fixture
def data():
    data = small_data()
    data.train_mask = data.train_mask[:, 0]
    return data


def steps(model, data, count=3, auxiliary=True):
    """The warnings of each training step, and the losses."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    told, losses = [], []
    for _ in range(count):
        optimizer.zero_grad()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = model(data)
        out = out[0] if isinstance(out, tuple) else out
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        if auxiliary:
            loss = loss + model.auxiliary_loss(data)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        told.append([str(warning.message) for warning in caught if warning.category is DataWarning])
    return told, losses


@pytest.mark.parametrize(
    "model",
    [Wrapped(SAGEConv(6, 8), passes_on=False), Wrapped(GATConv(6, 8)), Wrapped(GCNConv(6, 8), passes_on=False)],
    ids=["sage", "gat", "forgotten"],
)
def test_a_model_that_does_not_react_is_told_at_the_first_call(data, model):
    told, _ = steps(gm.Rewired(model, 6, 3), data)
    assert told[1:] == [[], []]
    (sentence,) = told[0]
    assert sentence.startswith("the output of Wrapped does not react to edge_weight, so no edge can be learned: ")
    assert 'gm.GumbelMPNN(backbone="sage")' in sentence


@pytest.mark.parametrize("zeros", [False, True])
def test_a_model_that_reacts_is_left_alone(data, zeros):
    """A head that starts with zeros has no gradient in the first step."""
    told, _ = steps(gm.Rewired(Wrapped(GCNConv(6, 8), zeros=zeros), 6, 3), data)
    assert told == [[], [], []]


def test_weights_times_zero_are_told_at_the_second_call(data):
    class Zero(Wrapped):
        def forward(self, x, edge_index, edge_weight):
            return super().forward(x, edge_index, 1 + 0 * edge_weight)

    told, _ = steps(gm.Rewired(Zero(GCNConv(6, 8)), 6, 3), data)
    assert list(map(len, told)) == [0, 1, 0]


def test_no_check_while_a_model_is_compiled():
    """A check that reads values would break the compiled graph in two."""

    @torch.compile(backend="eager", fullgraph=True)
    def looked(x):
        return x + 1 if can_look() else x

    assert looked(torch.zeros(())) == 0
    assert can_look()


def test_no_check_in_evaluation_or_without_gradients(data):
    model = gm.Rewired(Wrapped(GCNConv(6, 8), passes_on=False), 6, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.no_grad():
            model(data)
        model.eval()(data)
    assert len(steps(model.train(), data, count=1)[0][0]) == 1


@pytest.mark.parametrize("kind", ["rewired", "gumbel-mpnn"])
def test_beliefs_that_nothing_trains_are_told_once(data, kind):
    def make(**settings):
        if kind == "rewired":
            return gm.Rewired(Wrapped(GCNConv(6, 8)), 6, 3, **settings)
        return gm.GumbelMPNN(in_channels=6, out_channels=3, hidden_channels=8, **settings)

    told, _ = steps(make(), data, auxiliary=False)
    assert told[0] == told[2] == []
    (sentence,) = told[1]
    assert sentence == (
        "the scorer 'class-space' compares class beliefs, but nothing trains the head that predicts them: add"
        ' model.auxiliary_loss(data) to your loss, or use scorer="bilinear"'
    )
    assert steps(make(), data)[0] == [[], [], []]
    assert steps(make(scorer="bilinear"), data, auxiliary=False)[0] == [[], [], []]
