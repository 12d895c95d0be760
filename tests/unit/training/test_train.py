import pytest
import torch
import torch.nn.functional as F

from gumbel_mpnn._util.errors import DivergedError, StoppedError, UserError
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.training import accuracy, build_model, loop, metrics, train, trainer
from gumbel_mpnn.training.trainer import Trainer
from helpers import changed, curve, make_settings, make_task, numbers, replicas, small_data

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


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
@pytest.mark.parametrize("name", list(backbones))
def test_same_seed_same_result_bit_for_bit(name, metric):
    task = make_task(changed(small_data(classes=2), metric=metric))
    settings = make_settings(name, BUSY, patience=4, epochs=10)
    first, again = train(task, settings, PAIR), train(task, settings, PAIR)
    assert numbers(first) == numbers(again)
    other = train(task, settings, replicas((0, 1), (1, 4)))
    assert all(curve(a, "train_loss") != curve(b, "train_loss") for a, b in zip(first, other, strict=True))


def test_same_seed_same_result_on_two_threads():
    data = small_data(nodes=1500, features=40)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, again = (train(make_task(data), make_settings("gat", BUSY, epochs=2), PAIR) for _ in range(2))
    finally:
        torch.set_num_threads(before)
    assert numbers(first) == numbers(again)


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


def test_evaluation_does_not_change_training():
    often, seldom = (train(make_task(), make_settings("gat", BUSY, epochs=6, eval_every=k), ONE)[0] for k in (1, 3))
    assert curve(seldom, "train_loss") == curve(often, "train_loss")[2::3]


@pytest.mark.parametrize(("setting", "value"), [("lr", 0.02), ("weight_decay", 0.1)])
def test_settings_of_the_optimizer_arrive(setting, value):
    plain, other = (train(make_task(), make_settings(**given), ONE)[0] for given in ({}, {setting: value}))
    assert curve(plain, "train_loss")[0] == curve(other, "train_loss")[0]
    assert curve(plain, "train_loss")[1:] != curve(other, "train_loss")[1:]


def test_the_best_epoch_is_the_best_on_validation(scripted):
    scripted([0.1, 0.7, 0.3, 0.6], [0.9, 0.7, 0.3, 0.95])
    outcomes = train(make_task(), make_settings(epochs=4), PAIR)
    assert [outcome.best_epoch for outcome in outcomes] == [2, 4]
    assert [outcome.val for outcome in outcomes] == pytest.approx([0.7, 0.95])


def test_the_state_is_that_of_the_best_epoch(scripted):
    scripted([0.1, 0.1, 0.9, 0.1, 0.1], [0.1, 0.8, 0.1, 0.1, 0.1])
    task = make_task()
    outcomes = train(task, make_settings("gcn", QUIET, epochs=5), PAIR)
    for outcome, epochs in zip(outcomes, (3, 2), strict=True):
        scripted([0.5])
        settings = make_settings("gcn", QUIET, epochs=epochs, eval_every=epochs)
        (alone,) = train(task, settings, [outcome.replica])
        torch.testing.assert_close(outcome.state, alone.state, rtol=1e-4, atol=1e-5)


def test_select_last_keeps_the_last_epoch(scripted):
    scripted([0.1, 0.7, 0.3], [0.9, 0.2, 0.6])
    outcomes = train(make_task(), make_settings(epochs=3, select="last"), PAIR)
    assert [outcome.best_epoch for outcome in outcomes] == [3, 3]
    assert [outcome.val for outcome in outcomes] == pytest.approx([0.3, 0.6])


def test_epochs_before_the_first_to_select_are_not_kept(scripted):
    scripted([0.9, 0.7, 0.3, 0.6], [0.9, 0.2, 0.8, 0.1])
    outcomes = train(make_task(), make_settings(epochs=4, select_from=3), PAIR)
    assert [outcome.best_epoch for outcome in outcomes] == [4, 3]
    assert [outcome.val for outcome in outcomes] == pytest.approx([0.6, 0.8])


def test_patience_counts_from_the_first_epoch_to_select(scripted):
    scripted([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])
    (outcome,) = train(make_task(), make_settings(epochs=7, select_from=3, patience=2), ONE)
    assert (outcome.best_epoch, outcome.val, outcome.epochs) == (3, pytest.approx(0.7), 5)


def test_the_last_epoch_is_kept_if_selection_would_begin_later(scripted):
    scripted([0.9, 0.7])
    (outcome,) = train(make_task(), make_settings(epochs=2, select_from=60), ONE)
    assert outcome.best_epoch == 2


def test_a_state_gives_the_figures_back():
    task, settings = make_task(), make_settings("gat", BUSY, epochs=10)
    for outcome in train(task, settings, PAIR):
        model = build_model(settings, task, [outcome.replica]).eval()
        model.load_state_dict(outcome.state)
        _, val_mask, test_mask = task.masks([outcome.replica])
        logits = model(task.features, task.graph)
        assert accuracy(logits, task.y, val_mask).item() == pytest.approx(outcome.val)
        assert accuracy(logits, task.y, test_mask).item() == pytest.approx(outcome.test)


def test_ties_go_to_the_lower_validation_loss(scripted):
    scripted([0.5])
    (outcome,) = train(make_task(), make_settings("mlp", {"dropout": 0.0}, epochs=40, lr=0.05), ONE)
    losses = curve(outcome, "val_loss")
    lowest = losses.index(min(losses)) + 1
    assert 1 < lowest < 40
    assert outcome.best_epoch == lowest


def test_a_better_metric_beats_a_lower_loss(scripted):
    scripted([0.5, 0.6, *[0.5] * 38])
    (outcome,) = train(make_task(), make_settings("mlp", {"dropout": 0.0}, epochs=40, lr=0.05), ONE)
    losses = curve(outcome, "val_loss")
    assert outcome.best_epoch == 2
    assert min(losses) < losses[1]


GROUP = replicas((0, 0), (0, 1), (0, 2))
EARLY = [0.5, 0.6, 0.1, 0.1, 0.1, 0.1, 0.9]
LATE = [0.1, 0.2, 0.3, 0.1, 0.4, 0.1]
NEVER = [step / 20 for step in range(20)]


@pytest.mark.parametrize("look_every", [1, 20])
def test_patience_stops_each_replica_at_its_own_epoch(scripted, monkeypatch, look_every):
    monkeypatch.setattr(trainer, "STOP_CHECK_EVERY", look_every)
    scripted(EARLY, LATE, NEVER)
    outcomes = train(make_task(), make_settings(epochs=12, patience=3), GROUP)
    assert [outcome.best_epoch for outcome in outcomes] == [2, 5, 12]
    assert [outcome.epochs for outcome in outcomes] == [5, 8, 12]
    assert [len(outcome.history) for outcome in outcomes] == [5, 8, 12]
    assert [outcome.val for outcome in outcomes] == pytest.approx([0.6, 0.4, 0.55])


@pytest.mark.parametrize(("scripts", "last"), [([EARLY], 5), ([EARLY, LATE], 8), ([EARLY, NEVER], 12)])
def test_training_ends_when_all_have_stopped(scripted, monkeypatch, every_epoch, scripts, last):
    monkeypatch.setattr(trainer, "STOP_CHECK_EVERY", 1)
    scripted(*scripts)
    seen = []
    train(
        make_task(),
        make_settings(epochs=12, patience=3),
        GROUP[: len(scripts)],
        watch=lambda epoch, best: seen.append(epoch),
    )
    assert seen == list(range(1, last + 1))


def test_patience_counts_epochs_not_evaluations(scripted):
    scripted([0.5, 0.1])
    (outcome,) = train(make_task(), make_settings(epochs=20, eval_every=2, patience=5), ONE)
    assert (outcome.best_epoch, outcome.epochs) == (2, 8)
    assert curve(outcome, "epoch") == [2, 4, 6, 8]


def test_patience_zero_never_stops(scripted):
    scripted([0.5, 0.1])
    (outcome,) = train(make_task(), make_settings(epochs=45), ONE)
    assert (outcome.best_epoch, outcome.epochs) == (1, 45)


def test_stopping_a_replica_does_not_change_another(scripted):
    task, settings = make_task(), make_settings("gcn", BUSY, epochs=12, patience=3)
    scripted(EARLY, NEVER)
    _, together = train(task, settings, PAIR)
    scripted(NEVER, NEVER)
    _, undisturbed = train(task, settings, PAIR)
    assert numbers([together]) == numbers([undisturbed])


def test_outcomes_come_in_the_order_of_the_replicas():
    group = replicas((1, 2), (0, 0), (1, 0))
    outcomes = train(make_task(), make_settings(), group)
    assert [outcome.replica for outcome in outcomes] == group
    assert all(len(value) == 1 for outcome in outcomes for value in outcome.state.values())
    assert len({outcome.seconds for outcome in outcomes}) == 1
    assert outcomes[0].seconds > 0


def test_watchers_are_told_epoch_and_mean_best(scripted, every_epoch):
    scripted([0.2, 0.1, 0.4], [0.4, 0.5, 0.3])
    seen = []
    train(make_task(), make_settings(epochs=3), PAIR, watch=lambda epoch, best: seen.append((epoch, best)))
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert [best for _, best in seen] == pytest.approx([0.3, 0.35, 0.45])


def test_watchers_are_not_told_every_epoch(monkeypatch):
    monkeypatch.setattr(loop, "REPORT_SECONDS", float("inf"))
    train(make_task(), make_settings(), PAIR, watch=lambda epoch, best: pytest.fail("told of an epoch"))


@pytest.fixture
def precision():
    """Torch's switch for TF32, put back after the test."""
    before = torch.backends.cuda.matmul.allow_tf32
    yield torch.backends.cuda.matmul
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("tf32", [True, False])
def test_tf32_is_allowed_as_set_and_afterwards_as_before(precision, every_epoch, tf32):
    precision.allow_tf32 = not tf32
    seen = []

    def watch(epoch, best):
        seen.append(precision.allow_tf32)
        if epoch == 2:
            raise KeyboardInterrupt

    train(make_task(), make_settings(epochs=1, tf32=tf32), PAIR, watch=watch)
    assert precision.allow_tf32 is not tf32
    with pytest.raises(KeyboardInterrupt):
        train(make_task(), make_settings(epochs=3, tf32=tf32), PAIR, watch=watch)
    assert precision.allow_tf32 is not tf32
    assert seen == [tf32] * 3


def test_torchs_newer_switch_may_have_been_used():
    """Torch then refuses to tell what its older one says."""
    switch = torch.backends.cuda.matmul
    before = switch.fp32_precision
    switch.fp32_precision = "tf32"
    try:
        train(make_task(), make_settings(epochs=1, tf32=False), PAIR)
        assert switch.fp32_precision == "tf32"
    finally:
        switch.allow_tf32 = False
        switch.fp32_precision = before


@pytest.mark.parametrize("name", list(backbones))
def test_activations_in_16_bits_give_about_the_same_curve(name):
    curves = [
        [row["val_loss"] for row in train(make_task(), make_settings(name, epochs=8, bfloat16=short), PAIR)[0].history]
        for short in (False, True)
    ]
    assert curves[0] != curves[1]
    assert curves[1] == pytest.approx(curves[0], rel=0.05)


def test_a_metric_that_is_never_a_number_is_an_error(scripted):
    scripted([0.5], [float("nan")])
    with pytest.raises(UserError, match=r"^training diverged .*: try a smaller train\.lr, or"):
        train(make_task(), make_settings(), PAIR)


def test_which_runs_diverged_is_told(scripted):
    scripted([float("nan")], [0.5])
    with pytest.raises(DivergedError) as told:
        train(make_task(), make_settings(), PAIR)
    assert told.value.runs == ("split0-seed0",)


@pytest.mark.parametrize("lr", [1e30, 1e20])
@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
@pytest.mark.parametrize("name", list(backbones))
def test_diverging_training_is_an_error(name, metric, lr):
    task = make_task(changed(small_data(classes=2), metric=metric))
    with pytest.raises(UserError, match=r"training diverged .*smaller train\.lr"):
        train(task, make_settings(name, {"num_layers": 3}, lr=lr), ONE)


def test_build_model_seeds_every_replica_with_its_own_stream():
    task, settings = make_task(), make_settings("gat", {"heads": 2})
    model = build_model(settings, task, PAIR)
    assert model.seeds == [replica.stream_seed for replica in PAIR]
    assert str(model) == "GAT(8 wide, 2 layers, 3 classes, replicas=2)"
    alone = build_model(settings, task, PAIR[1:])
    assert torch.equal(model.head.weight[1:], alone.head.weight)


class Judge:
    """Notes what it is told, and ends training at one of its epochs."""

    def __init__(self, *epochs, stops_at=None):
        self.epochs, self.stops_at, self.told = list(epochs), stops_at, {}

    def __call__(self, epoch, values):
        self.told[epoch] = list(values.values())
        if epoch == self.stops_at:
            raise StoppedError("stopped")


class TestJudge:
    SCRIPTS = ([0.1, 0.5, 0.2, 0.6, 0.3], [0.4, float("nan"), 0.3, 0.2, 0.9])

    def test_it_is_told_the_best_values_up_to_its_epochs(self, scripted):
        scripted(*self.SCRIPTS)
        train(make_task(), make_settings(epochs=5), replicas((0, 0), (1, 0)), judge=(judge := Judge(1, 3, 4, 9)))
        assert judge.told == {1: pytest.approx([0.1, 0.4]), 3: pytest.approx([0.5, 0.4]), 4: pytest.approx([0.6, 0.4])}

    def test_evaluations_that_are_not_of_every_epoch(self, scripted):
        scripted([0.3, 0.7])
        judge = Judge(1, 2, 5)
        train(make_task(), make_settings(epochs=6, eval_every=2), replicas((0, 0)), judge=judge)
        assert judge.told == {1: [-float("inf")], 2: pytest.approx([0.3]), 5: pytest.approx([0.7])}

    def test_the_last_value_counts_if_the_last_epoch_is_selected(self, scripted):
        scripted([0.5, 0.2, 0.1])
        judge = Judge(2)
        train(make_task(), make_settings(epochs=3, select="last", patience=0), replicas((0, 0)), judge=judge)
        assert judge.told == {2: pytest.approx([0.2])}

    def test_epochs_that_are_not_kept_do_not_count(self, scripted):
        scripted([0.5, 0.2, 0.3, 0.1])
        judge = Judge(1, 2, 4)
        train(make_task(), make_settings(epochs=4, select_from=2), replicas((0, 0)), judge=judge)
        assert judge.told == {1: [-float("inf")], 2: pytest.approx([0.2])}

    def test_it_ends_training(self, monkeypatch):
        steps, step = [], Trainer.step
        monkeypatch.setattr(Trainer, "step", lambda self: (steps.append(1), step(self)))
        with pytest.raises(StoppedError):
            train(make_task(), make_settings(epochs=9), replicas((0, 0)), judge=Judge(2, 4, 6, stops_at=4))
        assert len(steps) == 4

    def test_it_changes_nothing(self):
        whole = train(make_task(), make_settings(), replicas((0, 0), (1, 0)))
        assert numbers(train(make_task(), make_settings(), replicas((0, 0), (1, 0)), judge=Judge(1, 2, 3))) == numbers(
            whole
        )

    def test_after_a_resumption_it_is_told_what_it_was_told_before(self, tmp_path, every_epoch, monkeypatch):
        path, settings = tmp_path / "checkpoint.safetensors", make_settings(epochs=8, patience=2)
        group = replicas((0, 0), (1, 0), (0, 1), (1, 1))
        train(make_task(), settings, group, judge=(whole := Judge(1, 2, 3, 5)))
        step = Trainer.step

        def dying(self):
            if self.epoch == 4:
                raise KeyError("killed")
            step(self)

        monkeypatch.setattr(Trainer, "step", dying)
        with pytest.raises(KeyError):
            train(make_task(), settings, group, checkpoint=path)
        monkeypatch.setattr(Trainer, "step", step)
        train(make_task(), settings, group, checkpoint=path, judge=(resumed := Judge(1, 2, 3, 5)))
        assert resumed.told == whole.told
