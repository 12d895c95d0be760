"""`GumbelMPNN` and `Rewired` in a loop of one's own: nothing is silently without effect, nor without a gradient."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import gumbel_mpnn as gm
from gumbel_mpnn.rewiring.own_loop import can_look
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.util.errors import DataWarning, UserError
from helpers import changed, random_edges, small_data
from unit.rewiring.test_gumbel_mpnn import model_for


class Wrapped(nn.Module):
    """A layer of PyG that is given the weights, or not."""

    def __init__(self, conv, passes_on=True, zeros=False):
        super().__init__()
        self.conv, self.passes_on = conv, passes_on
        self.head = nn.Linear(8, 3)
        if zeros:
            nn.init.zeros_(self.head.weight)

    def forward(self, x, edge_index, edge_weight=None):
        weights = (edge_weight,) if self.passes_on else ()
        hidden = F.dropout(self.conv(x, edge_index, *weights).relu(), training=self.training)
        return self.head(hidden).log_softmax(-1)


@pytest.fixture
def data():
    data = small_data()
    data.train_mask = data.train_mask[:, 0] if data.train_mask.dim() == 2 else data.train_mask
    data.candidate_index = random_edges(data.num_nodes, 30, seed=5)
    return data


def wrapped(data, **changes):
    torch.manual_seed(0)
    return gm.Rewired(Wrapped(GCNConv(data.num_features, 8)), data.num_features, 3, **changes)


def test_weights_reach_the_model_as_edge_weight(data):
    model = wrapped(data, evaluation="threshold").eval()
    out, graph = model(data)
    kept = graph.graph.pair_index[:, graph.weight[0] > 0]
    torch.testing.assert_close(out, model.backbone.model(data.x, torch.cat([kept, kept.flip(0)], 1)))


def test_its_seed_settles_the_draws_as_that_of_a_gumbel_mpnn(data):
    one, same, other = (gm.Rewired(Wrapped(GCNConv(6, 8)), 6, 3, scorer="mixed", seeds=[seed]) for seed in (7, 7, 8))
    drawn = one(data)[1].weight
    assert torch.equal(drawn, same(data)[1].weight)
    assert not torch.equal(drawn, other(data)[1].weight)
    model = gm.GumbelMPNN(in_channels=6, out_channels=3, dropout=0.0, scorer="mixed", seeds=[7])
    assert torch.equal(drawn, model(data, return_graph=True)[1].weight)


def test_it_is_called_as_pygs_models_are(data):
    model, weight = wrapped(data).eval(), torch.rand(data.num_edges)
    listed = Data(x=data.x, edge_index=data.edge_index, edge_weight=weight)
    assert torch.equal(model(data.x, data.edge_index, weight)[0], model(listed)[0])
    assert torch.equal(model(data.x, edge_index=data.edge_index, edge_weight=weight)[0], model(listed)[0])
    assert not torch.equal(model(data.x, data.edge_index)[0], model(listed)[0])
    with pytest.raises(gm.UserError, match="edge_weight needs an edge_index"):
        model(listed, None, weight)


@pytest.mark.parametrize("beliefs", ["graph", "rewired"])
def test_a_mean_of_samples_and_beliefs_of_the_model_itself(data, beliefs):
    out, graph = wrapped(data, evaluation="mean_of_samples", beliefs=beliefs).eval()(data)
    torch.testing.assert_close(out.exp().sum(-1), torch.ones(data.num_nodes))
    assert torch.equal(8 * graph.weight, (8 * graph.weight).round())


def test_a_model_that_does_not_return_a_tensor_is_refused(data):
    class Several(Wrapped):
        def forward(self, x, edge_index, edge_weight=None):
            return super().forward(x, edge_index, edge_weight), x

    with pytest.raises(gm.UserError, match=r"^Several must return a tensor \[N, C\], not tuple$"):
        gm.Rewired(Several(GCNConv(6, 8)), 6, 3)(data)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_is_not_finite_refuses_to_rewire(value):
    """The fault: a graph without edges, as if it had learned that."""
    model = gm.GumbelMPNN(in_channels=6, out_channels=3, hidden_channels=4)
    with torch.no_grad():
        next(iter(model.backbone.parameters())).fill_(value)
    with pytest.raises(UserError, match=r"of this model has values that are NaN or infinite, .* training diverged"):
        model.rewire(small_data())


MODELS = {"GumbelMPNN": model_for, "Rewired": wrapped}
NO_LABEL = r"needs training nodes with a label .* data\.train_mask has none"
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@each_model
@pytest.mark.parametrize("scorer", list(scorers))
def test_every_parameter_is_trained(make, scorer, data):
    model = make(data, scorer=scorer)
    out = model(data)
    out = out[0] if isinstance(out, tuple) else out
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + model.auxiliary_loss(data)
    assert loss.shape == ()
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_the_auxiliary_loss_is_the_cross_entropy_of_the_beliefs_of_each_replica(data):
    masks = torch.stack([data.train_mask, ~data.train_mask], dim=1)
    for replicas, mask in ((None, data.train_mask), (2, masks)):
        model = model_for(data, scorer="class-space", replicas=replicas).eval()
        logits = model.belief_head(data.x, model.rng)
        expected = [F.cross_entropy(each[own], data.y[own]) for each, own in zip(logits, masks.T, strict=False)]
        found = model.auxiliary_loss(changed(data, train_mask=mask))
        torch.testing.assert_close(
            found, torch.stack(expected).squeeze() if replicas is None else torch.stack(expected)
        )
    assert model_for(data, scorer="bilinear", replicas=2).auxiliary_loss(data).tolist() == [0, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"regularizer": "lc"},
        {"regularizer.weight": 1.0},
        {"prior": 0.1},
        {"samples": 2},
        {"agreement": 1.0},
        {"candidates": "two_hop"},
        {"lr": 0.1},
    ],
    ids=str,
)
def test_settings_that_would_have_no_effect_are_refused(change, data):
    with pytest.raises(gm.UserError, match=f"^{next(iter(change))} has no effect in your own training loop"):
        model_for(data, **change)


@pytest.mark.parametrize(
    ("given", "progress", "tau"),
    [
        ({}, None, 1.0),
        ({}, 1.0, 0.5),
        ({"tau": 0.1}, None, 0.1),
        ({"tau": 0.1}, 1.0, 0.1),
        ({"tau": 2.0, "tau_end": 0.5}, None, 2.0),
        ({"tau": 2.0, "tau_end": 0.5}, 0.5, 1.0),
        ({"tau_end": 0.25}, 0.5, 0.5),
    ],
)
def test_the_temperature_of_a_loop_of_ones_own(given, progress, tau, data):
    """The relaxed weight σ((θ + noise) / τ) tells τ: two models with the same noise differ by it alone."""
    model, one = (model_for(data, hard=False, **options) for options in (given, {"tau": 1.0, "tau_end": 1.0}))
    if progress is not None:
        model.progress = progress
    expected = (weight(one, data).logit() / tau).sigmoid()
    torch.testing.assert_close(weight(model, data), expected, rtol=0, atol=1e-3)


def weight(model, data):
    return model(data, return_graph=True)[1].weight.double()


@pytest.mark.parametrize("share", [100, -0.1, float("nan"), "half", None, torch.tensor(2.0), torch.ones(2)])
def test_progress_is_a_share(share, data):
    model = model_for(data)
    with pytest.raises(gm.UserError, match="progress must lie between 0 and 1, but is"):
        model.progress = share
    assert model.progress == 0.0
    for share in (1, 0.25, torch.tensor(0.5)):
        model.progress = share
        assert model.progress == float(share)


@pytest.mark.parametrize("no_label", [-1, -100])
def test_nodes_without_a_label_are_left_out_of_the_auxiliary_loss(no_label, data):
    """The fault: they were trained as class 0."""
    model = model_for(data, scorer="class-space").eval()
    some = data.train_mask.nonzero().flatten()[::2]
    hidden = changed(data, y=data.y.index_fill(0, some, no_label))
    smaller = changed(data, train_mask=data.train_mask.index_fill(0, some, False))
    assert torch.equal(model.auxiliary_loss(hidden), model.auxiliary_loss(smaller))
    assert not torch.equal(model.auxiliary_loss(hidden), model.auxiliary_loss(data))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda data: {"train_mask": torch.zeros_like(data.train_mask)}, NO_LABEL),
        (lambda data: {"y": torch.full_like(data.y, -1)}, NO_LABEL),
        (
            lambda data: {"y": data.y.float()},
            r"data\.y must be whole numbers of shape \[24\], not torch\.float32 \[24\]",
        ),
        (
            lambda data: {"y": torch.stack([data.y, data.y], 1)},
            r"data\.y must be whole numbers of shape \[24\], not .* \[24, 2\]",
        ),
        (lambda data: {"y": data.y + 1}, "a training node has the label 3, but the output has 3 classes"),
    ],
)
def test_labels_that_cannot_be_trained_on(changes, message, data):
    model = model_for(data, scorer="class-space")
    with pytest.raises(gm.UserError, match=message):
        model.auxiliary_loss(changed(data, **changes(data)))


def test_labels_that_change_in_place_are_seen(data):
    model = model_for(data, scorer="class-space").eval()
    before = model.auxiliary_loss(data)
    data.y[data.train_mask] = 0
    after = model.auxiliary_loss(data)
    assert not torch.equal(before, after)
    data.train_mask[:] = True
    assert not torch.equal(model.auxiliary_loss(data), after)


def test_the_streams_of_a_model_govern_what_is_drawn(data):
    model = model_for(data, hard=False)
    state = model.rng.get_state()
    first = weight(model, data)
    torch.manual_seed(0)
    second = weight(model, data)
    torch.manual_seed(0)
    third = weight(model, data)
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)
    model.rng.set_state(state)
    assert torch.equal(weight(model, data), first)


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
