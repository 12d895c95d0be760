"""What a `Run` gives back: predictions, probabilities, their tables, and figures."""

import gc
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, HeteroData

from gumbel_mpnn.runs.fit import fit
from gumbel_mpnn.runs.predict import predictions_of
from gumbel_mpnn.runs.run import load_run
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import changed, small_data
from quick_fit import quick

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.fixture(scope="module")
def run():
    return quick(seeds=2)


@pytest.mark.parametrize("part", ["val", "test"])
@pytest.mark.parametrize("model", ["mlp", "gat"])
def test_the_kept_model_is_the_one_of_the_recorded_figures(model, part):
    run = quick(model=model, splits=[1])
    mask = run.data[f"{part}_mask"][:, 1]
    right = torch.tensor(run.predict()) == run.data.y
    assert right[mask].double().mean().item() == pytest.approx(getattr(run.records[0], part))


@pytest.mark.parametrize("graphs", [0, 2, 3])
def test_classes_have_the_names_of_the_graph_or_of_all_graphs_of_a_batch(graphs):
    data = changed(small_data(), class_names=["ant", "bee", "cow"])
    run = quick(Batch.from_data_list([data] * graphs) if graphs else data)
    classes = run.predict_proba().argmax(-1).tolist()
    assert run.predict() == [["ant", "bee", "cow"][c] for c in classes]
    assert run.data.class_names == ["ant", "bee", "cow"]


@pytest.mark.parametrize(("second", "kept"), [("b", True), ("a", False)], ids=["different", "shared"])
def test_learned_graphs_of_a_batch_have_the_ids_of_its_nodes_if_they_differ(tmp_path, second, kept):
    ids = [[f"{letter}{node}" for node in range(24)] for letter in ("a", second)]
    batch = Batch.from_data_list([changed(small_data(), node_ids=each) for each in ids])
    run = quick(batch, "gumbel-mpnn", splits=[0], runs=tmp_path)
    (record,) = run.records
    assert run.folder.learned([record.replica]).node_ids == (ids[0] + ids[1] if kept else None)


@pytest.mark.parametrize("y", [["b", "a", ""] * 8, torch.full((24,), torch.nan), torch.rand(24, 4), None])
@pytest.mark.parametrize("model", ["gcn", "gumbel-mpnn"])
def test_another_graph_of_arrays_whose_labels_are_of_no_use(model, y):
    run, graph = quick(model=model, splits=[0]), small_data(seed=1)
    x, edges = graph.x.round(), graph.edge_index
    arrays = changed(graph, x=x.int().numpy(), edge_index=edges.tolist(), y=y, metric="of another task")
    graph = changed(graph, x=x)
    assert torch.equal(run.predict_proba(arrays), run.predict_proba(graph))
    if model == "gumbel-mpnn":
        assert torch.equal(run.rewire(arrays).edge_probability, run.rewire(graph).edge_probability)


def test_another_graph_with_other_features_is_refused(run):
    for each in (run, load_run(run.folder.path)):
        with pytest.raises(UserError, match=r"^the runs were trained on 6 features, but this graph has 3$"):
            each.predict(changed(small_data(), x=torch.randn(24, 3)))


@pytest.mark.parametrize(("model", "ask", "name"), [("gcn", "predict", "model"), ("gumbel-mpnn", "rewire", "graph")])
def test_a_file_that_is_missing_or_damaged_is_told_with_what_helps(tmp_path, model, ask, name):
    run = quick(model=model, splits=[0], runs=tmp_path)
    path = Path(run.folders[0]) / f"{name}.safetensors"
    path.write_bytes(b"half")
    with pytest.raises(DataError, match=f"cannot read {path}: .*; delete its folder to do the run again"):
        getattr(run, ask)()
    path.unlink()
    with pytest.raises(DataError, match=f"there is no {path} any more: delete its folder to do the run again"):
        getattr(run, ask)()


@pytest.mark.parametrize(("model", "ask"), [("gcn", "predict"), ("gumbel-mpnn", "rewire")])
def test_a_run_that_outlives_its_temporary_folder_says_how_to_keep_it(model, ask):
    """As one that a process hands over and then ends."""
    trained = quick(model=model, splits=[0])
    sent, folder = replace(trained, _temporary=None), trained.folder.path
    assert getattr(sent, ask)() is not None
    del trained
    gc.collect()
    with pytest.raises(DataError) as caught:
        getattr(sent, ask)()
    message = str(caught.value)
    assert message.startswith(f"the folder {folder} of these runs does not exist any more: ")
    assert message.endswith("give fit a folder with runs=")


def test_a_renumbered_graph_is_predicted_alike(run):
    data, order = run.data, torch.randperm(24, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    same = changed(
        data,
        x=data.x[order],
        y=data.y[order],
        edge_index=place[data.edge_index],
        **{name: data[name][order] for name in MASKS},
    )
    torch.testing.assert_close(run.predict_proba(same), run.predict_proba()[order], rtol=1e-4, atol=1e-5)


def test_the_figures_as_attributes_and_as_json(run):
    tests = [record.test for record in run.records]
    assert run.n == 4
    assert run.test.mean == pytest.approx(sum(tests) / 4)
    assert run.seconds == pytest.approx(sum(record.seconds for record in run.records))
    shown = run.to_dict()
    assert list(shown) == ["dataset", "model", "metric", "unit", "n", "test", "val", "seconds", "runs"]
    assert (shown["dataset"], shown["model"], shown["metric"], shown["n"]) == ("own", "gcn", "accuracy", 4)
    assert shown["test"] == {"mean": run.test.mean, "std": run.test.std, "stderr": run.test.stderr}
    assert shown["val"] == {"mean": run.val.mean, "std": run.val.std, "stderr": run.val.stderr}
    assert shown["runs"] == [
        str(run.folder.folder(Replica(split, seed))) for split, seed in ((0, 0), (0, 1), (1, 0), (1, 1))
    ]


@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "mlp", "gumbel-mpnn"])
def test_a_model_with_activations_in_16_bits_is_judged_as_it_was_in_training(model):
    data = small_data(nodes=120)
    settings = {"train": {"epochs": 5, "bfloat16": True}, "model": {"norm": "layer", "hidden_channels": 16}}
    trained = fit(data, model, seeds=2, settings=settings)
    assert trained.scores(data, device="cpu") == [record.test for record in trained.records]


@pytest.mark.parametrize("ask", ["predict_proba", "scores", "rewire"])
def test_whatever_is_asked_later_is_computed_in_the_formats_of_training(ask):
    data = small_data()
    trained = quick(data, "gumbel-mpnn", settings={"train": {"epochs": 1, "bfloat16": True}})
    seen = []

    def look(*_):
        seen.append((torch.backends.cuda.matmul.fp32_precision, torch.is_autocast_enabled("cpu")))

    hook = torch.nn.modules.module.register_module_forward_pre_hook(look)
    try:
        getattr(trained, ask)(data)
    finally:
        hook.remove()
    assert set(seen) == {("tf32", True)}


@pytest.mark.parametrize("model", ["gcn", "sdrf"])
@pytest.mark.parametrize(("what", "shown"), [("cora", "the name 'cora'"), (HeteroData(), "a HeteroData")])
def test_what_runs_are_asked_about_is_a_graph(model, what, shown):
    run = quick(model=model, splits=[0])
    for ask in (run.predict, run.predict_proba, run.scores, *([run.rewire] if model == "sdrf" else [])):
        with pytest.raises(UserError, match=f"give a Data, as returned by gm.load, not {shown}"):
            ask(what)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *[({name: None}, f"this graph has no {name}: give it the labels") for name in ("y", "train_mask", "test_mask")],
        ({"y": ["a"] * 24}, "the labels y must be integers of shape"),
        ({name: small_data()[name][:, 0] for name in MASKS}, "this graph has masks for 1 splits"),
    ],
)
def test_scores_need_labels_and_masks_of_the_splits_of_the_runs(run, change, message):
    with pytest.raises(UserError, match=message):
        run.scores(changed(small_data(), **change))


@pytest.mark.parametrize("model", ["gumbel-mpnn", "sdrf"])
def test_the_learned_graphs_of_a_batch_can_be_taken_apart(model):
    run, graphs = quick(model=model), [small_data(nodes, seed=nodes) for nodes in (7, 12)]
    together = run.rewire(Batch.from_data_list(graphs), threshold=0.0)
    parts = together.to_data_list()
    assert sum(part.num_edges for part in parts) == together.num_edges
    for part, graph in zip(parts, graphs, strict=True):
        assert torch.equal(part.y, graph.y)
        given = part.edge_index[:, part.edge_origin]
        assert {tuple(edge) for edge in given.T.tolist()} <= pairs(graph.edge_index)
        if model == "gumbel-mpnn":
            alone = run.rewire(graph, threshold=0.0)
            assert torch.equal(part.edge_index, alone.edge_index)
            torch.testing.assert_close(part.edge_probability, alone.edge_probability)


def pairs(edge_index):
    return {tuple(edge) for edge in torch.cat([edge_index, edge_index.flip(0)], dim=1).T.tolist()}


class TestKeptGraphs:
    """What training wrote down of the learned graph is what the models say."""

    @pytest.mark.parametrize("undirected", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_the_same_as_the_models_say(self, tmp_path, undirected, weighted):
        data = small_data()
        if weighted:
            data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(1))
        overrides = [f"data.undirected={str(undirected).lower()}"]
        run = quick(data, "gumbel-mpnn", runs=tmp_path, overrides=overrides)
        kept, asked = run.rewire(threshold=0.0), run.rewire(data, threshold=0.0)
        assert torch.equal(kept.edge_index, asked.edge_index)
        assert torch.equal(kept.edge_origin, asked.edge_origin)
        for name in ("edge_probability", "edge_weight"):
            torch.testing.assert_close(kept[name], asked[name])

    def test_another_graph_is_asked_about_anew(self, tmp_path):
        run = quick(model="gumbel-mpnn", runs=tmp_path)
        other = changed(small_data(), x=small_data().x.roll(1, dims=0))
        same = run.rewire(small_data(), threshold=0.0)
        torch.testing.assert_close(same.edge_probability, run.rewire(threshold=0.0).edge_probability)
        assert run.rewire(other, threshold=0.0).num_edges != same.num_edges  # its candidates are others


@pytest.fixture(scope="module")
def moved():
    """Two runs that learned different graphs."""
    return quick(model="gumbel-mpnn", overrides=["rewiring.lr=0.5", "rewiring.origin=none"])


class TestGraphs:
    """The learned graph of each run, where `rewire` averages."""

    def test_one_for_each_run_in_the_order_of_the_records(self, moved):
        alone = [replace(moved, records=(record,)).rewire() for record in moved.records]
        graphs = list(moved.graphs())
        assert [pairs(graph.edge_index) for graph in graphs] == [pairs(graph.edge_index) for graph in alone]
        assert pairs(graphs[0].edge_index) != pairs(graphs[1].edge_index)
        assert all((graph.edge_probability >= 0.5).all() for graph in graphs)

    def test_their_mean_is_what_rewire_returns(self, moved):
        mean = torch.stack([graph.edge_probability for graph in moved.graphs(threshold=0.0)]).mean(0)
        torch.testing.assert_close(mean, moved.rewire(threshold=0.0).edge_probability)

    def test_runs_of_sdrf_share_one(self):
        run = quick(model="sdrf")
        assert [pairs(graph.edge_index) for graph in run.graphs()] == [pairs(run.rewire().edge_index)] * 2

    def test_a_model_that_does_not_rewire(self):
        with pytest.raises(UserError, match="does not rewire"):
            next(quick(splits=[0]).graphs())


@pytest.fixture(scope="module")
def named():
    """Three splits; node 0 is trained on in all, node 1 tested in all, node 2 has no label."""
    data = changed(small_data(splits=3), class_names=["ant", "bee", "cow"], node_ids=[f"n{k}" for k in range(24)])
    data.train_mask[0], data.val_mask[0], data.test_mask[0] = True, False, False
    data.train_mask[1], data.val_mask[1], data.test_mask[1] = False, False, True
    data.train_mask[2] = data.val_mask[2] = data.test_mask[2] = False
    data.y = data.y.clone()
    data.y[2] = -1
    return data


@pytest.fixture(scope="module")
def named_run(named):
    return quick(named, seeds=2)


def test_probabilities_are_the_mean_over_the_runs_or_over_those_that_did_not_use_the_node(named_run, named):
    each = [quick(named, splits=[r.split], seeds=[r.seed]).predict_proba() for r in named_run.records]
    torch.testing.assert_close(named_run.predict_proba(), torch.stack(each).mean(0), rtol=1e-4, atol=1e-5)
    found = named_run.predict_proba(out_of_fold=True)
    for node in range(24):
        unseen = [
            probability[node]
            for record, probability in zip(named_run.records, each, strict=True)
            if not (named.train_mask | named.val_mask)[node, record.split]
        ]
        if unseen:
            torch.testing.assert_close(found[node], torch.stack(unseen).mean(0), rtol=1e-4, atol=1e-5)
        else:
            assert found[node].isnan().all()
    assert found[0].isnan().all()
    torch.testing.assert_close(found[1:3], named_run.predict_proba()[1:3])


def test_out_of_fold_is_about_the_training_graph(run):
    with pytest.raises(UserError, match="out_of_fold needs the splits of the training graph"):
        run.predict_proba(small_data(), out_of_fold=True)


def test_the_table(named_run, named):
    table = named_run.predictions()
    assert list(table.columns) == [
        "node", "label", "trained", "validated", "tested", "out_of_fold", "out_of_fold_probability", "average",
        "average_probability", "out_of_fold[ant]", "out_of_fold[bee]", "out_of_fold[cow]", "average[ant]",
        "average[bee]", "average[cow]",
    ]  # fmt: skip
    assert table["node"].tolist() == named.node_ids
    assert table["label"].tolist()[2] is None
    assert table["label"].tolist()[3] == ["ant", "bee", "cow"][int(named.y[3])]
    used = table[["trained", "validated", "tested"]].to_numpy().tolist()
    assert used[:3] == [["0 1 2", "", ""], ["", "", "0 1 2"], ["", "", ""]]
    for node in range(24):
        parts = zip(used[node], (named.train_mask, named.val_mask, named.test_mask), strict=True)
        for written, mask in parts:
            assert written == " ".join(str(split) for split in range(3) if mask[node, split])
    assert table["average"].tolist() == named_run.predict()
    torch.testing.assert_close(
        torch.tensor(table["average[bee]"], dtype=torch.float32), named_run.predict_proba()[:, 1]
    )
    assert table["out_of_fold"].tolist()[0] is None
    assert math.isnan(table["out_of_fold_probability"][0])
    assert table["out_of_fold"].tolist()[1] == table["average"][1]


def test_splits_that_were_not_trained_on_are_not_shown(named):
    table = quick(named, splits=[2]).predictions()
    assert set(table["trained"]) <= {"", "2"}
    assert table["trained"][0] == "2"


def test_classes_without_names_stay_integers():
    table = quick().predictions()
    assert all(isinstance(label, int) for label in table["label"])
    assert "average[2]" in table


def test_the_table_of_another_graph(named_run):
    grown = changed(small_data(nodes=30, seed=1), node_ids=[f"m{k}" for k in range(30)])
    table = predictions_of(named_run, grown)
    assert list(table.columns) == [
        "node", "prediction", "probability", "probability[ant]", "probability[bee]", "probability[cow]",
    ]  # fmt: skip
    assert table["node"].tolist() == grown.node_ids
    assert table["prediction"].tolist() == named_run.predict(grown)
    torch.testing.assert_close(
        torch.tensor(table["probability"], dtype=torch.float32), named_run.predict_proba(grown).max(-1).values
    )


def test_names_of_classes_that_no_node_has():
    data = changed(small_data(), class_names=["ant", "bee", "cow", "doe"])
    run = quick(data)
    assert list(run.predictions().columns)[-3:] == ["average[ant]", "average[bee]", "average[cow]"]
    assert list(predictions_of(run, data).columns)[-1] == "probability[cow]"
