import pytest
import torch
import torch.nn.functional as F

from gumbel_mpnn.nn import backbones
from gumbel_mpnn.training import accuracy, build_model, metrics, train, trainer
from gumbel_mpnn.training.captured import Adam
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util.errors import StoppedError, UserError
from helpers import changed, curve, interrupted, make_settings, make_task, normal, numbers, replicas, small_data

BUSY = {"dropout": 0.4, "input_dropout": 0.2, "norm": "batch", "residual": True}
QUIET = {**BUSY, "norm": "layer"}
PAIR = replicas((0, 0), (1, 3))
ONE = PAIR[:1]


def test_training_is_a_plain_loop():
    task, settings = make_task(), make_settings("gcn", {"dropout": 0.0}, weight_decay=0.01, epochs=12)
    (outcome,) = train(task, settings, ONE)

    model = build_model(settings, task, ONE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    rows, tests, states = [], [], []
    for epoch in range(1, 13):
        optimizer.zero_grad()
        train_mask, val_mask, test_mask = task.train_mask[0], task.val_mask[0], task.test_mask[0]
        loss = F.cross_entropy(model(task.features, task.graph)[0, train_mask], task.y[train_mask])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            logits = model(task.features, task.graph)[0]
        right = (logits.argmax(-1) == task.y).float()
        val_loss = F.cross_entropy(logits[val_mask], task.y[val_mask])
        rows.append([epoch, loss.item(), right[val_mask].mean().item(), val_loss.item()])
        tests.append(right[test_mask].mean().item())
        states.append({name: value.clone() for name, value in model.state_dict().items()})
    best = max(range(12), key=lambda k: (rows[k][2], -rows[k][3]))

    assert [list(row) for row in outcome.history] == [["epoch", "train_loss", "val", "val_loss"]] * 12
    torch.testing.assert_close(torch.tensor([list(row.values()) for row in outcome.history]), torch.tensor(rows))
    assert outcome.best_epoch == best + 1
    assert (outcome.val, outcome.test) == pytest.approx((rows[best][2], tests[best]))
    torch.testing.assert_close(outcome.state, states[best], rtol=1e-4, atol=1e-5)


def test_torchs_generator_is_left_alone_and_not_asked():
    task, settings = make_task(), make_settings("gat", BUSY)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = train(task, settings, PAIR)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert numbers(train(task, settings, PAIR)) == numbers(first)


def shuffled(data, *names):
    """The labels of the nodes in these masks (of split 0) moved around among them."""
    y = data.y.clone()
    for name in names:
        nodes = data[name][:, 0].nonzero().flatten()
        y[nodes] = y[nodes].roll(1)
    return changed(data, y=y)


@pytest.mark.parametrize("name", list(backbones))
def test_labels_outside_training_leave_training_alone(name):
    data = small_data(classes=4)
    other = shuffled(data, "val_mask", "test_mask")
    assert not torch.equal(other.y, data.y)
    settings = make_settings(name, BUSY, epochs=8)
    (first,), (second,) = (train(make_task(given), settings, ONE) for given in (data, other))
    assert curve(first, "train_loss") == curve(second, "train_loss")
    assert curve(first, "val_loss") != curve(second, "val_loss")

    last_only = make_settings(name, BUSY, epochs=8, eval_every=8)
    (first,), (second,) = (train(make_task(given), last_only, ONE) for given in (data, other))
    assert numbers([first])[0]["state"] == numbers([second])[0]["state"]


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_test_labels_leave_everything_but_the_test_figure_alone(metric):
    data = changed(small_data(nodes=90, classes=2), metric=metric)
    swapped = changed(data, y=torch.where(data.test_mask[:, 0], 1 - data.y, data.y))
    settings = make_settings("sage", BUSY, epochs=30, patience=10, lr=0.05)
    first, second = (numbers(train(make_task(given), settings, ONE))[0] for given in (data, swapped))
    assert first.pop("test") == pytest.approx(1 - second["test"])
    assert second.pop("test") < 0.4
    assert first == second


def test_the_test_mask_is_looked_at_once(monkeypatch):
    task, seen = make_task(), []

    def spy(logits, y, mask):
        seen.append("test" if torch.equal(mask, task.test_mask) else "val")
        return accuracy(logits, y, mask)

    monkeypatch.setitem(metrics, "accuracy", spy)
    train(task, make_settings(epochs=4), PAIR)
    assert seen == ["val"] * 4 + ["test"]


def test_unlabelled_nodes_are_not_learned_from():
    data = small_data(classes=3)
    outside = ~data.train_mask[:, 0] & ~data.val_mask[:, 0]
    hidden = changed(data, y=torch.where(outside, -1, data.y), test_mask=data.val_mask)
    (known,) = train(make_task(changed(data, test_mask=data.val_mask)), make_settings("gat", BUSY), ONE)
    (unknown,) = train(make_task(hidden), make_settings("gat", BUSY), ONE)
    assert numbers([known]) == numbers([unknown])
    assert unknown.test == unknown.val


@pytest.mark.parametrize(
    ("epochs", "every", "expected"), [(6, 1, [1, 2, 3, 4, 5, 6]), (6, 3, [3, 6]), (7, 3, [3, 6, 7]), (2, 5, [2])]
)
def test_evaluation_every_few_epochs_and_at_the_end(epochs, every, expected):
    (outcome,) = train(make_task(), make_settings(epochs=epochs, eval_every=every), ONE)
    assert curve(outcome, "epoch") == expected
    assert outcome.best_epoch in expected
    assert outcome.epochs == epochs


EARLY = [0.5, 0.6, 0.1, 0.1, 0.1, 0.1, 0.9]
LATE = [0.1, 0.2, 0.3, 0.1, 0.4, 0.1]
NEVER = [step / 20 for step in range(20)]


@pytest.mark.parametrize(
    ("scripts", "settings", "best", "val", "epochs"),
    [
        (([0.1, 0.7, 0.3, 0.6], [0.9, 0.7, 0.3, 0.95]), {"epochs": 4}, [2, 4], [0.7, 0.95], [4, 4]),
        (([0.1, 0.7, 0.3], [0.9, 0.2, 0.6]), {"epochs": 3, "select": "last"}, [3, 3], [0.3, 0.6], [3, 3]),
        (([0.9, 0.7, 0.3, 0.6], [0.9, 0.2, 0.8, 0.1]), {"epochs": 4, "select_from": 3}, [4, 3], [0.6, 0.8], [4, 4]),
        (([0.9, 0.7],), {"epochs": 2, "select_from": 60}, [2], [0.7], [2]),
        (([1 - k / 10 for k in range(7)],), {"epochs": 7, "select_from": 3, "patience": 2}, [3], [0.8], [5]),
        (([0.5, 0.1],), {"epochs": 20, "eval_every": 2, "patience": 5}, [2], [0.5], [8]),
        (([0.5, 0.1],), {"epochs": 45}, [1], [0.5], [45]),
        ((EARLY, LATE, NEVER), {"epochs": 12, "patience": 3}, [2, 5, 12], [0.6, 0.4, 0.55], [5, 8, 12]),
    ],
    ids=["best", "last", "from", "from beyond", "patience from", "patience in epochs", "no patience", "each"],
)
@pytest.mark.parametrize("look_every", [1, 20])
def test_which_epoch_is_kept(scripted, monkeypatch, look_every, scripts, settings, best, val, epochs):
    monkeypatch.setattr(trainer, "STOP_CHECK_EVERY", look_every)
    scripted(*scripts)
    outcomes = train(make_task(), make_settings(**settings), replicas(*((0, seed) for seed in range(len(scripts)))))
    assert [outcome.best_epoch for outcome in outcomes] == best
    assert [outcome.val for outcome in outcomes] == pytest.approx(val)
    assert [outcome.epochs for outcome in outcomes] == epochs
    assert [outcome.history[-1]["epoch"] for outcome in outcomes] == epochs


def test_the_state_is_that_of_the_best_epoch(scripted):
    scripted([0.1, 0.1, 0.9, 0.1, 0.1], [0.1, 0.8, 0.1, 0.1, 0.1])
    task = make_task()
    outcomes = train(task, make_settings("gcn", QUIET, epochs=5), PAIR)
    for outcome, epochs in zip(outcomes, (3, 2), strict=True):
        scripted([0.5])
        settings = make_settings("gcn", QUIET, epochs=epochs, eval_every=epochs)
        (alone,) = train(task, settings, [outcome.replica])
        torch.testing.assert_close(outcome.state, alone.state, rtol=1e-4, atol=1e-5)


def test_ties_go_to_the_lower_validation_loss(scripted):
    scripted([0.5])
    (outcome,) = train(make_task(), make_settings("mlp", {"dropout": 0.0}, epochs=40, lr=0.05), ONE)
    losses = curve(outcome, "val_loss")
    lowest = losses.index(min(losses)) + 1
    assert 1 < lowest < 40
    assert outcome.best_epoch == lowest


def test_watchers_are_told_epoch_and_mean_best(scripted, every_epoch):
    scripted([0.2, 0.1, 0.4], [0.4, 0.5, 0.3])
    seen = []
    train(make_task(), make_settings(epochs=3), PAIR, watch=lambda epoch, best: seen.append((epoch, best)))
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert [best for _, best in seen] == pytest.approx([0.3, 0.35, 0.45])


def test_tf32_is_allowed_and_afterwards_as_before(every_epoch):
    switch, seen = torch.backends.cuda.matmul, []
    before = switch.fp32_precision

    def watch(epoch, best):
        seen.append(switch.fp32_precision)
        if epoch == 2:
            raise KeyboardInterrupt

    train(make_task(), make_settings(epochs=1), PAIR, watch=watch)
    assert switch.fp32_precision == before
    with pytest.raises(KeyboardInterrupt):
        train(make_task(), make_settings(epochs=3), PAIR, watch=watch)
    assert switch.fp32_precision == before
    assert seen == ["tf32"] * 3


@pytest.mark.parametrize("name", list(backbones))
def test_activations_in_16_bits_give_about_the_same_curve(name):
    curves = [
        [row["val_loss"] for row in train(make_task(), make_settings(name, epochs=8, bfloat16=short), PAIR)[0].history]
        for short in (False, True)
    ]
    assert curves[0] != curves[1]
    assert curves[1] == pytest.approx(curves[0], rel=0.05)


@pytest.mark.parametrize("lr", [1e30, 1e20])
@pytest.mark.parametrize("name", list(backbones))
def test_diverging_training_is_an_error(name, lr):
    with pytest.raises(UserError, match=r"training diverged .*smaller train\.lr"):
        train(make_task(), make_settings(name, {"num_layers": 3}, lr=lr), ONE)


class Pruner:
    """Notes what it is told, and ends training at one of its epochs."""

    def __init__(self, *epochs, stops_at=None):
        self.asked = {"prune": self, "prune_after": epochs}
        self.stops_at, self.told = stops_at, {}

    def __call__(self, epoch, values):
        self.told[epoch] = list(values.values())
        if epoch == self.stops_at:
            raise StoppedError("stopped")


@pytest.mark.parametrize(
    ("scripts", "settings", "told"),
    [
        (
            ([0.1, 0.5, 0.2, 0.6, 0.3], [0.4, float("nan"), 0.3, 0.2, 0.9]),
            {"epochs": 5},
            {1: [0.1, 0.4], 3: [0.5, 0.4], 4: [0.6, 0.4]},
        ),
        (([0.3, 0.7],), {"epochs": 6, "eval_every": 2}, {1: [-float("inf")], 2: [0.3], 5: [0.7]}),
        (([0.5, 0.2, 0.1],), {"epochs": 3, "select": "last", "patience": 0}, {2: [0.2]}),
        (([0.5, 0.2, 0.3, 0.1],), {"epochs": 4, "select_from": 2}, {1: [-float("inf")], 2: [0.2]}),
    ],
    ids=["best so far", "seldom evaluated", "last", "selected later"],
)
def test_a_pruner_is_told_the_best_values_up_to_its_epochs(scripted, scripts, settings, told):
    scripted(*scripts)
    pruner = Pruner(*told, 9)
    train(make_task(), make_settings(**settings), PAIR[: len(scripts)], **pruner.asked)
    assert pruner.told == {epoch: pytest.approx(values) for epoch, values in told.items()}


def test_a_pruner_ends_training_and_changes_nothing_else(monkeypatch):
    steps, step = [], Trainer.step
    whole = train(make_task(), make_settings(), PAIR)
    assert numbers(train(make_task(), make_settings(), PAIR, **Pruner(1, 2, 3).asked)) == numbers(whole)
    monkeypatch.setattr(Trainer, "step", lambda self: (steps.append(1), step(self)))
    with pytest.raises(StoppedError):
        train(make_task(), make_settings(epochs=9), PAIR, **Pruner(2, 4, 6, stops_at=4).asked)
    assert len(steps) == 4


def test_after_a_resumption_a_pruner_is_told_what_it_was_told_before(tmp_path, every_epoch):
    path, settings = tmp_path / "checkpoint.safetensors", make_settings(epochs=8, patience=2)
    group = replicas((0, 0), (1, 0), (0, 1), (1, 1))
    whole, resumed = Pruner(1, 2, 3, 5), Pruner(1, 2, 3, 5)
    train(make_task(), settings, group, **whole.asked)
    interrupted(4, make_task(), settings, group, path)
    train(make_task(), settings, group, checkpoint=path, **resumed.asked)
    assert resumed.told == whole.told


SHAPES = [(3, 4), (5,), (2, 3, 1)]


def groups():
    params = [normal(*shape, seed=k, dtype=torch.float32).requires_grad_() for k, shape in enumerate(SHAPES)]
    return [
        {"params": params[:2], "lr": 0.01, "weight_decay": 0.1},
        {"params": params[2:], "lr": 0.1, "weight_decay": 0.0},
    ]


def take_steps(optimizer, params, steps):
    for step in steps:
        for param in params:
            param.grad = None
        sum((param * normal(*param.shape, seed=step)).square().sum() for param in params[: 1 + step % 3]).backward()
        optimizer.step()


def params_of(groups):
    return [param for group in groups for param in group["params"]]


def test_parameters_are_those_of_torch():
    ours, theirs = groups(), groups()
    take_steps(Adam(ours), params_of(ours), range(5))
    take_steps(torch.optim.Adam(theirs, foreach=True), params_of(theirs), range(5))
    assert not torch.equal(params_of(ours)[0], params_of(groups())[0])
    for one, other in zip(params_of(ours), params_of(theirs), strict=True):
        assert torch.equal(one, other)
