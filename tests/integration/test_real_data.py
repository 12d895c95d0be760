"""The benchmarks' own files: counts, splits, and agreement with PyG, where there is a data root."""

import shutil

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

import experiments.attacked as attacked
from gumbel_mpnn.data import check, facts_of, get_spec, load, locate, specs
from gumbel_mpnn.util.errors import MissingDataError

pytestmark = pytest.mark.real_data

PLANETOID = ("cora", "citeseer", "pubmed")
GEOM_GCN = {  # nodes to train, validate and test on in each of the ten splits
    "pubmed": (9463, 6310, 3944),
    "squirrel-unfiltered": (2496, 1664, 1041),
    "chameleon-unfiltered": (1092, 729, 456),
    "actor": (3648, 2432, 1520),
}


@pytest.fixture
def present(data_root):
    """Skips the test unless the files of a data set are all there."""

    def require(name):
        missing = locate(get_spec(name), data_root).missing
        if missing:
            pytest.skip(f"{name} is not in GUMBEL_MPNN_DATA: {missing[0].path} is missing")

    return require


def sizes(data):
    return [tuple(mask[:, k].sum().item() for mask in masks_of(data)) for k in range(data.train_mask.shape[1])]


def masks_of(data):
    return data.train_mask, data.val_mask, data.test_mask


@pytest.mark.parametrize("name", sorted(name for name in specs if specs[name].files))
def test_every_data_set_loads_with_its_published_counts(name, present, data_root):
    present(name)
    spec, data = get_spec(name), load(name, root=data_root)
    facts = facts_of(data) if name == "texas" else check(data)  # whose splits lack classes
    assert (facts.num_nodes, facts.num_edges, facts.num_classes) == (spec.num_nodes, spec.num_edges, spec.num_classes)
    assert type(data) is Data
    assert data.x.shape == (spec.num_nodes, spec.num_features)
    assert (data.x.dtype, data.y.dtype, data.edge_index.dtype) == (torch.float32, torch.int64, torch.int64)
    assert data.is_undirected()
    assert data.is_coalesced()
    assert facts.num_self_loops == 0


@pytest.mark.parametrize("name", GEOM_GCN)
def test_geom_gcn_splits_are_48_32_20(name, present, data_root):
    present(name)
    assert sizes(load(name, root=data_root)) == [GEOM_GCN[name]] * 10


def test_geom_gcn_leaves_nodes_of_cora_and_citeseer_out(present, data_root):
    present("cora")
    present("citeseer")
    assert sizes(load("cora", root=data_root)) == [(1192, 796, 497)] * 10
    citeseer = [(1596, 1065, 666)] * 10
    citeseer[4:6] = [(1017, 679, 424)] * 2
    assert sizes(load("citeseer", root=data_root)) == citeseer


def test_first_splits_of_the_filtered_wikipedia_graphs(present, data_root):
    present("squirrel")
    present("chameleon")
    assert sizes(load("squirrel", root=data_root))[0] == (1053, 718, 452)
    assert sizes(load("chameleon", root=data_root))[0] == (409, 287, 194)


@pytest.mark.parametrize(("name", "arcs", "loops"), [("squirrel-unfiltered", 217_073, 140), ("chameleon", 13_584, 50)])
def test_the_directed_wikipedia_graphs(name, arcs, loops, present, data_root):
    present(name)
    data = load(name, root=data_root, directed=True)
    assert data.edge_index.shape == (2, arcs)
    assert check(data).num_self_loops == loops
    assert not data.is_undirected()


@pytest.mark.parametrize("name", ["minesweeper", "tolokers"])
def test_heterophilous_splits_are_50_25_25(name, present, data_root):
    present(name)
    n = get_spec(name).num_nodes
    assert sizes(load(name, root=data_root)) == [(n // 2, n // 4, n - n // 2 - n // 4)] * 10


def test_features_are_those_that_pyg_would_give(present, data_root):
    present("coauthor-physics")
    present("amazon-computers")
    physics = load("coauthor-physics", root=data_root)
    assert (physics.x.min(), physics.x.max(), physics.x.count_nonzero()) == (0, 1, 1_137_311)
    assert sizes(physics) == [(20_695, 6_898, 6_900)]
    assert load("amazon-computers", root=data_root).x.count_nonzero() == 3_675_081


def test_unlabelled_people_of_cornell5(present, data_root):
    present("cornell5")
    data = load("cornell5", root=data_root, num_splits=2)
    assert check(data).num_unlabelled == 1_838
    assert not (data.train_mask | data.val_mask | data.test_mask)[data.y < 0].any()


@pytest.mark.parametrize(
    ("name", "meta", "nettack", "targets", "split"),
    [
        ("attacked-cora", 6_246, 5_440, 83, (247, 249, 1_988)),
        ("attacked-citeseer", 4_549, 3_963, 63, (210, 211, 1_688)),
        ("attacked-polblogs", 17_636, 18_978, 540, (121, 123, 978)),
    ],
)
def test_attacked_edges_and_targets(name, meta, nettack, targets, split, present, data_root):
    present(name)
    poisoned = load(attacked.after(name, "meta-0.25"), root=data_root)
    assert check(poisoned).num_edges == meta
    assert sizes(poisoned) == [split]
    targeted = load(attacked.after(name, "nettack-5"), root=data_root)
    assert check(targeted).num_edges == nettack
    assert sizes(targeted) == [(*split[:2], targets)]


def test_metattack_makes_cora_less_homophilous(present, data_root):
    present("attacked-cora")
    for attack, expected in (("", 0.804), ("meta-0.25", 0.661)):
        data = load(attacked.after("attacked-cora", attack), root=data_root)
        same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
        assert same.float().mean().item() == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("name", PLANETOID)
def test_planetoid_equals_pyg(name, present, data_root, tmp_path):
    from torch_geometric.datasets import Planetoid

    present(name)
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    for file in (data_root / "planetoid" / name / "raw").iterdir():
        shutil.copyfile(file, raw / file.name)
    theirs = Planetoid(str(tmp_path), name)[0]
    ours = load(name, root=data_root, protocol="public", split=0)
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.edge_index, coalesce(theirs.edge_index))
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[mask], theirs[mask])


def require_structure(name, data_root):
    if not locate(get_spec(name), data_root).without_features:
        pytest.skip(f"the structure of {name} is not in GUMBEL_MPNN_DATA")


def test_ogbn_arxiv_without_features(data_root):
    require_structure("ogbn-arxiv", data_root)
    data = load("ogbn-arxiv", root=data_root, features=False)
    assert data.x is None
    assert check(data).num_edges == 1_157_799
    assert sizes(data) == [(90_941, 29_799, 48_603)]
    directed = load("ogbn-arxiv", root=data_root, features=False, directed=True)
    assert directed.edge_index.shape == (2, 1_166_243)


def test_roman_empire_without_features(data_root):
    require_structure("roman-empire", data_root)
    data = load("roman-empire", root=data_root, features=False)
    assert data.num_nodes == 22_662
    assert sizes(data) == [(11_331, 5_665, 5_666)] * 10
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert same.float().mean().item() == pytest.approx(0.047, abs=5e-4)


def test_missing_features_are_told_with_the_way_out(data_root, no_data_sets):
    require_structure("roman-empire", data_root)
    if locate(get_spec("roman-empire"), data_root).complete:
        pytest.skip("roman-empire is complete here")
    with pytest.raises(MissingDataError, match=r"heterophilous/roman_empire\.npz.*features=False"):
        load("roman-empire", root=data_root)
