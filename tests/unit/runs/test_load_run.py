"""`load_run`: finished runs from their folder, with the same numbers as after training."""

import json
import pickle
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

import gumbel_mpnn as gm
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import changed, small_data
from quick_fit import quick

CLASSES = ["ant", "bee", "cow"]


@pytest.fixture
def data():
    return changed(small_data(), class_names=CLASSES)


@pytest.fixture
def files(tmp_path):
    """A graph of the user in an npz file."""
    path = tmp_path / "mine.npz"
    gm.data.save_graph(small_data(splits=2), path)
    return path


class TestTheSameNumbers:
    @pytest.mark.parametrize("model", ["gcn", "gumbel-mpnn", "drop-edge"])
    def test_by_folder_and_fingerprint(self, data, tmp_path, model):
        run = quick(data, model, runs=tmp_path)
        grown = small_data(nodes=30, seed=1)
        for name in (run.folder.path, str(run.folder.path), run.records[0].fingerprint[:6]):
            loaded = gm.load_run(name, runs=tmp_path, data=data)
            assert torch.equal(loaded.predict_proba(), run.predict_proba())
            assert torch.equal(loaded.predict_proba(grown), run.predict_proba(grown))
            assert loaded.predict() == run.predict()
            assert (loaded.records, loaded.settings, loaded.metric) == (run.records, run.settings, run.metric)

    def test_one_run_of_several(self, data, tmp_path):
        run = quick(data, runs=tmp_path, seeds=2)
        one = gm.load_run(run.folders[1], data=data)
        assert one.records == run.records[1:2]
        assert not torch.equal(one.predict_proba(), run.predict_proba())

    def test_of_a_data_set_by_name(self, tmp_path):
        run = gm.fit("demo", "mlp", splits=[0], settings={"train": {"epochs": 2}}, runs=tmp_path)
        assert torch.equal(gm.load_run(run.folder.path).predict_proba(), run.predict_proba())

    def test_from_the_files_that_were_read_for_training(self, files, tmp_path):
        run = quick(gm.from_npz(files), runs=tmp_path)
        assert torch.equal(gm.load_run(run.folder.path).predict_proba(), run.predict_proba())


class TestWithoutTheTrainingData:
    @pytest.fixture
    def run(self, data, tmp_path):
        return quick(data, "gumbel-mpnn", runs=tmp_path)

    def test_other_graphs_are_predicted_with_the_names_of_classes(self, run):
        grown = small_data(nodes=30, seed=1)
        assert gm.load_run(run.folder.path).predict(grown) == run.predict(grown)
        assert set(run.predict(grown)) <= set(CLASSES)

    def test_the_learned_graph_has_its_edges(self, run):
        bare = gm.load_run(run.folder.path).rewire()
        assert torch.equal(bare.edge_index, run.rewire().edge_index)
        assert bare.num_nodes == 24
        assert bare.x is None

    def test_predictions_of_the_training_graph_need_it(self, run):
        with pytest.raises(DataError) as error:
            gm.load_run(run.folder.path).predict()
        assert str(error.value) == (
            f"the data that the runs in {run.folder.path} were trained on are not known: give them as"
            " load_run(..., data=...), or give a graph to predict"
        )

    def test_other_data_are_told_apart(self, run):
        with pytest.raises(DataError, match="were trained on other data than those given"):
            gm.load_run(run.folder.path, data=small_data(seed=5)).predict()

    def test_files_that_have_changed_or_are_gone(self, files, tmp_path):
        run = quick(gm.from_npz(files), runs=tmp_path)
        gm.data.save_graph(small_data(seed=3), files)
        with pytest.raises(DataError, match="have changed: give the training data as"):
            gm.load_run(run.folder.path).predict()
        files.unlink()
        with pytest.raises(DataError, match="cannot be read again: there is no file"):
            gm.load_run(run.folder.path).predict()


class TestMistakes:
    def test_no_such_run(self, tmp_path):
        with pytest.raises(UserError, match=r"there is no finished run 'abc'.* another folder of runs \(--runs, in"):
            gm.load_run("abc", runs=tmp_path)
        with pytest.raises(UserError, match="there is no finished run in"):
            gm.load_run(tmp_path)

    def test_several_settings(self, data, tmp_path):
        for model in ("gcn", "mlp"):
            quick(data, model, runs=tmp_path)
        with pytest.raises(UserError, match="have different settings: give the folder of one setting"):
            gm.load_run(tmp_path)

    def test_damaged_facts(self, data, tmp_path):
        run = quick(data, runs=tmp_path)
        (run.folder.path / "data.json").write_text("{")
        with pytest.raises(DataError, match=r"cannot read .*data.json: .*; delete it and repeat the training command"):
            gm.load_run(run.folder.path)
        quick(data, runs=tmp_path)  # writes it again
        assert gm.load_run(run.folder.path).trained_on.facts.class_names == tuple(CLASSES)


def test_a_batch_of_files_is_trained_on_and_has_to_be_given_again(tmp_path):
    for name in "ab":
        table = "".join(f"n{k},{k % 3},{'xyz'[k % 3]}\n" for k in range(24))
        (tmp_path / f"{name}.csv").write_text(f"id,size,kind\n{table}")
        (tmp_path / f"{name}-edges.csv").write_text("source,target\nn0,n1\nn1,n2\nn2,n3\n")
    graphs = [gm.from_csv(tmp_path / f"{name}.csv", tmp_path / f"{name}-edges.csv", "kind") for name in "ab"]
    batch = Batch.from_data_list(graphs)
    run = quick(batch, runs=tmp_path / "runs")
    loaded = gm.load_run(run.folder.path)
    assert loaded.trained_on.facts.feature_columns == tuple(graphs[0].feature_columns)
    assert torch.equal(loaded.predict_proba(graphs[0]), run.predict_proba(graphs[0]))
    with pytest.raises(DataError, match="are not known: give them as"):
        loaded.predict_proba()
    assert torch.equal(gm.load_run(run.folder.path, data=batch).predict_proba(), run.predict_proba())


def test_facts_may_be_missing_if_the_data_are_given(data, tmp_path):
    run = quick(data, runs=tmp_path)
    (run.folder.path / "data.json").unlink()
    assert torch.equal(gm.load_run(run.folder.path, data=data).predict_proba(), run.predict_proba())


@pytest.mark.parametrize("names", [{"class_names": ["a", "b", "c"]}, {"node_ids": [f"n{k}" for k in range(24)]}])
def test_other_names_of_classes_and_nodes_are_other_runs(data, tmp_path, names):
    run, other = quick(data, runs=tmp_path), quick(changed(data, **names), runs=tmp_path)
    assert other.folder.path != run.folder.path
    assert set(gm.load_run(run.folder.path).predict(small_data())) <= set(CLASSES)


def test_a_read_only_folder_is_enough(data, tmp_path):
    run = quick(data, runs=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    gm.load_run(run.folder.path, data=data).predict()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert json.loads((run.folder.path / "data.json").read_text())["class_names"] == CLASSES


class TestOtherColumns:
    """The fault: a graph whose columns were in another order was predicted without a word."""

    @pytest.fixture
    def run(self, tmp_path):
        rows = "".join(f"n{k},{k % 7},{k % 5},{'ab'[k % 2]},{'xy'[k % 2]}\n" for k in range(40))
        (tmp_path / "nodes.csv").write_text("id,a,b,kind,y\n" + rows)
        (tmp_path / "other.csv").write_text("id,b,a,kind,y\n" + rows)
        (tmp_path / "kinds.csv").write_text("id,a,b,kind,y\n" + rows.replace(",a,", ",c,"))
        return quick(gm.from_csv(tmp_path / "nodes.csv", label="y"), "mlp", splits=[0], runs=tmp_path / "runs")

    @pytest.mark.parametrize(
        ("file", "told"),
        [
            ("other.csv", "the column 'a' where this graph has the column 'b'"),
            (
                "kinds.csv",
                "the column 'kind' with the values 'a', 'b' where this graph has the column 'kind' with the values"
                " 'b', 'c'",
            ),
        ],
    )
    def test_they_are_refused(self, run, tmp_path, file, told):
        data = gm.from_csv(tmp_path / file, label="y")
        for each in (run, gm.load_run(run.folder.path)):
            with pytest.raises(UserError) as error:
                each.predict(data)
            assert str(error.value) == f"the runs were trained on {told}: read it with features=run.feature_columns"

    def test_and_taken_if_they_are_read_alike(self, run, tmp_path):
        (tmp_path / "turned.csv").write_text(
            "id,kind,b,a\n" + "".join(f"n{k},{'ab'[k % 2]},{k % 5},{k % 7}\n" for k in range(40))
        )
        again = gm.from_csv(tmp_path / "turned.csv", features=gm.load_run(run.folder.path).feature_columns)
        assert torch.equal(run.predict_proba(again), run.predict_proba())

    def test_other_names_are_other_runs(self, run, tmp_path):
        """The fault: equal values under other names rewrote what a finished run knew of its columns."""
        text = (tmp_path / "nodes.csv").read_text()
        (tmp_path / "renamed.csv").write_text(text.replace("id,a,b", "id,years,b"))
        other = quick(gm.from_csv(tmp_path / "renamed.csv", label="y"), "mlp", splits=[0], runs=tmp_path / "runs")
        assert other.records[0].fingerprint != run.records[0].fingerprint
        assert gm.load_run(run.folder.path).feature_columns[0].name == "a"

    def test_moved_files_are_the_same_runs(self, run, tmp_path):
        (tmp_path / "moved").mkdir()
        (tmp_path / "nodes.csv").rename(tmp_path / "moved/nodes.csv")
        data = gm.from_csv(tmp_path / "moved/nodes.csv", label="y")
        assert quick(data, "mlp", splits=[0], runs=tmp_path / "runs").records == run.records
        assert torch.equal(gm.load_run(run.folder.path).predict_proba(), run.predict_proba())


def test_what_is_ignored_in_another_graph_is_told():
    with pytest.warns(DataWarning, match="the edge_attr of this graph is ignored"):
        quick().predict(changed(small_data(), edge_attr=torch.ones(small_data().num_edges, 2)))


def test_a_graph_without_nodes():
    empty = changed(small_data(), x=torch.zeros(0, 6), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    with pytest.raises(UserError, match="this graph has no nodes: give at least one"):
        quick().predict(changed(empty, y=None, train_mask=None, val_mask=None, test_mask=None, num_nodes=0))


def test_a_loaded_run_can_be_cut_and_pickled(data, tmp_path):
    run = gm.load_run(quick(data, runs=tmp_path).folder.path, data=data)
    assert replace(run, records=run.records[:1]).n == 1
    again = pickle.loads(pickle.dumps(run))  # noqa: S301
    assert torch.equal(again.predict_proba(), run.predict_proba())
