"""Generated data sets by name."""

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import DataError, UnknownNameError, UserError
from gumbel_mpnn.data import check, demo_graph, get_spec, load, locate, specs
from gumbel_mpnn.data.generated import GENERATED


@pytest.mark.parametrize("name", GENERATED)
def test_the_graph_is_what_its_spec_says(name):
    spec, data = get_spec(name), load(name)
    facts = check(data)
    assert (facts.num_nodes, facts.num_edges, facts.num_classes) == (spec.num_nodes, spec.num_edges, spec.num_classes)
    assert data.num_features == spec.num_features
    assert data.train_mask.shape == (spec.num_nodes, 10)
    assert spec.has_directions == data.is_directed()
    made = spec.make()
    assert (data.name, data.metric, data.protocol) == (made.name, made.metric, made.protocol)
    assert set(data.keys()) == set(made.keys())


def test_sizes_of_a_task_share_its_name():
    tasks = {"demo", "leaf-count", "tree-neighbors-match", "bottleneck"}
    assert {get_spec(name).name for name in GENERATED} == tasks | {"wine", "breast-cancer", "digits"}


def test_the_default_splits_are_those_of_the_generator():
    data, made = load("demo"), demo_graph()
    assert torch.equal(data.train_mask, made.train_mask)
    assert torch.equal(load("demo", split=3).test_mask, made.test_mask[:, 3])


def test_another_protocol():
    data = load("bottleneck-10", protocol="random-60-20-20", num_splits=2)
    assert data.train_mask.shape == (400, 2)
    assert data.protocol == "random-60-20-20"
    assert not data.train_mask[data.y < 0].any()


def test_without_features():
    data = load("Leaf_Count_3", features=False)
    assert data.x is None
    assert data.num_nodes == 1260


def test_trees_keep_their_direction():
    assert torch.equal(load("leaf-count-3", directed=True).edge_index, load("leaf-count-3").edge_index)


def test_errors():
    with pytest.raises(DataError, match="data set 'demo' has no directed edges"):
        load("demo", directed=True)
    with pytest.raises(UnknownNameError, match="no data set called 'leafcount': did you mean 'leaf-count'"):
        load("leafcount")
    with pytest.raises(UnknownNameError, match="no split protocol of 'bottleneck' called 'public'"):
        load("bottleneck", protocol="public")
    with pytest.raises(UserError, match="there is no split 10: this protocol has splits 0 to 9"):
        load("bottleneck-10", split=10)


def test_no_file_is_missing():
    presence = locate(specs["leaf-count"])
    assert presence.complete
    assert presence.without_features


@pytest.mark.parametrize("name", ["demo", "leaf-count-3"])
@pytest.mark.parametrize("overrides", [(), ("data.undirected=false",), ("data.protocol=random-48-32-20",)])
def test_a_name_and_its_graph_are_the_same_setting(name, overrides, tmp_path):
    options = {"settings": {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}, "overrides": overrides}
    options |= {"splits": [0], "device": "cpu", "runs": tmp_path}
    by_name, by_graph = (gm.fit(dataset, "gcn", **options) for dataset in (name, GENERATED[name].make()))
    assert by_name.folder.path == by_graph.folder.path
    assert by_name.settings.dataset == GENERATED[name].name
