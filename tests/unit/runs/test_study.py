"""Studies: every trial once whatever ends its process, and weak trials stopped in comparison with others."""

import os
import signal
from dataclasses import replace

import optuna
import pytest

from gumbel_mpnn.runs import RunSpec, study
from gumbel_mpnn.runs.study import Halving, open_storage, open_study, results, standing, work_on
from gumbel_mpnn.runs.tuning import Budget
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.settings.spaces import Space
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util.errors import StoppedError, UserError
from gumbel_mpnn.util.locks import FileLock
from helpers import fresh_processes, small_data

SPACE = {"train": {"lr": {"low": 0.01, "high": 0.1}, "epochs": 2}, "model": {"hidden_channels": 4}}
DATA = small_data()


@pytest.fixture
def search(tmp_path):
    spec = RunSpec.of(DATA, "mlp", splits=[0])
    return Budget(3, None, str(tmp_path), device="cpu").search(spec, SPACE)


def states(search):
    return [(trial.user_attrs["trial"], trial.state.name) for trial in open_study(search).get_trials()]


def chosen(search):
    return {trial.number: dict(trial.chosen) for trial in results(open_study(search), search)}


def killed_at(step, monkeypatch, error):
    """Raise an error at some step of training, once; it ends `work_on` as a kill does."""
    steps, real = [0], Trainer.step

    def stepping(self):
        steps[0] += 1
        if steps[0] == step:
            raise error
        real(self)

    monkeypatch.setattr(Trainer, "step", stepping)


def work_and_be_killed(search):
    Trainer.step = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    work_on(search)


class TestEveryTrialOnce:
    @pytest.fixture
    def whole(self, search, tmp_path_factory):
        """What a study has chosen that nothing disturbed."""
        other = replace(search, runs=str(tmp_path_factory.mktemp("whole")), storage="")
        other = replace(other, storage=f"{other.runs}/journal")
        work_on(other)
        return chosen(other)

    @pytest.mark.parametrize("step", [1, 2, 3, 4, 6])
    def test_an_error_at_any_step_loses_nothing(self, search, whole, monkeypatch, step):
        killed_at(step, monkeypatch, RuntimeError("broken"))
        with pytest.raises(RuntimeError, match="broken"):
            work_on(search)
        lost = (step - 1) // 2
        assert states(search)[lost] == (lost, "RUNNING")
        work_on(search)
        assert chosen(search) == whole
        assert sorted(state for _, state in states(search)) == ["COMPLETE"] * 3 + ["FAIL"]

    def test_a_trial_that_ended_before_it_had_settings_gets_the_same(self, search, whole, monkeypatch):
        real = study._suggest
        monkeypatch.setattr(study, "_suggest", lambda *_: (_ for _ in ()).throw(RuntimeError("broken")))
        with pytest.raises(RuntimeError, match="broken"):
            work_on(search)
        monkeypatch.setattr(study, "_suggest", real)
        work_on(search)
        assert chosen(search) == whole

    def test_trials_that_were_planned_but_are_not_wanted_any_more_wait(self, search, monkeypatch):
        killed_at(1, monkeypatch, RuntimeError("broken"))
        with pytest.raises(RuntimeError, match="broken"):
            work_on(search)
        work_on(replace(search, trials=2))
        assert sorted(chosen(search)) == [0, 1]
        assert (2, "WAITING") in states(search)

    def test_a_trial_that_another_process_trains_is_left_alone(self, search, monkeypatch):
        killed_at(1, monkeypatch, RuntimeError("broken"))
        with pytest.raises(RuntimeError, match="broken"):
            work_on(search)
        (path,) = study._folder(search).iterdir()
        lock = FileLock(path)
        lock.take(wait=False)
        work_on(search)
        assert states(search) == [(0, "RUNNING"), (1, "COMPLETE"), (2, "COMPLETE")]
        lock.release()
        work_on(search)
        assert sorted(chosen(search)) == [0, 1, 2]
        assert list(study._folder(search).iterdir()) == []

    def test_a_trial_that_is_killed_again_and_again_is_given_up(self, search):
        for _ in range(study.MOST_ATTEMPTS):
            process = fresh_processes().Process(target=work_and_be_killed, args=(search,))
            process.start()
            process.join()
            assert process.exitcode == -signal.SIGKILL
        work_on(search)
        found = results(open_study(search), search)
        assert [trial.state for trial in found] == ["failed", "finished", "finished"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_interruptions_and_reported_errors_do_not_count(self, search, monkeypatch, error):
        for _ in range(study.MOST_ATTEMPTS + 1):
            killed_at(1, monkeypatch, error())
            with pytest.raises(error):
                work_on(search)
        work_on(search)
        assert [trial.state for trial in results(open_study(search), search)] == ["finished"] * 3

    def test_trials_that_the_user_adds_are_left_alone(self, search):
        open_study(search).enqueue_trial({"train.lr": 0.05})
        work_on(search)
        assert sorted(chosen(search)) == [0, 1, 2]
        assert open_study(search).get_trials()[0].state.name == "WAITING"

    def test_nothing_is_left_to_do_twice(self, search, no_training):
        work_on(search)
        no_training()
        work_on(search)
        now = standing(open_study(search), search)
        assert (now.done, now.total) == (3, 3)
        assert now.best.val == max(trial.val for trial in results(open_study(search), search))


@pytest.mark.parametrize(("epochs", "expected"), [({}, 500), ({"epochs": 7}, 7), ({"epochs": [3, 9]}, 9)])
def test_epochs_at_which_trials_are_compared(search, epochs, expected):
    space = Space.of({"train": {"lr": [0.1, 0.2], **epochs}})
    assert replace(search, space=space).epochs == expected


class TestStorage:
    def test_a_database(self, search, tmp_path):
        search = replace(search, storage=f"sqlite:///{tmp_path}/study.db")
        work_on(search)
        assert sorted(chosen(search)) == [0, 1, 2]
        assert not (tmp_path / "tune" / study.JOURNAL).exists()

    def test_a_journal_whose_last_line_was_cut_off(self, search):
        work_on(replace(search, trials=2))
        with open(search.storage, "ab") as file:  # noqa: PTH123
            file.write(b'{"op_code":8,"wor')
        work_on(search)
        assert sorted(chosen(search)) == [0, 1, 2]

    def test_a_damaged_journal(self, search):
        work_on(replace(search, trials=1))
        with open(search.storage, "ab") as file:  # noqa: PTH123
            file.write(b"nonsense\n{}\n")
        with pytest.raises(UserError, match=r"cannot open the storage .*; correct its address, or name another one"):
            work_on(search)

    def test_the_lock_of_a_journal_ends_with_its_process(self, search):
        """Optuna's own lock would be a file, which a kill leaves."""
        storage = open_storage(search.storage)
        storage._backend._lock.acquire()
        storage._backend._lock.lock.release()  # as a kill does
        work_on(search)
        assert sorted(chosen(search)) == [0, 1, 2]

    def test_what_the_dashboard_shows(self, search):
        work_on(search)
        (summary,) = optuna.get_all_study_summaries(open_storage(search.storage))
        assert (summary.study_name, summary.n_trials) == (search.study, 3)
        trial = open_study(search).best_trial
        assert trial.user_attrs["fingerprint"] in {path.name for path in (study._folder(search).parents[1]).rglob("*")}
        assert trial.user_attrs["result"]["settings"]["train"]["lr"] == pytest.approx(
            trial.params["train.lr"], rel=1e-3
        )


class TestHalving:
    """Epochs 16: rungs at 2, 4 and 8."""

    @pytest.fixture
    def board(self):
        return optuna.create_study(direction="maximize")

    def reports(self, board, values, epoch=2, epochs=16):
        """Whether a new trial with these values, by split, goes on."""
        judge = Halving(board, board.ask(), epochs)
        return self.goes_on(judge, values, epoch)

    def goes_on(self, judge, values, epoch=2):
        try:
            judge(epoch, {Replica(split, 0): value for split, value in values.items()})
        except StoppedError:
            return False
        return True

    def test_epochs(self, board):
        assert [Halving(board, board.ask(), epochs).epochs for epochs in (500, 16, 3, 1)] == [
            [62, 125, 250],
            [2, 4, 8],
            [1],
            [],
        ]

    def test_the_better_half_goes_on_from_the_fourth_trial_on(self, board):
        found = [self.reports(board, {0: value}) for value in (0.5, 0.6, 0.1, 0.2, 0.55, 0.58, 0.9, 0.5)]
        assert found == [True, True, True, False, True, True, True, False]

    def test_each_epoch_has_its_own_comparison(self, board):
        for _ in range(5):
            self.reports(board, {0: 0.9}, epoch=2)
        assert not self.reports(board, {0: 0.5}, epoch=2)
        assert self.reports(board, {0: 0.5}, epoch=4)

    def test_trials_are_compared_on_the_same_runs(self, board):
        """Split 1 is easy: what it gives to others does not count against a trial without it."""
        for _ in range(4):
            self.reports(board, {0: 0.5, 1: 0.9})
        assert self.reports(board, {0: 0.6})
        for _ in range(3):
            self.reports(board, {0: 0.1})
        assert not self.reports(board, {0: 0.3, 1: 0.9})

    def test_groups_are_compared_together(self, board):
        for _ in range(4):
            self.reports(board, {0: 0.5, 1: 0.5})
        judge = Halving(board, board.ask(), 16)
        assert self.goes_on(judge, {0: 0.6}, 2)
        assert self.goes_on(judge, {0: 0.6}, 4)
        assert not self.goes_on(judge, {1: 0.1}, 2)
        assert board.get_trials()[-1].intermediate_values == {2: 0.6, 4: 0.6, 18: 0.35}

    def test_a_trial_that_failed_is_not_compared_with(self, board):
        for _ in range(6):
            judge = Halving(board, trial := board.ask(), 16)
            judge(2, {Replica(0, 0): 0.9})
            board.tell(trial, state=optuna.trial.TrialState.FAIL)
        assert self.reports(board, {0: 0.1})

    def test_equal_trials_go_on(self, board):
        assert all(self.reports(board, {0: 0.5}) for _ in range(8))

    def test_nothing_is_compared_before_the_first_evaluation(self, board):
        nothing = -float("inf")
        for value in (0.4, 0.5, 0.5, 0.5):
            self.reports(board, {0: value, 1: value})
        assert self.reports(board, {0: nothing, 1: nothing})
        assert "rungs" not in board.get_trials()[-1].user_attrs
        assert not self.reports(board, {0: nothing, 1: 0.5})
