"""`fit`: graphs of the user, metrics, and mistakes."""

import warnings

import numpy as np
import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.data import add_splits
from gumbel_mpnn.runs.store import find_records
from gumbel_mpnn.training import metrics
from gumbel_mpnn.util import tensors
from gumbel_mpnn.util.errors import DataError, DataWarning, DivergedError, UserError
from helpers import changed, small_data
from quick_fit import TABLES, figures, history, names, quick


def without_masks(data):
    return changed(data, train_mask=None, val_mask=None, test_mask=None)


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

    @pytest.mark.parametrize("metric", list(metrics))
    def test_the_metric_of_the_settings(self, metric):
        data = changed(small_data(), metric="accuracy")
        run = quick(data, settings={**TABLES, "data": {"metric": metric}})
        assert (run.metric, {record.metric for record in run.records}) == (metric, {metric})
        assert run.scores(data) == [record.test for record in run.records]
        chosen = [max(row["val"] for row in history(run, record)) for record in run.records]
        assert [record.val for record in run.records] == chosen

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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "corra"}, "there is no data set called 'corra': did you mean 'cora'"),
        ({"data": 3}, "dataset must be a name or a Data, not 3"),
        ({"model": "gnc"}, "there is no model called 'gnc': did you mean 'gcn'?"),
        ({"overrides": ["model.droput=0.1"]}, "model 'gcn' has no option 'droput': did you mean 'dropout'"),
        ({"overrides": ["train.epoch=1"]}, "there is no setting 'train.epoch': did you mean 'epochs'?"),
        ({"overrides": ["training.lr=1"]}, "there is no setting 'training': did you mean 'train'"),
        ({"overrides": ["model.norm=bach"]}, "there is no norm called 'bach': did you mean 'batch'?"),
        ({"overrides": ["train.epochs=0"]}, "setting 'train.epochs' must be 1 or more, but is 0"),
        ({"overrides": ["data.protocol=random"]}, "there is no random split protocol called 'random'"),
        ({"preset": "tund"}, "there is no family of presets called 'tund': did you mean 'tuned'?"),
        ({"preset": "mine.toml"}, "there is no settings file mine.toml"),
        ({"device": "gpu"}, "there is no device 'gpu': use 'auto', 'cpu' or 'cuda'"),
        ({"splits": [0, 2]}, "there is no split 2: this data set has splits 0 to 1"),
        ({"splits": [-1]}, "there is no split -1: this data set has splits 0 to 1"),
        ({"splits": 0}, "splits are a list of whole numbers, as [0] or range(3), not 0"),
        ({"seeds": None}, "seeds are a list of whole numbers, as [0] or range(3), not None"),
        ({"seeds": [0.5]}, "seeds are a list of whole numbers, as [0] or range(3), not [0.5]"),
        (
            {"data": changed(small_data(), metric=["accuracy"])},
            "data.metric must be the name of one metric, as 'accuracy', not ['accuracy']",
        ),
        ({"splits": []}, "there is nothing to train: give at least one split and one seed"),
        ({"seeds": 10**9}, "1000000000 seeds are too many"),
        ({"seeds": 0}, "there is nothing to train: give at least one split and one seed"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(tmp_path, change, message):
    with pytest.raises(UserError) as caught:
        quick(**change, runs=tmp_path / "runs")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


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


def test_one_class_in_the_test_nodes_is_told_before_training(trained):
    """The fault: the result was null without a word."""
    data, told = changed(small_data(classes=2), metric="roc_auc"), []
    data.y[data.test_mask[:, 1]] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: told.append((str(message), len(trained)))
        run = quick(data)
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
