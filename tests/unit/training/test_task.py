import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import from_graphml, from_npz, save_graph
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import both_ways, changed, edges, make_task, replicas, small_data

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.fixture
def data():
    return small_data()


def test_a_task_holds_what_data_say(data):
    task = make_task(data)
    assert torch.equal(task.features, data.x)
    assert torch.equal(task.y, data.y)
    assert task.graph is PairGraph.of(data)
    assert (task.metric, task.num_features, task.num_classes, task.num_splits) == ("accuracy", 6, 3, 2)


def test_each_replica_gets_the_masks_of_its_split(data):
    train, val, test = make_task(data).masks(replicas((1, 0), (0, 0), (1, 3)))
    for mask, name in zip((train, val, test), MASKS, strict=True):
        assert torch.equal(mask, data[name].T[[1, 0, 1]])


def test_row_normalized_features_sum_to_one():
    x = torch.tensor([[1.0, -3.0], [0.0, 0.0], [2.0, 2.0]])
    mask = torch.ones(3, dtype=torch.bool)
    data = Data(x=x, y=torch.tensor([0, 1, 0]), edge_index=edges((0, 1)), **dict.fromkeys(MASKS, mask))
    task = make_task(data, features="row-normalized")
    assert task.features.tolist() == [[0.25, -0.75], [0.0, 0.0], [0.5, 0.5]]
    assert torch.equal(data.x, x)


def test_features_become_float32_and_sparse_where_that_pays(data):
    task = make_task(changed(data, x=torch.eye(24, dtype=torch.float64)))
    assert isinstance(task.features, SparseFeatures)
    assert task.features.dtype == torch.float32
    assert task.num_features == 24


def test_a_missing_training_mask_is_named(data):
    with pytest.raises(DataError, match=r"^this graph has no train_mask: give it train_mask"):
        make_task(changed(data, train_mask=None))


@pytest.mark.parametrize("name", ["val_mask", "test_mask"])
def test_another_missing_mask_is_empty(data, name):
    task = make_task(changed(data, **{name: None}))
    assert getattr(task, name).sum(-1).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None, "num_nodes": 24}, "this graph has no features"),
        ({"y": None}, "this graph has no labels: give it data.y"),
        ({"edge_index": None}, "this graph has no edges: give it data.edge_index"),
        ({"metric": "f1"}, "there is no metric called 'f1'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_data_lack_is_named(data, change, message):
    with pytest.raises(UserError, match=f"^{message}"):
        make_task(changed(data, **change))


def flipped(tensor):
    """The tensor with its first entry changed."""
    tensor = tensor.clone()
    first = tensor.view(-1)[:1]
    first.copy_(~first if tensor.dtype == torch.bool else first + 1)
    return tensor


@pytest.mark.parametrize("name", ["x", "y", "edge_index", "edge_weight", "candidate_index", "batch", *MASKS])
def test_data_hash_changes_with_every_tensor_training_sees(data, name):
    data.edge_weight = torch.ones(data.edge_index.shape[1])
    data.candidate_index = torch.tensor([[0, 1], [5, 7]])
    data.batch = torch.arange(24) // 12
    before = data_hash(data)
    assert before == data_hash(changed(data)) == data_hash(data.clone())
    assert data_hash(changed(data, **{name: flipped(data[name])})) != before
    assert data_hash(changed(data, num_nodes=24, **{name: None})) != before


def test_data_hash_changes_with_metric_type_shape_and_names(data):
    others = [
        changed(data, node_ids=["a"] * 24),
        changed(data, node_ids=["b"] * 24),
        changed(data, class_names=["a", "b", "c"]),
        changed(data, metric="roc_auc"),
        changed(data, x=data.x.double()),
        changed(data, x=data.x.view(12, 12)),
        changed(data, train_mask=data.val_mask, val_mask=data.train_mask),
    ]
    hashes = {data_hash(other) for other in (data, *others)}
    assert len(hashes) == 8
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in hashes)
    assert data_hash(changed(data, metric="accuracy")) == data_hash(data)


def test_a_single_split_has_one_data_hash_in_both_forms(data):
    column = changed(data, **{name: data[name][:, :1] for name in MASKS})
    flat = changed(data, **{name: data[name][:, 0] for name in MASKS})
    assert data_hash(flat) == data_hash(column)
    assert data_hash(changed(flat, train_mask=flat.val_mask)) != data_hash(flat)


UNNAMED = dict.fromkeys(("node_ids", "class_names", "feature_columns"))


def test_files_of_one_graph_have_one_data_hash(data, tmp_path):
    one_split = changed(data, edge_index=both_ways(data.edge_index), **{name: data[name][:, 0] for name in MASKS})
    weighted = changed(one_split, edge_weight=one_split.edge_index.sum(0) / 7)
    for graph in (one_split, weighted):
        for name in ("graph.npz", "graph.graphml"):
            save_graph(graph, tmp_path / name)
        from_files = from_npz(tmp_path / "graph.npz"), from_graphml(tmp_path / "graph.graphml")
        assert [read.train_mask.dim() for read in from_files] == [2, 1]
        assert len({data_hash(changed(read, **UNNAMED)) for read in from_files}) == 1


def test_data_hash_does_not_change_with_anything_else(data):
    before = data_hash(data)
    assert data_hash(changed(data, name="toy", label_name="kind", extra=torch.ones(3))) == before
    assert data_hash(changed(data, x=data.x.T.contiguous().T)) == before
