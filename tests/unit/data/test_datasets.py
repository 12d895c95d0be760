import dataclasses

import numpy as np
import pytest
import torch
from graph_files import tiny_arrays, tiny_spec, write_npz, write_ogb, write_planetoid

import gumbel_mpnn as gm
from gumbel_mpnn.data import File, check, demo_graph, get_spec, load, missing_files, specs
from gumbel_mpnn.util.errors import DataError, MissingDataError, UnknownNameError, UserError

PLANETOID = ("cora", "citeseer", "pubmed")
GENERATED = [
    *("demo", "leaf-count", "leaf-count-3", "leaf-count-5", "wine", "breast-cancer", "digits"),
    *("bottleneck", "bottleneck-10", "bottleneck-50", "bottleneck-100", "bottleneck-200"),
]


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


class TestTable:
    def test_every_file_on_github_has_a_checksum_and_every_other_is_in_an_archive(self):
        files = {
            file
            for spec in specs.values()
            for file in (*spec.files, *spec.split_files, *spec.directed_files)
            if file.url
        }
        assert all(file.url.startswith("https://") for file in files)
        on_github = {file for file in files if "github" in file.url}
        assert len(on_github) == 17 + 3 * 7 + 3 * 10
        assert all(file.sha256 and len(file.sha256) == 64 for file in on_github)
        assert {file.member.partition("/")[0] for file in files - on_github} == {"arxiv"}

    def test_roc_auc_for_three_and_accuracy_for_the_rest(self):
        assert {name for name in specs if specs[name].metric == "roc_auc"} == {"minesweeper", "tolokers", "questions"}

    def test_every_data_set_takes_the_random_protocols(self):
        random = {"per-class-20-30", "random-48-32-20", "random-60-20-20"}
        ours = [name for name in specs if ":" not in name and "match" not in name and not name.startswith("attacked")]
        assert [name for name in ours if not random <= set(specs[name].protocols)] == []
        assert [name for name in specs if "public" in specs[name].protocols] == [*PLANETOID]

    def test_the_plain_wikipedia_names_are_the_filtered_files(self):
        assert get_spec("squirrel").files[0].path == "heterophilous/squirrel_filtered.npz"
        assert get_spec("squirrel-unfiltered").files[0].path == "heterophilous/squirrel.npz"
        assert get_spec("chameleon").directed_files[0].path == "heterophilous/chameleon_filtered_directed.npz"

    @pytest.mark.parametrize("spelling", ["Roman_Empire", "ROMAN-EMPIRE", "roman_empire"])
    def test_spelling_does_not_matter(self, spelling):
        assert get_spec(spelling).name == "roman-empire"

    def test_unknown_names_are_answered_with_the_nearest(self):
        with pytest.raises(UnknownNameError, match="no data set called 'coar': did you mean 'cora'"):
            get_spec("coar")
        with pytest.raises(UnknownNameError, match="protocol of 'cora' called 'geomgcn': did you mean 'geom-gcn'"):
            load("cora", protocol="geomgcn")
        with pytest.raises(UserError, match="a data set is given by its name, such as 'cora', not by 3"):
            load(3)


@pytest.mark.usefixtures("register")
class TestFiles:
    def test_a_plain_data(self, root):
        data = load("tiny", root=root)
        assert type(data).__name__ == "Data"
        assert data.x.dtype == torch.float32
        assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [1, 4, 0, 2, 1, 3, 2, 4, 0, 3]]
        assert data.y.tolist() == [0, 1, 0, 1, 0, 1]
        assert torch.equal(data.val_mask, torch.from_numpy(tiny_arrays()["val_masks"].T))
        assert (data.name, data.metric, data.protocol) == ("tiny", "accuracy", "heterophilous")

    def test_one_split(self, root):
        data = load("tiny", split=1, root=root)
        assert data.train_mask.tolist() == [False, False, True, True, False, False]
        assert data.train_mask.is_contiguous()

    @pytest.mark.parametrize(("split", "message"), [(-1, "no split -1"), (2, "splits 0 to 1"), (True, "whole number")])
    def test_no_such_split(self, root, split, message):
        with pytest.raises(UserError, match=message):
            load("tiny", split=split, root=root)

    def test_a_folder_in_the_environment_from_which_nothing_is_changed(self, root, monkeypatch):
        monkeypatch.setenv("GUMBEL_MPNN_DATA", str(root))
        before = sorted(root.rglob("*"))
        assert load("Tiny").num_nodes == 6
        assert sorted(root.rglob("*")) == before

    def test_random_splits_depend_on_the_seed_and_their_number_alone(self, root):
        few, many, other = (
            load("tiny", root=root, protocol="random-60-20-20", seed=seed, num_splits=n).train_mask
            for seed, n in ((3, 2), (3, 5), (4, 5))
        )
        assert torch.equal(few, many[:, :2])
        assert not torch.equal(other, many)

    def test_every_wrong_count_is_named(self, root, register):
        register(num_edges=6, num_features=4)
        with pytest.raises(DataError) as caught:
            load("tiny", root=root)
        assert "have 6, 5, 3, 2 nodes, edges, features and classes instead of 6, 6, 4, 2: repl" in str(caught.value)

    def test_a_fixed_protocol_needs_masks(self, root):
        write_npz(root / "tiny/tiny.npz", train_masks=None, val_masks=None, test_masks=None)
        with pytest.raises(DataError, match="protocol 'heterophilous' have no masks for 6 nodes"):
            load("tiny", root=root)
        assert load("tiny", root=root, protocol="per-class-20-30").train_mask.shape == (6, 10)

    def test_directions(self, root, register):
        with pytest.raises(DataError, match="data set 'tiny' has no directed edges"):
            load("tiny", root=root, directed=True)
        listed = [[1, 0], [1, 0], [2, 1], [2, 3], [3, 4], [4, 0], [5, 5]]
        write_npz(root / "tiny/directed.npz", edges=np.array(listed))
        register(directed_files=(File("tiny/directed.npz"),), has_directions=True)
        data = load("tiny", root=root, directed=True)
        assert data.edge_index.T.tolist() == listed[1:]
        assert load("tiny", root=root).edge_index.shape == (2, 10)

    def test_the_features_may_be_missing_when_they_are_not_asked_for(self, tmp_path, register):
        register(files_without_features=(File("incomplete/tiny.npz"),))
        write_npz(tmp_path / "incomplete/tiny.npz", node_features=None)
        assert missing_files(specs["tiny"], tmp_path) == [File("tiny/tiny.npz")]
        assert missing_files(specs["tiny"], tmp_path, features=False) == []
        data = load("tiny", root=tmp_path, features=False)
        assert (data.x, data.num_nodes) == (None, 6)
        with pytest.raises(MissingDataError, match=r"lacks tiny/tiny\.npz"):
            load("tiny", root=tmp_path)
        write_npz(tmp_path / "tiny/tiny.npz")
        assert missing_files(specs["tiny"], tmp_path) == []


def test_planetoid_files_and_their_splits(tmp_path, monkeypatch):
    paths = write_planetoid(tmp_path / "planetoid/tiny/raw")
    for k in range(2):
        masks = {f"{part}_mask": np.arange(7) % 3 == (i + k) % 3 for i, part in enumerate(("train", "val", "test"))}
        np.savez(tmp_path / f"{k}.npz", **masks)
    counts = {"num_nodes": 7, "num_edges": 2, "num_features": 2, "num_classes": 2}
    files = tuple(File(path.relative_to(tmp_path).as_posix()) for path in paths)
    splits = (File("0.npz"), File("1.npz"))
    tiny = dataclasses.replace(specs["cora"], name="tiny", files=files, split_files=splits, **counts)
    monkeypatch.setitem(specs, "tiny", tiny)
    data = load("tiny", root=tmp_path)
    assert data.edge_index.tolist() == [[0, 1, 2, 6], [1, 0, 6, 2]]
    assert data.train_mask[:, 1].nonzero().flatten().tolist() == [1, 4]
    assert load("tiny", root=tmp_path, protocol="public", split=0).val_mask.nonzero().flatten().tolist() == [1, 2]
    (tmp_path / "1.npz").unlink()
    assert load("tiny", root=tmp_path, protocol="public").train_mask.shape == (7, 1)
    with pytest.raises(MissingDataError, match=r"lacks 1\.npz"):
        load("tiny", root=tmp_path)


def test_the_raw_folder_of_ogb(tmp_path, monkeypatch):
    write_ogb(tmp_path / "ogbn-arxiv")
    files = tuple(dataclasses.replace(file, sha256=None) for file in specs["ogbn-arxiv"].files)
    counts = {"num_nodes": 4, "num_edges": 2, "num_features": 2, "num_classes": 2}
    monkeypatch.setitem(specs, "ogbn-arxiv", dataclasses.replace(specs["ogbn-arxiv"], files=files, **counts))
    data = load("ogbn-arxiv", split=0, root=tmp_path)
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert torch.allclose(data.x, torch.tensor([[0.5, 1], [-1, 2], [0, 3], [0.001, 4]]))
    assert data.y.tolist() == [0, 1, 1, 0]
    assert data.test_mask.tolist() == [False, False, False, True]
    assert load("ogbn-arxiv", root=tmp_path, directed=True).edge_index.tolist() == [[0, 0, 1], [1, 2, 0]]


class TestGenerated:
    def test_which_they_are(self):
        ours = {name for name, spec in specs.items() if not spec.files and "match" not in name}
        assert ours == set(GENERATED)
        tasks = {"demo", "leaf-count", "bottleneck", "wine", "breast-cancer", "digits"}
        assert {specs[name].name for name in GENERATED} == tasks  # sizes of a task share its name

    @pytest.mark.parametrize("name", [name for name in GENERATED if not name.endswith(("-5", "00"))])
    def test_the_graph_is_what_its_spec_says(self, name):
        spec, data = get_spec(name), load(name)
        facts = check(data)
        counts = (spec.num_nodes, spec.num_edges, spec.num_classes)
        assert (facts.num_nodes, facts.num_edges, facts.num_classes) == counts
        assert data.num_features == spec.num_features
        assert data.train_mask.shape == (spec.num_nodes, 10)
        assert spec.has_directions == (data.is_directed() and spec.num_edges > 0)
        assert (data.name, data.protocol) == (spec.name, spec.protocols[0])
        assert missing_files(spec) == []

    def test_the_default_splits_are_those_of_the_generator(self):
        made = demo_graph()
        assert torch.equal(load("demo").train_mask, made.train_mask)
        assert torch.equal(load("demo", split=3).test_mask, made.test_mask[:, 3])

    def test_another_protocol_without_features(self):
        data = load("bottleneck-10", protocol="random-60-20-20", num_splits=2, features=False)
        assert data.train_mask.shape == (400, 2)
        assert not data.train_mask[data.y < 0].any()
        assert (data.x, data.num_nodes, data.protocol) == (None, 400, "random-60-20-20")

    def test_trees_keep_their_direction_and_others_have_none(self):
        assert torch.equal(load("leaf-count-3", directed=True).edge_index, load("leaf-count-3").edge_index)
        with pytest.raises(DataError, match="data set 'demo' has no directed edges"):
            load("demo", directed=True)

    def test_a_name_and_its_graph_are_the_same_setting(self, tmp_path):
        options = {"settings": {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}}
        options |= {"splits": [0], "device": "cpu", "runs": tmp_path}
        by_name, by_graph = (gm.fit(dataset, "gcn", **options) for dataset in ("demo", demo_graph()))
        assert by_name.folder.path == by_graph.folder.path
