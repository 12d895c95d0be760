"""`GumbelMPNN` and `Rewired` in a loop of one's own: nothing that is set is silently without effect."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

import gumbel_mpnn as gm
from gumbel_mpnn.config import RewiringSettings, rewiring_settings
from gumbel_mpnn.rewiring.edge_models import scorers
from helpers import changed
from unit.rewiring.test_gumbel_mpnn import data_with_candidates, model_for
from unit.rewiring.test_rewired import wrapped

MODELS = {"GumbelMPNN": model_for, "Rewired": wrapped}
NO_LABEL = r"needs training nodes with a label .* data\.train_mask has none"
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@pytest.fixture
def data():
    data = data_with_candidates()
    data.train_mask = data.train_mask[:, 0] if data.train_mask.dim() == 2 else data.train_mask
    return data


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


def test_the_auxiliary_loss_is_the_cross_entropy_of_the_beliefs(data):
    model = model_for(data, scorer="class-space").eval()
    logits = model.belief_head(data.x, model.rng)[0]
    expected = F.cross_entropy(logits[data.train_mask], data.y[data.train_mask])
    torch.testing.assert_close(model.auxiliary_loss(data), expected)


def test_every_replica_has_its_own_auxiliary_loss(data):
    model = model_for(data, scorer="class-space", replicas=2).eval()
    data.train_mask = torch.stack([data.train_mask, ~data.train_mask], dim=1)
    logits = model.belief_head(data.x, model.rng)
    expected = [F.cross_entropy(logits[r][mask], data.y[mask]) for r, mask in enumerate(data.train_mask.T)]
    torch.testing.assert_close(model.auxiliary_loss(data), torch.stack(expected))
    assert model_for(data, scorer="bilinear", replicas=2).auxiliary_loss(data).tolist() == [0, 0]


@each_model
def test_scorers_without_a_head_need_no_labels(make, data):
    del data.y, data.train_mask
    if make is model_for:
        model = gm.GumbelMPNN(data.num_features, out_channels=3, scorer="bilinear")
    else:
        model = wrapped(data, scorer="bilinear")
    assert model.auxiliary_loss(data).item() == 0
    model = gm.GumbelMPNN(data.num_features, out_channels=3, scorer="class-space", beliefs="graph")
    assert model.auxiliary_loss(data).item() == 0


@each_model
def test_beliefs_without_labels_are_answered_in_one_sentence(make, data):
    model = make(data, scorer="class-space")
    del data.train_mask
    with pytest.raises(gm.UserError, match=r"give it data\.train_mask"):
        model.auxiliary_loss(data)


@each_model
@pytest.mark.parametrize("ask", ["__call__", "rewire", "auxiliary_loss"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: None, "this graph has no features: give it data.x"),
        (lambda x: x.double(), r"the features are torch.float64 .*: give x.to\(torch.float32\)"),
        (lambda x: x[:, 1:], r"the features must have the shape \[N, 6\] for this model, not \[24, 5\]"),
        (lambda x: x.numpy(), r"features are a tensor \[N, 6\] or a Data, not a ndarray"),
    ],
)
def test_features_that_do_not_fit_are_answered_in_one_sentence(make, ask, change, message, data):
    model = make(data, scorer="class-space")
    with pytest.raises(gm.UserError, match=message):
        getattr(model, ask)(changed(data, x=change(data.x), num_nodes=24))


@each_model
@pytest.mark.parametrize("ask", ["__call__", "rewire", "auxiliary_loss"])
def test_sparse_features_are_taken(make, ask, data):
    model = make(data, scorer="class-space").eval()
    sparse, dense = (getattr(model, ask)(changed(data, x=x)) for x in (data.x.to_sparse(), data.x))
    if ask == "rewire":
        sparse, dense = sparse.edge_weight, dense.edge_weight
    elif isinstance(dense, tuple):
        sparse, dense = sparse[0], dense[0]
    assert torch.equal(sparse, dense)


@each_model
@pytest.mark.parametrize(
    "change",
    [
        {"regularizer": "lc"},
        {"regularizer_weight": 1.0},
        {"prior": 0.1},
        {"samples": 2},
        {"agreement": 1.0},
        {"decoys": 3.0},
        {"candidates": "two_hop"},
        {"lr": 0.1},
    ],
    ids=str,
)
def test_settings_that_would_have_no_effect_are_refused(make, change, data):
    with pytest.raises(gm.UserError, match=f"^{next(iter(change))} has no effect in your own training loop"):
        make(data, **change)


@each_model
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
def test_the_temperature_of_a_loop_of_ones_own(make, given, progress, tau, data):
    """The relaxed weight σ((θ + noise) / τ) tells τ: two models with the same noise differ by it alone."""
    model, one = (make(data, hard=False, **options) for options in (given, {"tau": 1.0, "tau_end": 1.0}))
    if progress is not None:
        model.progress = progress
    expected = (weight(one, data).logit() / tau).sigmoid()
    torch.testing.assert_close(weight(model, data), expected, rtol=0, atol=1e-3)


def weight(model, data):
    drawn = model(data, return_graph=True) if isinstance(model, gm.GumbelMPNN) else model(data)
    return drawn[1].weight.double()


def test_progress_starts_at_0():
    assert gm.GumbelMPNN(3, out_channels=2).progress == 0.0
    assert gm.Rewired(GCNConv(3, 2), 3, 2).progress == 0.0


@each_model
@pytest.mark.parametrize("share", [100, -0.1, float("nan"), "half", None, torch.tensor(2.0), torch.ones(2)])
def test_progress_is_a_share(make, share, data):
    model = make(data)
    with pytest.raises(gm.UserError, match="progress must lie between 0 and 1, but is"):
        model.progress = share
    assert model.progress == 0.0
    for share in (1, 0.25, torch.tensor(0.5)):
        model.progress = share
        assert model.progress == float(share)


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [({}, 1.0, 0.5), ({"tau": 0.1}, 0.1, 0.1), ({"tau": 2, "tau_end": 0.1}, 2.0, 0.1), ({"tau_end": 0.2}, 1.0, 0.2)],
)
def test_a_temperature_alone_is_constant(given, first, last):
    settings = rewiring_settings(given)
    assert (settings.tau, settings.tau_end) == (first, last)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"regularizer": "lc"}, "'lc' needs a weight: set rewiring.regularizer_weight"),
        ({"regularizer_weight": 0.5}, "set rewiring.regularizer"),
        ({"agreement": 1.0}, "set rewiring.samples to 2 or more"),
    ],
)
def test_half_a_setting_is_refused(given, message):
    with pytest.raises(gm.UserError, match=message):
        rewiring_settings(given)
    with pytest.raises(gm.UserError, match=message):
        gm.fit(data_with_candidates(), "gumbel-mpnn", settings={"rewiring": given})


def test_switched_off_is_not_half_set():
    off = rewiring_settings({"regularizer": "lc", "regularizer_weight": 0.0})
    assert off == RewiringSettings(regularizer="lc")
    assert rewiring_settings({"regularizer": "none", "regularizer_weight": 0.5}).regularizer == "none"
    assert rewiring_settings({"agreement": 1.0, "samples": 2}).agreement == 1.0


UNLABELLED = pytest.mark.parametrize("no_label", [-1, -100])


@UNLABELLED
@each_model
def test_nodes_without_a_label_are_left_out_of_the_auxiliary_loss(make, no_label, data):
    """The fault: they were trained as class 0."""
    model = make(data, scorer="class-space").eval()
    some = data.train_mask.nonzero().flatten()[::2]
    hidden = changed(data, y=data.y.index_fill(0, some, no_label))
    smaller = changed(data, train_mask=data.train_mask.index_fill(0, some, False))
    assert torch.equal(model.auxiliary_loss(hidden), model.auxiliary_loss(smaller))
    assert not torch.equal(model.auxiliary_loss(hidden), model.auxiliary_loss(data))


@UNLABELLED
@pytest.mark.parametrize("name", list(gm.regularizers.regularizers))
def test_to_a_regularizer_a_training_node_without_a_label_is_any_node(name, no_label, data):
    out, graph = model_for(data)(data, return_graph=True)
    term = gm.regularizers.regularizers[name](1.0)
    some = data.train_mask.nonzero().flatten()[::2]
    hidden = changed(data, y=data.y.index_fill(0, some, no_label))
    smaller = changed(data, train_mask=data.train_mask.index_fill(0, some, False))
    assert torch.equal(term(out, graph, hidden), term(out, graph, smaller))
    nobody = changed(data, train_mask=torch.zeros_like(data.train_mask))
    assert torch.isfinite(term(out, graph, nobody))


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


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int16])
def test_labels_of_any_whole_numbers(dtype, data):
    model = model_for(data, scorer="class-space").eval()
    assert torch.equal(model.auxiliary_loss(changed(data, y=data.y.to(dtype))), model.auxiliary_loss(data))


def test_labels_that_change_in_place_are_seen(data):
    model = model_for(data, scorer="class-space").eval()
    before = model.auxiliary_loss(data)
    data.y[data.train_mask] = 0
    after = model.auxiliary_loss(data)
    assert not torch.equal(before, after)
    data.train_mask[:] = True
    assert not torch.equal(model.auxiliary_loss(data), after)


@each_model
def test_the_streams_of_a_model_govern_what_is_drawn(make, data):
    model = make(data, hard=False)
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
