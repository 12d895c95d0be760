"""Search spaces, and studies: every trial once whatever ends its process, weak ones stopped by comparison."""

import math
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import FixedTrial

from gumbel_mpnn.runs import study
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.runs.store import TRIALS, find_records
from gumbel_mpnn.runs.study import (
    Pruner,
    Search,
    draw,
    open_storage,
    open_study,
    read_space,
    read_tables,
    searched,
    tables_of,
    work_on,
)
from gumbel_mpnn.runs.tune import results
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util.errors import StoppedError, UserError
from helpers import small_data

SPACE = {"train": {"lr": {"low": 0.01, "high": 0.1}, "epochs": 2}, "model": {"hidden_channels": 4}}
DATA = small_data()


class TestSpaces:
    """What a list and a range mean, and what is refused."""

    def drawn(self, tables, start=(), count=20):
        """What is drawn for new trials of a study."""
        board = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        return [draw(board.ask(), read_tables(tables, dict(start))) for _ in range(count)]

    def test_what_a_space_searches_and_what_it_fixes(self):
        ranges = {"x": {"low": 1, "high": 3}, "y": {"low": 1, "high": 3}}
        space = read_tables({"model": {"channels": [4, 8], "norm": "none"}, "data": ranges}, {"data.y": 1.0})
        assert searched(space) == {
            "model.channels": [4, 8],
            "data.x": {"low": 1, "high": 3, "log": False},
            "data.y": {"low": 1.0, "high": 3.0, "log": False},
        }
        assert tables_of(space, {"model.channels": 8, "rewiring.regularizer.margin": 0.2}) == {
            "model": {"norm": "none", "channels": 8},
            "rewiring": {"regularizer.margin": 0.2},
        }

    def test_what_optuna_suggests(self):
        lr, epochs = {"low": 1, "high": 5}, {"low": 1, "high": 8, "step": 4}
        drawn = self.drawn({"train": {"lr": lr, "epochs": epochs}}, {"train.lr": 0.1})
        assert {each["train.epochs"] for each in drawn} == {1, 5}
        assert len({each["train.lr"] for each in drawn} - {1.0, 5.0}) == 20

    def test_numbers_have_few_digits(self):
        space = read_tables({"train": {"lr": {"low": 0.0, "high": 1.0}}}, {})
        assert draw(FixedTrial({"train.lr": 0.123456}), space) == {"train.lr": 0.1235}

    def test_options_of_a_component_are_drawn_only_with_it(self):
        drawn = self.drawn({"rewiring": {"candidates.per_node": [3, 5], "candidates": ["none", "local", "ricci"]}})
        assert {each["rewiring.candidates"] for each in drawn} == {"none", "local", "ricci"}
        for each in drawn:
            assert ("rewiring.candidates.per_node" in each) == (each["rewiring.candidates"] == "local")

    @pytest.mark.parametrize("value", [
        {}, {"low": 1}, {"low": 1, "high": 2, "hihg": 2}, {"low": "a", "high": 2}, {"low": True, "high": 2},
        {"low": 0.0, "high": math.inf},
    ])  # fmt: skip
    def test_what_is_no_range(self, value):
        with pytest.raises(UserError) as error:
            read_tables({"train": {"lr": value}}, {})
        must = "the range of train.lr must have numbers low and high, and may have step and log, but is"
        assert str(error.value) == f"{must} {value}"

    @pytest.mark.parametrize(
        "value",
        [
            {"low": 2, "high": 1},
            {"low": 0, "high": 1, "log": True},
            {"low": 1, "high": 2, "step": 0},
            {"low": 1.0, "high": 2, "step": 0.5, "log": True},
        ],
    )
    def test_what_is_an_impossible_range(self, value):
        with pytest.raises(UserError, match=r"^the range of train.lr is not valid: "):
            read_tables({"train": {"lr": value}}, {})

    def test_a_space_is_made_of_tables(self):
        with pytest.raises(UserError, match=r"setting 'lr' must be a table, but is 0.1"):
            read_space({"lr": 0.1})


@pytest.fixture
def search(tmp_path):
    spec = RunSpec.of(DATA, "mlp", splits=[0])
    return Search.of(spec, SPACE, trials=3, runs=str(tmp_path), device="cpu")


def states(search):
    return [trial.state.name for trial in open_study(search).get_trials()]


def found(search):
    """Number, state, choice and values of every trial."""
    trials = results(search)
    return sorted((trial.number, trial.state, dict(trial.chosen), trial.val) for trial in trials)


def killed_at(step, monkeypatch, error):
    """Raise an error at some step of training, once; it ends `work_on` as a kill does."""
    steps, real = [0], Trainer.step

    def stepping(self):
        steps[0] += 1
        if steps[0] == step:
            raise error
        real(self)

    monkeypatch.setattr(Trainer, "step", stepping)


def locks(search):
    return [path.name for path in Path(search.lock().lock_file).parent.iterdir() if path.name != "study.lock"]


class TestEveryTrialOnce:
    @pytest.fixture
    def whole(self, search, tmp_path_factory):
        """The trials of a study that nothing disturbed."""
        runs = str(tmp_path_factory.mktemp("whole"))
        other = replace(search, runs=runs, storage=f"{runs}/journal")
        work_on(other)
        return found(other)

    @pytest.mark.parametrize("step", [1, 2, 3, 4, 6])
    def test_an_error_at_any_step_loses_nothing(self, search, whole, monkeypatch, step):
        killed_at(step, monkeypatch, RuntimeError("broken"))
        with pytest.raises(RuntimeError, match="broken"):
            work_on(search)
        assert states(search)[(step - 1) // 2] == "RUNNING"
        work_on(search)
        assert found(search) == whole
        assert states(search) == ["COMPLETE"] * 3
        assert locks(search) == []

    @pytest.mark.parametrize("call", ["ask", "tell"])
    def test_an_error_between_training_and_storage_loses_nothing(self, search, whole, monkeypatch, call):
        real, calls = getattr(optuna.Study, call), []

        def breaking(*arguments, **options):
            calls.append(call)
            if len(calls) == 2:
                raise RuntimeError("broken")
            return real(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(optuna.Study, call, breaking)
            with pytest.raises(RuntimeError, match="broken"):
                work_on(search)
        work_on(search)
        assert found(search) == whole
        assert states(search) == ["COMPLETE"] * 3
        assert len(list(find_records(Path(search.runs)))) == 3

    def test_a_trial_without_all_its_settings_is_replaced(self, search):
        open_study(search).ask()
        work_on(search)
        assert states(search) == ["FAIL", *["COMPLETE"] * 3]
        assert sorted(trial.number for trial in results(search)) == [1, 2, 3]

    def test_a_trial_that_another_process_trains_is_left_alone_and_waited_for(self, search, whole, monkeypatch):
        opened = open_study(search)
        trial, lock = study._begin(opened, search)

        def the_other_ends(_):
            assert states(search) == ["RUNNING", "COMPLETE", "COMPLETE"]
            study._train(opened, trial, search, Session(search.runs, TRIALS, "cpu"))
            lock.lock.release()

        monkeypatch.setattr(study.time, "sleep", the_other_ends)
        work_on(search)
        assert found(search) == whole
        assert states(search) == ["COMPLETE"] * 3

    def test_a_trial_whose_process_died_while_others_waited_is_continued(self, search, whole, monkeypatch):
        _, lock = study._begin(open_study(search), search)
        monkeypatch.setattr(study.time, "sleep", lambda _: lock.lock.release())
        work_on(search)
        assert found(search) == whole
        assert states(search) == ["COMPLETE"] * 3

    def test_nothing_is_left_to_do_twice(self, search, no_training):
        work_on(search)
        no_training()
        work_on(search)
        assert states(search) == ["COMPLETE"] * 3


class TestStorage:
    def test_a_database(self, search, tmp_path):
        search = replace(search, storage=f"sqlite:///{tmp_path}/study.db")
        work_on(search)
        assert states(search) == ["COMPLETE"] * 3
        assert not (tmp_path / "tune" / study.JOURNAL).exists()

    def test_a_damaged_journal(self, search):
        work_on(replace(search, trials=1))
        with open(search.storage, "ab") as file:  # noqa: PTH123
            file.write(b"nonsense\n{}\n")
        with pytest.raises(UserError, match=r"cannot open the storage .*; correct its address, or name another one"):
            work_on(search)

    @pytest.mark.parametrize("content", [b"<html>", b"<html>\n", b"{}\n"])
    def test_a_file_of_the_user_is_left_alone(self, search, tmp_path, content):
        path = tmp_path / "my.html"
        path.write_bytes(content)
        with pytest.raises(UserError, match="is no journal of Optuna: name another file"):
            work_on(replace(search, storage=str(path)))
        assert path.read_bytes() == content

    def test_what_the_dashboard_shows(self, search):
        work_on(search)
        (summary,) = optuna.get_all_study_summaries(open_storage(search.storage))
        assert (summary.study_name, summary.n_trials) == (search.study, 3)


class TestPruner:
    """Epochs 16: values are compared at 2, 4 and 8."""

    @pytest.fixture
    def board(self):
        return optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(study.UNPRUNED, 0))

    def goes_on(self, pruner, values, epoch=2):
        try:
            pruner(epoch, {Replica(split, 0): value for split, value in values.items()})
        except StoppedError:
            return False
        return True

    def test_epochs(self, board):
        assert [Pruner(board.ask(), epochs).epochs for epochs in (500, 16, 3, 1)] == [
            [62, 125, 250],
            [2, 4, 8],
            [1],
            [],
        ]

    def test_what_is_worse_than_the_median_of_four_trials_is_stopped(self, board):
        for value in (0.5, 0.6, 0.1, 0.2):
            trial = board.ask()
            assert self.goes_on(Pruner(trial, 16), {0: value})
            board.tell(trial, value)
        assert not self.goes_on(Pruner(board.ask(), 16), {0: 0.3})
        assert self.goes_on(Pruner(board.ask(), 16), {0: 0.4})
        assert self.goes_on(Pruner(board.ask(), 16), {0: 0.3}, epoch=4)

    def test_runs_that_are_trained_later_are_not_compared(self, board):
        pruner = Pruner(trial := board.ask(), 16)
        for epoch, values in ((2, {0: 0.6}), (4, {0: 0.7}), (2, {1: 0.1}), (4, {1: 0.1})):
            assert self.goes_on(pruner, values, epoch)
        assert board.get_trials()[trial.number].intermediate_values == {0: 0.6, 1: 0.7}

    def test_nothing_is_compared_before_the_first_evaluation(self, board):
        pruner = Pruner(trial := board.ask(), 16)
        assert self.goes_on(pruner, {0: -float("inf"), 1: -float("inf")})
        assert board.get_trials()[trial.number].intermediate_values == {}
        assert self.goes_on(pruner, {0: -float("inf"), 1: 0.5})
        assert board.get_trials()[trial.number].intermediate_values == {0: 0.25}
