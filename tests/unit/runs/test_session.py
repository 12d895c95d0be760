"""Sessions: nothing is done twice, nothing depends on how the work was cut up, and what breaks is mended."""

import errno
import gc
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from gumbel_mpnn.baselines.sdrf import SDRF
from gumbel_mpnn.candidates import Local
from gumbel_mpnn.runs.progress import Monitor
from gumbel_mpnn.runs.store import SettingFolder, find_records
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task, build
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util.errors import (
    DataError,
    DivergedError,
    MissingDataError,
    TooLargeError,
    UserError,
    is_out_of_memory,
)
from helpers import changed, make_settings, make_task, small_data
from quick_fit import TABLES, figures, find, fit, names, quick, stored

SIX, FOUR = {"splits": [0, 1], "seeds": 3}, {"splits": [0, 1], "seeds": 2}


class Notes(Monitor):
    """A monitor that writes down what it is told."""

    def __init__(self):
        super().__init__()
        self.began, self.sizes, self.told, self.resumed, self.ended = [], [], [], [], []

    def begin(self, titles, missing, finished, round):
        self.began.append((missing, finished))

    def memory(self, size):
        self.sizes.append(size)

    def resume(self, setting, group, epoch, runs):
        self.resumed.append(epoch)

    def progress(self, setting, group, runs, best):
        self.told.append((runs, best))

    def end(self, setting, run):
        self.ended.append(run)


class TestFolders:
    def test_the_layout_under_the_folder(self, tmp_path):
        run = quick(splits=[1], runs=tmp_path, experiment="mine")
        files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
        setting = f"mine/own/gcn/{run.records[0].fingerprint}"
        base = f"{setting}/split1-seed0"
        expected = [f"{base}/{name}" for name in ("history.jsonl", "model.safetensors", "record.json")]
        assert files == [f"{setting}/data.json", *expected]
        assert run.folders == [str(tmp_path / base)]

    def test_runs_in_memory_last_as_long_as_their_result(self):
        run = quick(splits=[0])
        path = run.folder.path
        assert path.exists()
        del run
        gc.collect()
        assert not path.exists()

    @pytest.mark.parametrize("model", ["sdrf", "gumbel-mpnn"])
    def test_nothing_is_prepared_for_what_is_finished(self, tmp_path, monkeypatch, model):
        first, notes = quick(model=model, runs=tmp_path), Notes()
        with monkeypatch.context() as patch:
            for kind, name in ((SDRF, "forward"), (Local, "propose"), (Task, "of")):
                patch.setattr(kind, name, lambda *_, **__: pytest.fail("prepared"))
            again = quick(model=model, runs=tmp_path, monitor=notes)
        assert again.records == first.records
        assert (notes.began, notes.ended) == ([([0], [2])], [again])
        assert torch.equal(again.rewire().edge_index, first.rewire().edge_index)
        assert again.predict() == first.predict()
        assert again.scores(small_data()) == first.scores(small_data())

    def test_only_what_is_missing_is_trained(self, tmp_path, trained):
        quick(splits=[0], seeds=2, runs=tmp_path)
        quick(splits=[0, 1], seeds=3, runs=tmp_path)
        assert trained == [[(0, 0), (0, 1)], [(0, 2), (1, 0), (1, 1), (1, 2)]]
        quick(splits=[1], seeds=[7], runs=tmp_path)
        assert trained[2:] == [[(1, 7)]]
        assert len(list(find_records(tmp_path))) == 7

    def test_records_come_in_the_order_asked_for(self, tmp_path):
        quick(**SIX, runs=tmp_path)
        run = quick(splits=[1, 0, 1], seeds=[2, 0, 2], runs=tmp_path)
        assert names(run) == [(1, 2), (1, 0), (0, 2), (0, 0)]
        assert [folder.rpartition("/")[2] for folder in run.folders][:2] == ["split1-seed2", "split1-seed0"]

    @pytest.mark.parametrize(
        "change",
        [
            {"overrides": ["train.lr=0.02"]},
            {"model": "mlp"},
            {"data": small_data(seed=1)},
            {"data": changed(small_data(), y=small_data().y.flip(0))},
            {"data": changed(small_data(), edge_weight=torch.full((72,), 0.5))},
            {"data": changed(small_data(), candidate_index=torch.tensor([[0, 1, 2], [9, 9, 9]]))},
            {"overrides": ["data.undirected=false"]},
        ],
        ids=["setting", "model", "data", "labels", "weights", "candidates", "direction"],
    )
    def test_other_settings_or_data_are_another_run(self, tmp_path, trained, change):
        quick(splits=[0], runs=tmp_path)
        quick(**{"splits": [0], **change}, runs=tmp_path)
        assert len(trained) == 2

    def test_a_folder_that_cannot_be_made_is_told_before_training(self, tmp_path, no_training):
        (tmp_path / "runs").write_text("a file")
        no_training()
        with pytest.raises(UserError, match=f"cannot write the runs in {tmp_path / 'runs'}"):
            quick(runs=tmp_path / "runs")

    def test_a_damaged_record_is_told_not_trained_over(self, tmp_path):
        run = quick(splits=[0], runs=tmp_path)
        path = run.folder.path / "split0-seed0/record.json"
        path.write_text("{")
        with pytest.raises(DataError, match="delete its folder"):
            quick(splits=[0], runs=tmp_path)
        assert path.read_text() == "{"


def test_what_diverged_leaves_no_checkpoint_and_other_runs_are_trained(tmp_path, monkeypatch, every_epoch):
    def one_diverges(trainer, seconds):
        raise DivergedError("out of all bounds")

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "outcomes", one_diverges)
        with pytest.raises(DivergedError, match="out of all bounds"):
            quick(runs=tmp_path)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {".lock"}
    assert names(quick(runs=tmp_path, splits=[0])) == [(0, 0)]


class TestGroups:
    @pytest.fixture
    def cut_after(self, monkeypatch):
        """While it lasts, the power is cut after so many records."""

        @contextmanager
        def cut(count):
            write, written = SettingFolder.write, []

            def power_cut(folder, outcome, *rest):
                if len(written) == count:
                    raise KeyboardInterrupt
                written.append(outcome)
                write(folder, outcome, *rest)

            with monkeypatch.context() as patch:
                patch.setattr(SettingFolder, "write", power_cut)
                yield

        return cut

    @pytest.mark.parametrize("at_once", [1, 2, 4])
    def test_the_same_figures_in_groups(self, trained, at_once):
        each = build.plan_groups(make_settings(options=TABLES["model"]), make_task(), 0)[1]
        grouped = quick(**SIX, memory=int((at_once + 0.5) * each / build.SHARE_OF_FREE))
        assert [len(group) for group in trained] == {1: [1] * 6, 2: [2] * 3, 4: [3] * 2}[at_once]
        whole = quick(**SIX)
        assert len(trained[-1]) == 6
        torch.testing.assert_close(torch.tensor(figures(grouped)), torch.tensor(figures(whole)), rtol=1e-4, atol=1e-4)
        for split, seed in names(whole):
            replica = Replica(split, seed)
            torch.testing.assert_close(grouped.folder.state(replica), whole.folder.state(replica), rtol=1e-4, atol=1e-4)

    def test_on_a_cpu_no_hidden_layer_of_a_group_is_large(self, trained, monkeypatch):
        layer = 4 * make_task().graph.num_nodes * TABLES["model"]["hidden_channels"]
        monkeypatch.setattr(build, "LARGE_ARRAY", 2 * layer)
        quick(**SIX)
        assert [len(group) for group in trained] == [2, 2, 2]

    def test_a_group_that_turns_out_too_large_is_halved(self, monkeypatch, trained):
        step = Trainer.step

        def short_of_memory(trainer):
            if len(trainer.replicas) > 2:
                raise torch.OutOfMemoryError
            step(trainer)

        monkeypatch.setattr(Trainer, "step", short_of_memory)
        assert names(quick(**SIX)) == [(split, seed) for split in (0, 1) for seed in range(3)]
        sizes = list(map(len, trained))
        assert [size for size in sizes if size > 2] == [6, 3]
        assert sum(size for size in sizes if size <= 2) == 6

    def test_no_checkpoint_stays_of_a_group_that_was_halved(self, tmp_path, monkeypatch, every_epoch):
        outcomes, halved = Trainer.outcomes, []

        def short_of_memory(trainer, seconds):
            if len(trainer.replicas) > 1:
                halved.extend(tmp_path.rglob("checkpoint-*"))
                raise torch.OutOfMemoryError
            return outcomes(trainer, seconds)

        monkeypatch.setattr(Trainer, "outcomes", short_of_memory)
        quick(runs=tmp_path)
        assert len(halved) == 1
        assert not list(tmp_path.rglob("checkpoint-*"))

    def test_a_group_dies_between_its_records(self, tmp_path, cut_after, every_epoch, no_training):
        whole = quick(**SIX)
        with cut_after(2), pytest.raises(KeyboardInterrupt):
            quick(**SIX, runs=tmp_path)
        assert len(list(find_records(tmp_path))) == 2
        no_training()
        ended = quick(**SIX, runs=tmp_path)
        assert (figures(ended), stored(ended)) == (figures(whole), stored(whole))
        assert not list(tmp_path.rglob("checkpoint-*"))

    def test_a_group_that_died_without_a_checkpoint_ends_in_the_same_bytes(self, tmp_path, cut_after):
        """The whole group is trained again; the record that was there stays as it was."""
        whole = quick(seeds=2)
        with cut_after(1), pytest.raises(KeyboardInterrupt):
            quick(seeds=2, runs=tmp_path)
        (record,) = tmp_path.rglob("record.json")
        before = record.stat().st_mtime_ns
        ended = quick(seeds=2, runs=tmp_path)
        assert (figures(ended), stored(ended)) == (figures(whole), stored(whole))
        assert record.stat().st_mtime_ns == before

    def test_an_interrupted_group_goes_on_beside_new_ones(self, tmp_path, every_epoch, trained):
        class Impatient(Notes):
            def progress(self, setting, group, runs, best):
                if runs == pytest.approx(2 * 4 / 6):
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            quick(splits=[0], seeds=2, runs=tmp_path, monitor=Impatient())
        notes = Notes()
        run = quick(**SIX, runs=tmp_path, monitor=notes)
        assert trained == [[(0, 0), (0, 1)], [(0, 0), (0, 1)], [(0, 2), (1, 0), (1, 1), (1, 2)]]
        assert notes.resumed == [3]
        whole = quick(**SIX)
        torch.testing.assert_close(torch.tensor(figures(run)), torch.tensor(figures(whole)), rtol=1e-4, atol=1e-4)


def test_what_a_monitor_is_told(tmp_path, every_epoch):
    notes = Notes()
    quick(splits=[0], runs=tmp_path)
    run = quick(**SIX, runs=tmp_path, memory=1, monitor=notes)
    assert notes.began == [([5], [1])]
    assert notes.sizes == [build.plan_groups(run.settings, make_task(), 0)[1]] * 5  # of one replica at a time
    assert [runs for runs, _ in notes.told] == pytest.approx([k / 6 for k in (1, 2, 3, 4, 5, 6, 6)] * 5)
    assert notes.told[-1][1] == run.records[-1].val
    assert notes.ended == [run]


class TestTwoProcesses:
    """Two calls of `fit` on one setting, the second while the first is at work."""

    @pytest.fixture
    def during(self, tmp_path, every_epoch):
        def run(second, **options):
            class Meanwhile(Monitor):
                def progress(self, setting, group, runs, best):
                    if not begun:
                        begun.append(group)
                        second()

            begun = []
            return quick(runs=tmp_path, monitor=Meanwhile(), **options)

        return run

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


SAFE = "finished runs are safe: solve the problem and repeat the command to continue"


@pytest.fixture
def full_after(monkeypatch):
    """While it lasts, a disk on which so many files can be written, and no more."""

    @contextmanager
    def fill(count):
        fsync, written = os.fsync, []

        def write(handle):
            if len(written) == count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written.append(handle)
            fsync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", write)
            yield

    return fill


@pytest.mark.parametrize("files", range(0, 13, 2))
def test_a_full_disk_whenever_it_happens(tmp_path, full_after, files):
    """Facts of the data, and then model, history and record of four runs: thirteen files."""
    whole = quick(**FOUR)
    with full_after(files), pytest.raises(UserError) as error:
        quick(**FOUR, runs=tmp_path)
    words = rf"cannot write the runs in {tmp_path}.*No space left on device.*{SAFE}"
    assert re.fullmatch(f".*{words}.*", str(error.value))  # in one line
    finished = list(find_records(tmp_path))
    assert len(finished) == max(0, files - 1) // 3
    ended = quick(**FOUR, runs=tmp_path)
    assert (figures(ended), stored(ended)) == (figures(whole), stored(whole))
    assert ended.records[: len(finished)] == tuple(finished)
    setting = ended.folder.path
    folders = [Path(folder).name for folder in ended.folders]
    assert sorted(path.name for path in setting.iterdir()) == ["data.json", *sorted(folders)]


def test_no_room_for_a_checkpoint(tmp_path, every_epoch, full_after):
    with full_after(4), pytest.raises(UserError, match="No space left on device"):
        quick(**FOUR, runs=tmp_path)
    assert len(list(tmp_path.rglob("checkpoint-*.safetensors"))) == 1


def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    def refuse(self, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    first = quick(**FOUR, runs=tmp_path)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UserError, match=f"Permission denied.*{SAFE}"):
        quick(splits=[0, 1], seeds=3, runs=tmp_path)
    assert len(list(find_records(tmp_path))) == 4
    assert quick(**FOUR, runs=tmp_path).records == first.records


LITTLE = {"preset": None, "overrides": ["model.hidden_channels=4", "train.epochs=1"], "experiment": "here"}


class TestFinding:
    @pytest.fixture(scope="class")
    def store(self, tmp_path_factory):
        """Two splits with two seeds each."""
        folder = tmp_path_factory.mktemp("runs")
        return folder, fit(small_data(), "gcn", seeds=2, runs=folder, device="cpu", **LITTLE)

    def test_the_same_run(self, store):
        folder, run = store
        found = find(small_data(), "gcn", seeds=2, runs=folder, **LITTLE)
        assert figures(found) == figures(run)
        assert (found.settings, found.metric, found.folders) == (run.settings, run.metric, run.folders)
        assert found.predict() == run.predict()

    @pytest.mark.parametrize(
        "change",
        [{"seeds": 3}, {"overrides": ["train.epochs=2"]}, {"experiment": "there"}],
        ids=lambda change: next(iter(change)),
    )
    def test_nothing_where_something_is_left_to_train(self, store, change):
        folder, _ = store
        assert find(small_data(), "gcn", runs=folder, **{"seeds": 2, **LITTLE, **change}) is None

    def test_nothing_is_written(self, tmp_path):
        assert find(small_data(), "gcn", runs=tmp_path / "none", **LITTLE) is None
        assert list(tmp_path.iterdir()) == []

    def test_missing_data(self, tmp_path, no_data_sets):
        (tmp_path / "data").mkdir()
        with pytest.raises(MissingDataError, match="cora"):
            find("cora", "gcn", runs=tmp_path / "runs", root=tmp_path / "data")


HUGE = {
    "width": ("gcn", {"model": {"hidden_channels": 200_000, "num_layers": 9}}),
    "scorer": ("gumbel-mpnn", {"rewiring": {"scorer": "bilinear", "scorer.channels": 10**7}}),
    "decoys": ("gumbel-mpnn", {"rewiring": {"scorer": {"name": "neighborhood", "decoys": 1e15}}}),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_run_that_does_not_fit_is_refused_before_training(name, no_training):
    model, settings = HUGE[name]
    no_training()
    with pytest.raises(UserError, match=rf"^one run of {model} on .* does not fit .* cpu: try a smaller model\.hidden"):
        fit(small_data(), model, settings=settings, device="cpu")


def test_the_allocator_of_a_cpu_is_caught(monkeypatch):
    """The memory is really asked for: an estimate cannot know what others take meanwhile."""
    groups = []

    def step(self):
        groups.append(len(self.places))
        torch.empty(2**60, dtype=torch.uint8)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(
        TooLargeError, match=r"does not fit into the memory of cpu: try a smaller model\.hidden_channels"
    ):
        fit(small_data(), "gcn", settings={"train": {"epochs": 2}}, device="cpu", splits=[0, 1], seeds=2)
    assert groups[0] == 4
    assert groups[-1] == 1


def test_other_errors_are_not_taken_for_missing_memory():
    assert not is_out_of_memory(RuntimeError("the size of tensor a must match"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(torch.OutOfMemoryError())
