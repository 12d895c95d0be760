"""`fit`: nothing is done twice, nothing depends on how the work was cut up."""

import gc
import warnings

import numpy as np
import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.baselines.sdrf import SDRF
from gumbel_mpnn.candidates import Local
from gumbel_mpnn.data import add_splits
from gumbel_mpnn.runs import fit
from gumbel_mpnn.runs.query.index import RunIndex
from gumbel_mpnn.runs.record import find_records
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task, device, metrics
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util import tensors
from gumbel_mpnn.util.errors import DataError, DataWarning, DivergedError, UnknownNameError, UserError
from helpers import changed, make_settings, make_task, small_data
from quick_fit import TABLES, edit, figures, history, names, quick, resolved, stored

SIX = {"splits": [0, 1], "seeds": 3}
TOO_FAST = {"overrides": ["train.lr=1e30"]}


class Notes:
    """A monitor that writes down what it is told."""

    def __init__(self):
        self.prepared, self.began, self.groups, self.epochs, self.ended = [], [], [], [], []

    def prepare(self, done, total):
        self.prepared.append((done, total))

    def begin(self, settings, replicas, finished, groups, bytes_needed):
        self.began.append((replicas, finished, groups))
        self.settings, self.bytes_needed = settings, bytes_needed

    def group(self, replicas, epochs):
        self.groups.append((replicas, epochs))

    def progress(self, epoch, best):
        self.epochs.append(epoch)
        self.best = best

    def end(self, run):
        self.ended.append(run)


def without_masks(data):
    return changed(data, train_mask=None, val_mask=None, test_mask=None)


class TestFolders:
    def test_the_same_in_memory_and_in_a_folder(self, tmp_path):
        here, there = quick(**SIX), quick(**SIX, runs=tmp_path)
        assert figures(here) == figures(there)
        assert stored(here) == stored(there)

    def test_the_layout_under_the_folder(self, tmp_path):
        run = quick(splits=[1], runs=tmp_path, experiment="mine")
        files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
        setting = f"mine/own/gcn/{run.records[0].fingerprint}"
        base = f"{setting}/split1-seed0"
        expected = [f"{base}/{name}" for name in ("history.jsonl", "model.safetensors", "record.json")]
        assert files == [f"{setting}/data.json", *expected]
        assert run.folders == [str(tmp_path / base)]

    def test_a_named_graph_has_a_folder_of_that_name(self, tmp_path):
        run = quick(changed(small_data(), name="birds"), runs=str(tmp_path))
        assert run.folder.path.parent == tmp_path / "train/birds/gcn"

    def test_runs_in_memory_last_as_long_as_their_result(self):
        run = quick(splits=[0])
        path = run.folder.path
        assert path.exists()
        del run
        gc.collect()
        assert not path.exists()

    def test_nothing_is_trained_twice(self, tmp_path, no_training):
        first = quick(**SIX, runs=tmp_path)
        no_training()
        again = quick(**SIX, runs=tmp_path)
        assert again.records == first.records
        assert again.to_dict() == first.to_dict()

    @pytest.mark.parametrize("model", ["sdrf", "gumbel-mpnn"])
    def test_nothing_is_prepared_for_what_is_finished(self, tmp_path, monkeypatch, model):
        first, notes = quick(model=model, runs=tmp_path), Notes()
        with monkeypatch.context() as patch:
            for kind, name in ((SDRF, "forward"), (Local, "propose"), (Task, "of")):
                patch.setattr(kind, name, lambda *_, **__: pytest.fail("prepared"))
            again = quick(model=model, runs=tmp_path, monitor=notes)
        assert again.records == first.records
        assert (notes.began, notes.ended) == ([(2, 2, 0)], [again])
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

    def test_runs_without_models_are_done_again_where_models_are_wanted(self, tmp_path, trained):
        four = {"splits": [0, 1], "seeds": 2, "runs": tmp_path}
        first = quick(**four)
        models = stored(first)
        for file in first.folder.path.rglob("record.json"):
            edit(file, seconds=1e6)
        for name in ("split0-seed1", "split1-seed0"):
            (first.folder.path / name / "model.safetensors").unlink()
        assert [record.seconds for record in quick(**four).records] == [1e6] * 4
        assert len(trained) == 1
        notes = Notes()
        with pytest.warns(DataWarning, match="model of 2 finished runs of gcn on own is missing .* trained again"):
            again = quick(**four, models=True, monitor=notes)
        assert trained[1:] == [[(0, 1), (1, 0)]]
        assert notes.began == [(4, 2, 1)]
        assert [record.seconds == 1e6 for record in again.records] == [True, False, False, True]
        torch.testing.assert_close(torch.tensor(figures(again)), torch.tensor(figures(first)), rtol=1e-4, atol=1e-4)
        assert [stored(again)[place] for place in (0, 3)] == [models[place] for place in (0, 3)]
        assert [file.name for file in again.folder.path.iterdir() if file.is_file()] == ["data.json"]

    def test_what_came_later_has_the_same_figures(self, tmp_path):
        whole = quick(**SIX)
        quick(splits=[1], seeds=[2], runs=tmp_path)
        pieced = quick(**SIX, runs=tmp_path)
        torch.testing.assert_close(torch.tensor(figures(pieced)), torch.tensor(figures(whole)), rtol=1e-4, atol=1e-4)

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

    @pytest.mark.parametrize("name", ["../../elsewhere", "a/b"])
    def test_a_name_does_not_lead_out_of_its_folder(self, tmp_path, name):
        run = quick(changed(small_data(), name=name), runs=tmp_path / "runs")
        assert run.folder.path.resolve().parent.parent.parent == tmp_path / "runs" / "train"

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

    def test_no_checkpoint_is_left(self, tmp_path, every_epoch):
        quick(runs=tmp_path)
        assert not list(tmp_path.rglob("checkpoint-*"))


class TestDivergence:
    def test_a_diverged_run_is_not_recorded(self, tmp_path):
        with pytest.raises(DivergedError, match=r"^training diverged \(no finite validation value with"):
            quick(runs=tmp_path, **TOO_FAST)
        assert list(find_records(tmp_path)) == []
        assert RunIndex(tmp_path).settings() == []

    def test_but_remembered_until_its_file_is_deleted(self, tmp_path, trained):
        for _ in range(2):
            with pytest.raises(DivergedError):
                quick(runs=tmp_path, **TOO_FAST)
        with pytest.raises(
            DivergedError, match=r"tried before \(.* of split0-seed0 and 1 more\): .* delete (\S+) to"
        ) as told:
            quick(runs=tmp_path, **TOO_FAST)
        assert (len(trained), told.value.runs) == (1, ("split0-seed0", "split1-seed0"))
        (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
        assert str(file) in str(told.value)
        file.unlink()
        with pytest.raises(DivergedError):
            quick(runs=tmp_path, **TOO_FAST)
        assert len(trained) == 2

    def test_nothing_is_prepared_for_what_is_known_to_diverge(self, tmp_path, monkeypatch):
        with pytest.raises(DivergedError):
            quick(runs=tmp_path, **TOO_FAST)
        monkeypatch.setattr(Task, "of", lambda *_, **__: pytest.fail("made what to train on"))
        with pytest.raises(DivergedError):
            quick(runs=tmp_path, wait=False, **TOO_FAST)

    def test_other_replicas_and_other_settings_are_trained(self, tmp_path):
        with pytest.raises(DivergedError):
            quick(runs=tmp_path, splits=[1], **TOO_FAST)
        with pytest.raises(DivergedError, match="no finite validation value with"):
            quick(runs=tmp_path, splits=[0], **TOO_FAST)
        assert names(quick(runs=tmp_path, splits=[1])) == [(1, 0)]

    def test_only_those_that_diverged_are_remembered(self, tmp_path, monkeypatch):
        def one_diverges(trainer, seconds):
            raise DivergedError("out of all bounds", runs=[str(trainer.replicas[1])])

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "outcomes", one_diverges)
            with pytest.raises(DivergedError):
                quick(runs=tmp_path)
        assert names(quick(runs=tmp_path, splits=[0])) == [(0, 0)]
        with pytest.raises(DivergedError, match=r"of split1-seed0\)"):
            quick(runs=tmp_path)
        assert [record.n for record in RunIndex(tmp_path).settings()] == [1]

    @pytest.mark.parametrize("text", ["", "{", "1"])
    def test_a_damaged_file_is_told(self, tmp_path, text):
        with pytest.raises(DivergedError):
            quick(runs=tmp_path, **TOO_FAST)
        (file,) = tmp_path.rglob("diverged.json")
        file.write_text(text)
        with pytest.raises(DataError, match=rf"^{file} is not a list of diverged runs .*: delete it$"):
            quick(runs=tmp_path, **TOO_FAST)


class TestGroups:
    @pytest.mark.parametrize("at_once", [1, 2, 4])
    def test_the_same_figures_in_groups(self, trained, at_once):
        each = device.plan_groups(make_settings(options=TABLES["model"]), make_task(), 0)[1]
        grouped = quick(**SIX, memory=int((at_once + 0.5) * each / device.SHARE_OF_FREE))
        assert [len(group) for group in trained] == {1: [1] * 6, 2: [2] * 3, 4: [3] * 2}[at_once]
        whole = quick(**SIX)
        assert len(trained[-1]) == 6
        torch.testing.assert_close(torch.tensor(figures(grouped)), torch.tensor(figures(whole)), rtol=1e-4, atol=1e-4)
        for split, seed in names(whole):
            replica = Replica(split, seed)
            torch.testing.assert_close(grouped.folder.state(replica), whole.folder.state(replica), rtol=1e-4, atol=1e-4)

    def test_on_a_cpu_no_hidden_layer_of_a_group_is_large(self, trained, monkeypatch):
        layer = 4 * make_task().graph.num_nodes * TABLES["model"]["hidden_channels"]
        monkeypatch.setattr(device, "LARGE_ARRAY", 2 * layer)
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
        assert [size for size in sizes if size > 2] == [6, 3, 3]
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

    def test_a_single_run_that_does_not_fit_is_told(self, monkeypatch):
        def no_memory(*_, **__):
            raise torch.OutOfMemoryError

        monkeypatch.setattr(Trainer, "step", no_memory)
        with pytest.raises(UserError, match="one run of gcn on own does not fit into the memory of cpu"):
            quick(**SIX)

    def test_a_group_dies_between_its_records(self, tmp_path, monkeypatch, every_epoch, no_training):
        whole = quick(**SIX)
        write, written = SettingFolder.write, []

        def power_cut(folder, outcome, *rest):
            if len(written) == 2:
                raise KeyboardInterrupt
            written.append(outcome)
            write(folder, outcome, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(SettingFolder, "write", power_cut)
            with pytest.raises(KeyboardInterrupt):
                quick(**SIX, runs=tmp_path)
        assert len(list(find_records(tmp_path))) == 2
        no_training()
        ended = quick(**SIX, runs=tmp_path)
        assert figures(ended) == figures(whole)
        assert stored(ended) == stored(whole)
        assert not list(tmp_path.rglob("checkpoint-*"))

    def test_a_record_that_was_deleted_is_made_again_from_the_checkpoint(
        self, tmp_path, monkeypatch, every_epoch, no_training
    ):
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.unlink", lambda *_, **__: None)
            first = quick(**SIX, runs=tmp_path)
        (first.folder.path / "split1-seed1/record.json").unlink()
        no_training()
        assert figures(quick(**SIX, runs=tmp_path)) == figures(first)
        assert not list(tmp_path.rglob("checkpoint-*"))

    def test_an_interrupted_group_goes_on_beside_new_ones(self, tmp_path, every_epoch, trained):
        class Impatient(Notes):
            def progress(self, epoch, best):
                if epoch == 4:
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            quick(splits=[0], seeds=2, runs=tmp_path, monitor=Impatient())
        notes = Notes()
        run = quick(**SIX, runs=tmp_path, monitor=notes)
        assert trained == [[(0, 0), (0, 1)], [(0, 0), (0, 1)], [(0, 2), (1, 0), (1, 1), (1, 2)]]
        assert notes.epochs[0] == 4
        whole = quick(**SIX)
        torch.testing.assert_close(torch.tensor(figures(run)), torch.tensor(figures(whole)), rtol=1e-4, atol=1e-4)


class TestMonitor:
    def test_what_it_is_told(self, tmp_path, every_epoch):
        notes = Notes()
        quick(splits=[0], runs=tmp_path)
        run = quick(**SIX, runs=tmp_path, memory=1, monitor=notes)
        assert notes.began == [(6, 1, 5)]
        assert notes.settings == run.settings
        assert notes.bytes_needed == device.plan_groups(run.settings, make_task(), 0)[1]  # of one replica at a time
        assert notes.groups == [(1, 6)] * 5
        assert notes.epochs == [1, 2, 3, 4, 5, 6] * 5
        assert notes.best == run.records[-1].val
        assert notes.ended == [run]

    def test_when_nothing_is_missing(self, tmp_path):
        quick(runs=tmp_path)
        notes = Notes()
        quick(runs=tmp_path, monitor=notes)
        assert (notes.began, notes.groups, notes.epochs, len(notes.ended)) == ([(2, 2, 0)], [], [], 1)


class TestOwnData:
    def test_a_graph_without_masks_is_split_60_20_20(self):
        data = without_masks(small_data(nodes=60))
        run = quick(data)
        assert run.data.protocol == "random-60-20-20"
        assert names(run) == [(split, 0) for split in range(10)]
        expected = add_splits(data, "random-60-20-20")
        for mask, size in (("train_mask", 36), ("val_mask", 12), ("test_mask", 12)):
            assert torch.equal(run.data[mask], expected[mask])
            assert (run.data[mask].sum(0) == size).all()

    def test_edges_are_any_integers(self):
        data = small_data()
        small = changed(data, edge_index=data.edge_index.int())
        assert figures(quick(small, "gumbel-mpnn", splits=[0])) == figures(quick(data, "gumbel-mpnn", splits=[0]))

    def test_sparse_features_are_trained_on(self):
        data = small_data()
        assert figures(quick(changed(data, x=data.x.to_sparse()))) == figures(quick(data))

    @pytest.mark.parametrize(
        ("given", "runs"),
        [({"splits": np.arange(2)}, 2), ({"splits": torch.arange(2)}, 2), ({"seeds": np.int64(2)}, 4)],
        ids=["numpy", "torch", "a numpy scalar"],
    )
    def test_splits_and_seeds_are_any_whole_numbers(self, given, runs):
        assert quick(**given).n == runs

    def test_the_given_graph_is_not_touched(self):
        data = without_masks(small_data())
        before = data.to_dict().keys()
        quick(data, splits=[0])
        assert data.to_dict().keys() == before

    def test_a_protocol_takes_the_place_of_masks(self):
        run = quick(overrides=["data.protocol=random-48-32-20"])
        assert run.n == 10
        assert run.data.protocol == "random-48-32-20"

    def test_masks_of_one_split(self):
        data = small_data()
        one = changed(data, **{name: data[name][:, 1] for name in ("train_mask", "val_mask", "test_mask")})
        (record,) = quick(one).records
        assert record.split == 0

    def test_all_splits_and_one_seed_by_default(self):
        assert names(quick()) == [(0, 0), (1, 0)]

    def test_the_metric_of_the_data(self):
        run = quick(changed(small_data(classes=2), metric="roc_auc"))
        assert (run.metric, run.to_dict()["metric"], run.records[0].metric) == ("roc_auc", "roc_auc", "roc_auc")

    @pytest.mark.parametrize("metric", list(metrics))
    def test_the_metric_of_the_settings(self, metric):
        data = changed(small_data(), metric="accuracy")
        run = quick(data, settings={**TABLES, "data": {"metric": metric}})
        assert (run.metric, {record.metric for record in run.records}) == (metric, {metric})
        assert run.scores(data) == [record.test for record in run.records]
        chosen = [max(row["val"] for row in history(run, record)) for record in run.records]
        assert [record.val for record in run.records] == chosen

    def test_an_unknown_metric_is_told_before_the_data_is_read(self):
        with pytest.raises(UserError, match=r"no metric called 'macro-f1': did you mean 'macro_f1'"):
            resolved(small_data(), "gcn", settings={"data": {"metric": "macro-f1"}})

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"x": None, "edge_index": torch.empty(2, 0)}, "neither features nor edges to learn from: give it one of"),
            ({"edge_index": None}, "no edge_index"),
            ({"metric": "f1"}, "there is no metric called 'f1'"),
            ({"edge_index": torch.tensor([[0], [24]])}, "node 24"),
            ({"y": torch.full((24,), -1)}, "no node of the graph has a label"),
            ({"y": None, "train_mask": None, "val_mask": None, "test_mask": None}, "this graph has no labels"),
            ({"val_mask": torch.zeros(24, 2, dtype=torch.bool)}, "the validation mask of split 0 is empty"),
            ({"val_mask": None}, "the validation mask of split 0 is empty.* or set train.select=last and train.epochs"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_a_graph_that_cannot_be_used(self, tmp_path, change, message):
        with pytest.raises(UserError, match=message):
            quick(changed(small_data(), **change), runs=tmp_path / "runs")
        assert not (tmp_path / "runs").exists()

    @pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat", "gumbel-mpnn"])
    def test_a_graph_without_edges(self, model):
        run = quick(changed(small_data(), edge_index=torch.empty(2, 0, dtype=torch.int64)), model)
        assert torch.isfinite(run.predict_proba()).all()
        if model == "gumbel-mpnn":
            assert run.rewire(threshold=0).edge_index.shape[1] > 0

    @pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat", "gumbel-mpnn"])
    @pytest.mark.filterwarnings("ignore:the strategy 'local' finds no candidates")
    def test_a_graph_without_features(self, model):
        with pytest.warns(DataWarning) as told:
            run = quick(changed(small_data(), x=None, num_nodes=24), model)
        assert [str(warning.message) for warning in told if "features" in str(warning.message)] == [
            "this graph has no features, so each node gets one of its own (the identity matrix), which says nothing"
            " about the others: a model can learn from the edges only, so that mlp, which has none, can only guess, and"
            " no model can be applied to other graphs; with data.features=structure, nodes have positions among"
            " communities instead"
        ]
        assert torch.equal(run.data.x, torch.eye(24))
        assert torch.isfinite(run.predict_proba()).all()

    @pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")
    def test_runs_without_features_know_their_own_nodes_only(self):
        own = changed(small_data(), x=None, num_nodes=24)
        run = quick(own)
        with pytest.raises(UserError, match="trained on a graph without features, so they know its nodes only"):
            run.predict(own)
        assert len(run.scores(changed(run.data, edge_index=own.edge_index[:, :4]))) == run.n

    @pytest.mark.parametrize("model", ["gcn", "gumbel-mpnn"])
    @pytest.mark.parametrize("features", ["raw", "row-normalized"])
    @pytest.mark.filterwarnings("ignore::gumbel_mpnn.util.errors.DataWarning")
    def test_the_sparse_identity_gives_the_same_numbers(self, model, features, monkeypatch):
        own = changed(small_data(), x=None, num_nodes=24)
        settings = {**TABLES, "data": {"features": features}}
        dense = quick(own, model, settings=settings)
        monkeypatch.setattr(tensors, "MOST_DENSE", 0)
        sparse = quick(own, model, settings=settings)
        assert sparse.data.x.layout is torch.sparse_coo
        assert torch.equal(sparse.predict_proba(), dense.predict_proba())

    def test_a_metric_that_is_not_defined_on_validation_nodes(self, tmp_path):
        data = small_data(classes=2)
        data.val_mask[:, 1] &= data.y == 1
        data.class_names = ["no", "yes"]
        settings = {**TABLES, "data": {"metric": "roc_auc"}}
        with pytest.raises(DataError, match=r"validation nodes of split 1, which are all of class 1 \('yes'\): set"):
            quick(data, settings=settings, runs=tmp_path / "runs")
        assert not (tmp_path / "runs").exists()
        assert quick(data, settings=settings, splits=[0]).metric == "roc_auc"
        assert quick(data, settings={**TABLES, "data": {"metric": "macro_f1"}}).n == 2

    def test_labels_that_say_nothing(self):
        with pytest.raises(DataError, match="all labelled nodes are of one class"):
            quick(small_data(classes=1))
        own = changed(small_data(), y=torch.arange(24), train_mask=None, val_mask=None, test_mask=None)
        with pytest.raises(DataError, match=r"as many classes as labelled nodes, 24, .*: are these labels ids"):
            quick(own)


class TestMistakes:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"model": "gnc"}, "there is no model called 'gnc': did you mean 'gcn'?"),
            ({"overrides": ["model.droput=0.1"]}, "model 'gcn' has no option 'droput': did you mean 'dropout'"),
            ({"overrides": ["train.epoch=1"]}, "there is no setting 'train.epoch': did you mean 'epochs'?"),
            ({"overrides": ["training.lr=1"]}, "there is no setting 'training': did you mean 'train'?"),
            ({"overrides": ["model.norm=bach"]}, "there is no norm called 'bach': did you mean 'batch'?"),
            ({"overrides": ["train.epochs=0"]}, "setting 'train.epochs' must be 1 or more, but is 0"),
            ({"overrides": ["data.protocol=random"]}, "there is no random split protocol called 'random'"),
            ({"preset": "tund"}, "there is no family of presets called 'tund': did you mean 'tuned'?"),
            ({"preset": ""}, "there is no family of presets called ''"),
            ({"preset": "."}, "there is no family of presets called '.'"),
            ({"preset": "tuned/cora"}, "there is no family of presets called 'tuned/cora': did you mean 'tuned'?"),
            ({"preset": "mine.toml"}, "there is no settings file mine.toml"),
            ({"device": "gpu"}, "there is no device 'gpu': use 'auto', 'cpu' or 'cuda'"),
            ({"device": "mps"}, "the device 'mps' is not supported: use 'auto', 'cpu' or 'cuda'"),
            ({"device": "meta"}, "the device 'meta' is not supported: use 'auto', 'cpu' or 'cuda'"),
            ({"splits": [0, 2]}, "there is no split 2: this data set has splits 0 to 1"),
            ({"splits": [-1]}, "there is no split -1: this data set has splits 0 to 1"),
            ({"splits": 0}, "splits are a list of whole numbers, as [0] or range(3), not 0"),
            ({"splits": "01"}, "splits are a list of whole numbers, as [0] or range(3), not '01'"),
            ({"seeds": None}, "seeds are a list of whole numbers, as [0] or range(3), not None"),
            ({"seeds": [0.5]}, "seeds are a list of whole numbers, as [0] or range(3), not [0.5]"),
            (
                {"data": changed(small_data(), metric=["accuracy"])},
                "data.metric must be the name of one metric, as 'accuracy', not ['accuracy']",
            ),
            ({"splits": []}, "there is nothing to train: give at least one split and one seed"),
            ({"seeds": 0}, "there is nothing to train: give at least one split and one seed"),
            ({"seeds": []}, "there is nothing to train: give at least one split and one seed"),
        ],
        ids=lambda value: "" if isinstance(value, str) else str(value),
    )
    def test_one_sentence_and_nothing_written(self, tmp_path, change, message):
        with pytest.raises(UserError) as caught:
            quick(**change, runs=tmp_path / "runs")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "runs").exists()

    def test_an_unknown_data_set(self):
        with pytest.raises(UnknownNameError, match="there is no data set called 'corra': did you mean 'cora'"):
            fit("corra", "gcn")

    def test_something_that_is_no_data(self):
        with pytest.raises(UserError, match="dataset must be a name or a Data, not 3"):
            fit(3, "gcn")

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
    def test_no_gpu(self):
        with pytest.raises(UserError, match="there is no CUDA device here: use device 'cpu' or 'auto'"):
            quick(device="cuda")

    def test_models_are_found_by_any_spelling(self):
        assert quick(model="GraphSAGE", splits=[0]).settings.model == "sage"


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16])
@pytest.mark.parametrize("model", ["gcn", "gumbel-mpnn"])
def test_labels_of_any_whole_numbers(model, dtype):
    data = small_data()
    runs = [quick(each, model) for each in (data, changed(data, y=data.y.to(dtype)))]
    assert figures(runs[0]) == figures(runs[1])


@pytest.mark.parametrize("model", [gm.GCN, gm.GCN(6, out_channels=3), None])
def test_a_model_is_a_name(model):
    with pytest.raises(UserError, match=r"model must be a name, such as 'gcn', not .*: known are .*gumbel-mpnn"):
        quick(model=model)


def test_a_loss_out_of_all_bounds_is_divergence(tmp_path):
    """The fault: a loss of 1e33 was a finite one, and the run a result."""
    data = small_data()
    with pytest.raises(DivergedError, match=r"below 1e\+10\): try .*, or data.features=standardized if features are"):
        quick(changed(data, x=data.x * 1e33), runs=tmp_path)
    assert list(find_records(tmp_path)) == []
    assert quick(changed(data, x=data.x * 1e33), overrides=["data.features=standardized"]).n == 2


class TestMetricsOfTwoClasses:
    def data(self, part):
        data = changed(small_data(), metric="roc_auc")
        data.y = (data.y > 0).long()
        data.y[data[f"{part}_mask"][:, 1]] = 1
        return data

    def test_one_class_in_validation_is_an_error(self, no_training):
        no_training()
        with pytest.raises(
            DataError, match=r"on the validation nodes of split 1, which are all of class 1: set data.m"
        ):
            quick(self.data("val"))

    def test_one_class_in_the_test_nodes_is_told_before_training(self, trained):
        """The fault: the result was null without a word."""

        def first(message, *_):
            told.append((str(message), len(trained)))

        told = []
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = first
            run = quick(self.data("test"))
        assert [record.test is None for record in run.records] == [False, True]
        assert (
            "the metric roc_auc cannot be computed on the test nodes of split 1, which are all of class 1, so that its"
            " runs have no test result: set data.metric to another one, or use other splits",
            0,
        ) in told


@pytest.mark.parametrize("protocol", ["random-60-20-20", "final"])
def test_classes_too_small_to_validate_on_are_told(protocol):
    data = changed(small_data(), train_mask=None, val_mask=None, test_mask=None)
    data.y = torch.arange(24) % 12
    with pytest.raises(DataError, match="split 0 is empty, so that no epoch can be chosen: add nodes"):
        quick(data, overrides=[f"data.protocol={protocol}"])
