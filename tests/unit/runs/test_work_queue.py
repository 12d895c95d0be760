"""Who trains what: groups that are planned once, held by one at a time, and let go with the process that held them."""

import json
import signal
import threading
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gumbel_mpnn.runs import BusyError, SettingFolder
from gumbel_mpnn.runs.store import record_of
from gumbel_mpnn.runs.work_queue import WorkQueue, even_groups
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task, train
from gumbel_mpnn.util.errors import DivergedError
from gumbel_mpnn.util.locks import FileLock, alone
from helpers import fresh_processes, make_settings, make_task, replicas
from quick_fit import figures, names, quick, stored

SETTINGS = make_settings(epochs=2)
A, B, C, D = ALL = replicas((0, 0), (0, 1), (1, 0), (1, 1))


@pytest.fixture(scope="module")
def outcomes():
    return {outcome.replica: outcome for outcome in train(make_task(), SETTINGS, ALL)}


@pytest.fixture
def folder(tmp_path):
    return SettingFolder.of(tmp_path, "try", SETTINGS, "abc")


@pytest.fixture
def queue(folder):
    return WorkQueue(folder)


@pytest.fixture
def finish(folder, outcomes):
    def write(*chosen):
        for replica in chosen:
            record = record_of(outcomes[replica], SETTINGS, "abc", "accuracy", torch.device("cpu"))
            folder.write(outcomes[replica], record)

    return write


def files(folder):
    return sorted(path.name for path in folder.path.iterdir() if path.is_file())


def checkpoint(folder, *group):
    folder.checkpoint(group).write_bytes(b"the state of a group")


class TestEvenGroups:
    @pytest.mark.parametrize(
        ("count", "size", "expected"),
        [
            (0, 4, []),
            (1, 4, [1]),
            (4, 4, [4]),
            (5, 4, [2, 3]),
            (9, 4, [3, 3, 3]),
            (10, 4, [3, 3, 4]),
            (3, 1, [1, 1, 1]),
        ],
    )
    def test_worked_by_hand(self, count, size, expected):
        assert [len(group) for group in even_groups([A] * count, size)] == expected

    @given(st.integers(0, 60), st.integers(1, 20))
    def test_few_even_and_in_order(self, count, size):
        wanted = [Replica(0, seed) for seed in range(count)]
        groups = even_groups(wanted, size)
        assert [replica for group in groups for replica in group] == wanted
        lengths = [len(group) for group in groups]
        assert len(groups) == -(-count // size)
        assert max(lengths, default=0) <= size
        assert max(lengths, default=0) - min(lengths, default=0) <= 1


class TestPlans:
    def test_what_is_missing_in_groups(self, queue, folder, finish):
        finish(B)
        assert queue.plan(ALL, 2).free == [[A], [C, D]]
        assert files(folder) == sorted(folder.group_file(group).name for group in ([A], [C, D]))

    def test_a_plan_stays_whoever_asks_and_however_much_memory_there_is(self, queue, folder):
        assert queue.plan(ALL, 2).free == [[A, B], [C, D]]
        assert WorkQueue(folder).plan([D, C, B, A], 1).free == [[A, B], [C, D]]

    def test_groups_with_a_checkpoint_that_nobody_trains(self, queue, folder, finish):
        queue.plan(ALL, 2)
        assert queue.begun(ALL) == []
        checkpoint(folder, A, B)
        checkpoint(folder, C, D)
        finish(A)
        assert queue.begun(ALL) == [[A, B], [C, D]]
        assert queue.begun([B, C]) == [[A, B]]
        with queue.next(ALL, 2) as claim:
            assert claim.group == [A, B]
            assert queue.begun(ALL) == [[C, D]]

    def test_a_group_keeps_its_finished_replicas(self, queue, finish):
        queue.plan(ALL, 4)
        finish(B, D)
        assert queue.plan(ALL, 4).free == [ALL]

    def test_a_group_that_is_finished_is_forgotten_with_its_checkpoint(self, queue, folder, finish):
        queue.plan([A, B], 2)
        checkpoint(folder, A, B)
        (folder.path / f".{folder.checkpoint([A, B]).name}.99-abc").write_bytes(b"half")
        finish(A, B)
        assert queue.plan(ALL, 2).free == [[C, D]]
        assert files(folder) == [folder.group_file([C, D]).name]

    def test_a_mere_plan_with_replicas_that_nobody_wants_now_is_dropped(self, queue, folder):
        queue.plan(ALL, 4)
        assert queue.plan([A, B], 4).free == [[A, B]]
        assert files(folder) == [folder.group_file([A, B]).name]

    def test_work_on_replicas_that_nobody_wants_now_is_kept(self, queue, folder):
        queue.plan(ALL, 4)
        checkpoint(folder, *ALL)
        assert queue.plan([A, B], 4).free == [[A, B]]
        assert folder.checkpoint(ALL).exists()
        assert queue.plan(ALL, 4).free == [ALL]

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", "[1]", '["split0"]', '["split0-seed0"]'])
    def test_a_group_file_that_is_none_is_swept(self, queue, folder, text):
        folder.path.mkdir(parents=True)
        (folder.path / "group-0123.json").write_text(text)
        assert queue.plan(ALL, 4).free == [ALL]
        assert files(folder) == [folder.group_file(ALL).name]
        assert json.loads(folder.group_file(ALL).read_text()) == [str(replica) for replica in ALL]


def hold_all(folder, told):
    claim = WorkQueue(folder).next(ALL, 4)
    told.send(claim is not None)
    signal.pause()


class TestHolding:
    def test_a_group_is_held_by_one(self, queue, folder):
        other = WorkQueue(folder)
        with queue.next(ALL, 2) as first, other.next(ALL, 2) as second:
            assert (first.group, second.group) == ([A, B], [C, D])
            assert queue.next(ALL, 2) is None
            assert queue.plan(ALL, 2).held == [folder.group_file([A, B]), folder.group_file([C, D])]
        assert queue.plan(ALL, 2).free == [[A, B], [C, D]]

    def test_all_is_held_once_what_is_free_is_finished_or_held_too(self, queue, folder, finish):
        assert not queue.all_held(ALL)
        with queue.next([A, B], 2):
            assert queue.all_held([A, B])
            assert not queue.all_held([A, B, C])
            finish(C)
            assert queue.all_held([A, B, C])
        assert not queue.all_held([A, B])
        finish(A, B)
        assert not queue.all_held([A, B, C])  # nothing is missing

    def test_what_is_held_is_not_grouped_anew(self, queue, folder):
        with queue.next([A, B], 2):
            assert WorkQueue(folder).next([B, C], 4).group == [C]
            assert WorkQueue(folder).next([A], 4) is None

    def test_work_that_overlaps_what_is_held_waits(self, queue, folder):
        queue.plan(ALL, 4)
        checkpoint(folder, *ALL)
        with queue.next([A, B], 2):
            assert WorkQueue(folder).next(ALL, 4).group == [C, D]

    def test_closing_takes_everything_away(self, queue, folder, finish):
        with queue.next(ALL, 4) as claim:
            checkpoint(folder, *ALL)
            finish(*ALL)
            claim.close()
        assert files(folder) == []
        assert queue.next(ALL, 4) is None

    def test_what_diverged_is_claimed_by_nobody_again(self, queue, folder):
        with queue.next(ALL, 2) as first, WorkQueue(folder).next(ALL, 2) as second:
            checkpoint(folder, A, B)
            first.give_up([str(B)])
            second.give_up([str(C), str(D)])
        assert files(folder) == ["diverged.json"]
        for wanted, ask in product((ALL, [A, B], [D]), (queue.plan, queue.next, queue.wait)):
            with pytest.raises(DivergedError):
                ask(wanted, 4)
        assert files(folder) == ["diverged.json"]
        assert queue.next([A], 4).group == [A]

    def test_what_diverged_once_and_is_recorded_keeps_nobody_off(self, queue, folder, finish):
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.remember_diverged([str(A)])
        finish(A)
        assert queue.next([A, B], 4).group == [B]

    def test_tidying_leaves_what_is_not_finished_or_held(self, queue, folder, finish):
        queue.plan(ALL, 2)
        finish(A, B, C)
        held = FileLock(folder.group_file([A, B]))
        held.take(wait=False)
        queue.tidy()
        held.release()
        assert files(folder) == sorted(folder.group_file(group).name for group in ([A, B], [C, D]))
        queue.tidy()
        assert files(folder) == [folder.group_file([C, D]).name]

    def test_waiting_ends_with_the_work(self, queue, folder, finish):
        waiting = threading.Thread(target=WorkQueue(folder).wait, args=(ALL, 4))
        with queue.next(ALL, 4) as claim:
            waiting.start()
            waiting.join(0.05)
            assert waiting.is_alive()
            finish(*ALL)
            claim.close()
        waiting.join(60)
        assert not waiting.is_alive()

    def test_a_killed_process_holds_nothing(self, queue, folder):
        context = fresh_processes()
        ours, theirs = context.Pipe()
        child = context.Process(target=hold_all, args=(folder, theirs), daemon=True)
        child.start()
        assert ours.recv() is True
        assert queue.next(ALL, 4) is None
        child.kill()
        queue.wait(ALL, 4)
        child.join()
        assert queue.next(ALL, 4).group == ALL


class TestAlone:
    def test_one_at_a_time(self, tmp_path):
        inside, most = [], []

        def enter():
            for _ in range(50):
                with alone(tmp_path / ".lock"):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()

        threads = [threading.Thread(target=enter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(most) == 200
        assert max(most) == 1
        assert list(tmp_path.iterdir()) == []

    def test_a_file_that_was_left_is_no_lock(self, tmp_path):
        (tmp_path / ".lock").touch()
        with alone(tmp_path / ".lock"):
            pass

    def test_without_locks_a_warning(self, tmp_path, monkeypatch):
        monkeypatch.setattr("gumbel_mpnn.util.locks.fcntl", None)
        (tmp_path / "file").touch()
        with pytest.warns(UserWarning, match="run one process at a time"):
            assert FileLock(tmp_path / "file").take(wait=False)


class TestFit:
    """Two calls of `fit` on one setting, the second while the first is at work."""

    @pytest.fixture
    def during(self, tmp_path, every_epoch):
        def run(second, **options):
            class Meanwhile:
                def prepare(self, *_): ...

                def begin(self, *_): ...
                def group(self, *_): ...
                def wait(self): ...
                def end(self, *_): ...

                def progress(self, epoch, best):
                    if epoch == 3:
                        second()

            return quick(runs=tmp_path, monitor=Meanwhile(), **options)

        return run

    def test_who_does_not_wait_is_told(self, during, tmp_path):
        def second():
            with pytest.raises(BusyError, match="another process is training gcn on own"):
                quick(runs=tmp_path, wait=False)

        assert names(during(second)) == [(0, 0), (1, 0)]

    def test_and_has_made_nothing_in_vain(self, during, tmp_path, monkeypatch):
        def other():
            monkeypatch.setattr(Task, "of", lambda *_, **__: pytest.fail("made what to train on"))
            with pytest.raises(BusyError):
                quick(runs=tmp_path, wait=False)

        during(other)

    def test_other_replicas_are_trained_beside(self, during, tmp_path):
        beside = []
        first = during(lambda: beside.append(quick(splits=[1], runs=tmp_path)), splits=[0])
        assert names(first) == [(0, 0)]
        assert names(beside[0]) == [(1, 0)]

    def test_who_waits_has_the_same_records(self, during, tmp_path):
        found = []
        waiting = threading.Thread(target=lambda: found.append(quick(runs=tmp_path)))
        first = during(waiting.start)
        waiting.join()
        assert found[0].records == first.records

    def test_who_waits_for_what_diverges_does_not_train_it_again(self, during, tmp_path, trained):
        told = []
        diverging = {"overrides": ["train.lr=1e30"]}

        def second():
            with pytest.raises(DivergedError) as caught:
                quick(runs=tmp_path, **diverging)
            told.append(str(caught.value))

        waiting = threading.Thread(target=second)
        with pytest.raises(DivergedError):
            during(waiting.start, **diverging)
        waiting.join()
        assert len(trained) == 1
        assert "tried before" in told[0]
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["diverged.json"]

    def test_a_group_that_died_between_its_records_ends_in_the_same_bytes(self, tmp_path, monkeypatch):
        """Without a checkpoint the whole group is trained again; the record that was there stays as it was."""
        whole = quick(seeds=2)
        write, written = SettingFolder.write, []

        def power_cut(folder, outcome, *rest):
            if written:
                raise KeyboardInterrupt
            written.append(outcome)
            write(folder, outcome, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(SettingFolder, "write", power_cut)
            with pytest.raises(KeyboardInterrupt):
                quick(seeds=2, runs=tmp_path)
        (record,) = tmp_path.rglob("record.json")
        before = record.stat().st_mtime_ns
        ended = quick(seeds=2, runs=tmp_path)
        assert (figures(ended), stored(ended)) == (figures(whole), stored(whole))
        assert record.stat().st_mtime_ns == before

    def test_a_group_that_died_after_its_records_leaves_nothing(self, tmp_path, monkeypatch):
        """The next fit, which has nothing to train, finds what is left of it."""

        def power_cut(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(WorkQueue, "forget", power_cut)
            with pytest.raises(KeyboardInterrupt):
                quick(seeds=2, runs=tmp_path)
        (left,) = tmp_path.rglob("group-*.json")
        (left.parent / ".lock").touch()
        ended = quick(seeds=2, runs=tmp_path)
        expected = {"data.json", *(str(Replica(*name)) for name in names(ended))}
        assert {path.name for path in left.parent.iterdir()} == expected
