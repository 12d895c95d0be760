import dataclasses
import hashlib

import numpy as np
import pytest
import torch
from graph_files import tiny_arrays, tiny_spec, write_npz, write_ogb, write_planetoid

from gumbel_mpnn._util.errors import DataError, MissingDataError, UnknownNameError, UserError
from gumbel_mpnn.data import get_spec, load, specs
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.data.spec import File, Form


@pytest.fixture
def root(tmp_path):
    write_npz(tmp_path / "tiny/tiny.npz")
    return tmp_path


@pytest.fixture
def register(monkeypatch):
    def add(**changes):
        spec = tiny_spec(**changes)
        monkeypatch.setitem(specs, spec.name, spec)

    add()
    return add


@pytest.mark.usefixtures("register")
class TestPlainLoad:
    def test_a_plain_data(self, root):
        data = load("tiny", root=root)
        assert type(data).__name__ == "Data"
        assert data.x.dtype == torch.float32
        assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [1, 4, 0, 2, 1, 3, 2, 4, 0, 3]]
        assert data.is_undirected()
        assert data.is_coalesced()
        assert data.y.tolist() == [0, 1, 0, 1, 0, 1]
        assert torch.equal(data.val_mask, torch.from_numpy(tiny_arrays()["val_masks"].T))
        assert (data.name, data.metric, data.protocol) == ("tiny", "accuracy", "heterophilous")

    def test_one_split(self, root):
        data = load("tiny", split=1, root=root)
        assert data.train_mask.tolist() == [False, False, True, True, False, False]
        assert data.train_mask.is_contiguous()

    @pytest.mark.parametrize("split", [-1, 2])
    def test_a_split_out_of_range(self, root, split):
        with pytest.raises(UserError, match=f"there is no split {split}: this protocol has splits 0 to 1"):
            load("tiny", split=split, root=root)

    def test_the_environment_variable_is_a_root(self, root, monkeypatch):
        monkeypatch.setenv("GUMBEL_MPNN_DATA", str(root))
        assert load("Tiny").num_nodes == 6

    def test_nothing_is_written_to_the_root(self, root):
        before = sorted(root.rglob("*"))
        load("tiny", root=root)
        assert sorted(root.rglob("*")) == before

    def test_random_splits_depend_on_the_seed_and_their_number_alone(self, root):
        few, many = (load("tiny", root=root, protocol="random-60-20-20", seed=3, num_splits=n) for n in (2, 5))
        assert few.train_mask.shape == (6, 2)
        assert torch.equal(few.train_mask, many.train_mask[:, :2])
        other = load("tiny", root=root, protocol="random-60-20-20", seed=4, num_splits=5)
        assert not torch.equal(other.train_mask, many.train_mask)

    def test_unknown_names(self, root):
        with pytest.raises(UnknownNameError, match="did you mean 'tiny'"):
            load("tinny", root=root)
        with pytest.raises(UnknownNameError, match="did you mean 'random-60-20-20'"):
            load("tiny", root=root, protocol="random-60-20")

    def test_no_direction(self, root):
        with pytest.raises(DataError, match="data set 'tiny' has no directed edges"):
            load("tiny", root=root, directed=True)

    def test_without_features(self, root):
        data = load("tiny", root=root, features=False)
        assert data.x is None
        assert data.num_nodes == 6


def test_the_published_counts_are_checked_and_every_difference_is_named(root, register):
    register(num_edges=6, num_features=4)
    with pytest.raises(DataError) as caught:
        load("tiny", root=root)
    assert "5 edges instead of 6, 3 features instead of 4" in str(caught.value)
    assert "nodes" not in str(caught.value)


def test_an_altered_file_is_not_read(root, register):
    digest = hashlib.sha256((root / "tiny/tiny.npz").read_bytes()).hexdigest()
    register(forms=(Form((File("tiny/tiny.npz", None, digest),), read_graph),))
    assert load("tiny", root=root).num_nodes == 6
    write_npz(root / "tiny/tiny.npz", node_labels=np.array([1, 0, 0, 1, 0, 1]))
    with pytest.raises(DataError, match="is not the published file"):
        load("tiny", root=root)


def test_an_edge_outside_the_graph(root, register):
    write_npz(root / "tiny/tiny.npz", edges=np.array([[0, 1], [0, 6]]))
    with pytest.raises(DataError, match="edge 1 goes from node 0 to node 6, but nodes are 0 to 5"):
        load("tiny", root=root)


def test_a_fixed_protocol_needs_masks(root, register):
    write_npz(root / "tiny/tiny.npz", train_masks=None, val_masks=None, test_masks=None)
    with pytest.raises(DataError, match="protocol 'heterophilous' have no masks for 6 nodes"):
        load("tiny", root=root)
    assert load("tiny", root=root, protocol="per-class-20-30").train_mask.shape == (6, 10)


def test_unlabelled_nodes_are_in_no_random_mask(root, register):
    write_npz(root / "tiny/tiny.npz", node_labels=np.array([0, 1, 0, 1, -1, -1]))
    data = load("tiny", root=root, protocol="random-60-20-20")
    assert not (data.train_mask | data.val_mask | data.test_mask)[4:].any()


def test_a_directed_form_keeps_direction_and_self_loops(root, register):
    write_npz(root / "tiny/directed.npz", edges=np.array([[1, 0], [1, 0], [2, 1], [2, 3], [3, 4], [4, 0], [5, 5]]))
    directed = Form((File("tiny/directed.npz"),), read_graph, directed=True)
    register(forms=(*tiny_spec().forms, directed))
    data = load("tiny", root=root, directed=True)
    assert data.edge_index.T.tolist() == [[1, 0], [2, 1], [2, 3], [3, 4], [4, 0], [5, 5]]
    assert load("tiny", root=root).edge_index.shape == (2, 10)


def test_the_features_may_be_missing_when_they_are_not_asked_for(tmp_path, register):
    structure = Form((File("incomplete/tiny.npz"),), read_graph, features=False)
    register(forms=(*tiny_spec().forms, structure))
    write_npz(tmp_path / "incomplete/tiny.npz", node_features=None)
    data = load("tiny", root=tmp_path, features=False)
    assert data.x is None
    assert data.num_nodes == 6
    with pytest.raises(MissingDataError, match=r"lacks tiny/tiny\.npz.*or load the graph without features"):
        load("tiny", root=tmp_path)


def test_planetoid_files_through_the_front_door(tmp_path, monkeypatch):
    paths = write_planetoid(tmp_path / "planetoid/tiny/raw")
    for k in range(2):
        masks = {f"{part}_mask": np.arange(7) % 3 == (i + k) % 3 for i, part in enumerate(("train", "val", "test"))}
        np.savez(tmp_path / f"{k}.npz", **masks)
    cora = get_spec("cora")
    spec = dataclasses.replace(
        cora,
        name="tiny",
        num_nodes=7,
        num_edges=2,
        num_features=2,
        num_classes=2,
        forms=(Form(tuple(File(path.relative_to(tmp_path).as_posix()) for path in paths), cora.forms[0].read),),
        split_files=(File("0.npz"), File("1.npz")),
    )
    monkeypatch.setitem(specs, "tiny", spec)
    data = load("tiny", root=tmp_path)
    assert data.edge_index.tolist() == [[0, 1, 2, 6], [1, 0, 6, 2]]
    assert data.train_mask[:, 1].nonzero().flatten().tolist() == [1, 4]
    assert load("tiny", root=tmp_path, protocol="public", split=0).val_mask.nonzero().flatten().tolist() == [1, 2]
    (tmp_path / "1.npz").unlink()
    assert load("tiny", root=tmp_path, protocol="public").train_mask.shape == (7, 1)
    with pytest.raises(MissingDataError, match=r"lacks 1\.npz"):
        load("tiny", root=tmp_path)


def test_the_raw_folder_of_ogb_through_the_front_door(tmp_path, monkeypatch):
    write_ogb(tmp_path / "ogbn-arxiv")
    arxiv = get_spec("ogbn-arxiv")
    forms = tuple(
        dataclasses.replace(form, files=tuple(dataclasses.replace(file, sha256=None) for file in form.files))
        for form in arxiv.forms
    )
    counts = {"num_nodes": 4, "num_edges": 2, "num_features": 2, "num_classes": 2}
    monkeypatch.setitem(specs, "ogbn-arxiv", dataclasses.replace(arxiv, forms=forms, **counts))
    data = load("ogbn-arxiv", split=0, root=tmp_path)
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert data.x.shape == (4, 2)
    assert data.test_mask.tolist() == [False, False, False, True]
    assert load("ogbn-arxiv", root=tmp_path, directed=True).edge_index.tolist() == [[0, 0, 1], [1, 2, 0]]
    (tmp_path / "ogbn-arxiv/raw/node-feat.csv.gz").unlink()
    assert load("ogbn-arxiv", root=tmp_path, features=False).num_nodes == 4
    with pytest.raises(MissingDataError, match=r"lacks ogbn-arxiv/raw/node-feat\.csv\.gz.*features=False"):
        load("ogbn-arxiv", root=tmp_path)


@pytest.mark.parametrize("name", [None, 3])
def test_a_data_set_is_given_by_its_name(name):
    with pytest.raises(UserError, match="a data set is given by its name, such as 'cora', not by"):
        load(name)


@pytest.mark.parametrize("split", [True, "a", [0, 1]])
def test_a_split_is_a_whole_number(split):
    with pytest.raises(UserError, match="split must be a whole number"):
        load("demo", split=split)
