"""`fit` on graphs that a user made in Python, which may bring candidates: settings of a run say whose it had."""

import warnings
from functools import partial

import pytest
import torch
from torch_geometric.data import Batch, HeteroData

import gumbel_mpnn as gm
from gumbel_mpnn.candidates import Global, Local, TwoHop
from gumbel_mpnn.data import specs
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import both_ways, changed, edges, generated, small_data
from quick_fit import TABLES, figures, quick


def two_way(**changes):
    """`small_data` without self-loops, every edge both ways."""
    data = small_data()
    proper = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return changed(data, edge_index=both_ways(proper), **changes)


def told(make):
    """Result of `make`, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = make()
    return result, [str(warning.message) for warning in caught if warning.category is DataWarning]


def test_labels_and_features_in_other_forms_give_the_same_numbers():
    x = (two_way().x * 4).round()
    plain = quick(two_way(x=x))
    named = quick(two_way(x=x.long().numpy(), y=["abc"[label] for label in two_way().y.tolist()]))
    assert figures(named) == figures(plain)
    assert set(named.predict()) <= set("abc")


def test_columns_of_a_file_are_kept():
    columns = [gm.data.FeatureColumn(f"f{k}") for k in range(6)]
    data = two_way(feature_columns=columns, train_mask=None, val_mask=None, test_mask=None)
    assert quick(data, splits=[0]).data.feature_columns == columns


def test_all_that_is_ignored_is_told_once_by_auto_as_well():
    data = changed(small_data(), edge_attr=torch.ones(72, 1))
    arcs = set(map(tuple, data.edge_index.T.tolist()))
    loops = {arc for arc in arcs if arc[0] == arc[1]}
    one_way = {arc for arc in arcs if arc[::-1] not in arcs}
    assert told(lambda: quick(two_way()))[1] == []
    messages = told(lambda: gm.fit(data, "gcn", settings=TABLES, device="cpu"))[1]
    assert [message.split(",")[0] for message in messages] == [
        "the edge_attr of this graph is ignored",
        f"this graph has {len(loops)} self-loops",
        f"{len(one_way)} of the {len(arcs - loops)} edges of this graph have no reverse",
    ]
    small = {"train": {"epochs": 1}, "model": {"hidden_channels": 4}}
    by_auto = told(lambda: gm.fit(data, "auto", settings=small, splits=[0], device="cpu"))[1]
    assert [message for message in by_auto if message in messages] == messages


def test_batches_of_graphs_whose_nodes_have_labels():
    graphs = [two_way(metric="accuracy", name=name, class_names=["a", "b", "c"]) for name in ("one", "two")]
    run = quick(Batch.from_data_list(graphs))
    assert (run.settings.dataset, run.metric, run.data.num_nodes) == ("one-two", "accuracy", 48)
    assert len(run.predict()) == 48


@pytest.mark.parametrize("model", ["gcn", "auto"])
def test_other_kinds_of_graphs_are_refused_by_every_model(model):
    with pytest.raises(UserError, match=r"a HeteroData is not supported"):
        gm.fit(HeteroData(), model)
    with pytest.raises(UserError, match="a list is not supported"):
        gm.fit([two_way(), two_way()], model)


class TestPresetFamilies:
    def test_that_have_nothing_for_this_graph_are_told_once(self):
        settings = {"splits": [0], "settings": TABLES, "device": "cpu"}
        _, messages = told(lambda: gm.fit(two_way(name="mine"), "gcn", preset="paper", **settings))
        assert messages == ["there is no paper preset for gcn on mine: the default settings are used"]
        for preset in ("tuned", None):
            assert told(lambda preset=preset: gm.fit(two_way(), "gcn", preset=preset, **settings))[1] == []

    def test_that_have_nothing_for_a_data_set_are_told_once(self, monkeypatch):
        monkeypatch.setitem(specs, "plain", generated("plain", two_way))
        for preset in ("tuned", "paper"):
            run = partial(gm.fit, "plain", "gcn", preset=preset, settings=TABLES, device="cpu")
            assert told(run)[1] == [f"there is no {preset} preset for gcn on plain: the default settings are used"]


PLAIN = small_data()
OWN = changed(PLAIN, candidate_index=edges((0, 1), (0, 2), (1, 2)))


def trained(data, tmp_path=None, **rewiring):
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 2}, "rewiring": rewiring}
    return quick(data, "gumbel-mpnn", settings=tables, splits=[0], runs=tmp_path)


def added(data):
    """The pairs of a rewired graph that were not given."""
    return {tuple(pair) for pair in data.edge_index[:, ~data.edge_origin].T.tolist() if pair[0] < pair[1]}


def candidates(data):
    return set(map(tuple, data.candidate_index.T.tolist()))


def test_candidates_of_the_data_are_what_is_chosen_from_unless_something_else_is_asked_for():
    run = trained(OWN)
    assert added(run.rewire(threshold=0)) == candidates(OWN)
    assert [record.settings["rewiring"]["candidates"] for record in run.records] == ["data"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"candidates": "none"}, set()),
        ({"candidates": "two_hop"}, candidates(TwoHop(per_node=5)(PLAIN))),
        ({"candidates": "global", "candidates.pairs": 7}, candidates(Global(pairs=7)(PLAIN))),
        ({"candidates.per_node": 2}, candidates(Local(per_node=2)(PLAIN))),
        ({"candidates": "data"}, candidates(OWN)),
    ],
)
def test_what_is_asked_for_is_what_is_trained_with(asked, expected):
    run = trained(OWN, **asked)
    assert added(run.rewire(threshold=0)) == added(run.rewire(OWN, threshold=0)) == expected
    assert run.settings.rewiring.candidates == asked.get("candidates", "local")
    assert run.settings.to_dict() == run.records[0].settings


def test_runs_without_them_are_those_of_the_data_that_never_had_them(tmp_path):
    plain, own = (trained(data, tmp_path, candidates="two_hop") for data in (PLAIN, OWN))
    assert own.folders == plain.folders
    assert trained(PLAIN, tmp_path).folders != trained(OWN, tmp_path).folders


def test_a_settings_file_asks_too_and_a_transform_brings_too(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[rewiring]\ncandidates = "none"\n[train]\nepochs = 1\n')
    by_file = quick(OWN, "gumbel-mpnn", settings=None, preset=str(file), splits=[0])
    assert added(by_file.rewire(threshold=0)) == set()
    brought = quick(PLAIN, "gumbel-mpnn", transform=Local(per_node=1), splits=[0])
    assert added(brought.rewire(Local(per_node=1)(PLAIN), threshold=0)) == candidates(Local(per_node=1)(PLAIN))
    assert brought.settings.rewiring.candidates == "data"


def test_candidates_of_nodes_that_do_not_exist_are_refused_by_plain_models_too():
    with pytest.raises(DataError) as caught:
        quick(two_way(candidate_index=torch.tensor([[0], [24]])))
    assert str(caught.value) == (
        "candidate_index joins nodes 0 and 24, but the nodes are 0 to 23: data.subgraph does not renumber"
        " candidates, so delete them and compute them again"
    )


def test_a_graph_that_should_bring_some_and_does_not():
    with pytest.raises(DataError, match=r"rewiring\.candidates is 'data', but this graph has none"):
        trained(PLAIN, candidates="data")
    run = trained(OWN)
    with pytest.raises(DataError, match="has none"):
        run.predict(PLAIN)
    empty = changed(PLAIN, candidate_index=edges())
    assert added(run.rewire(empty, threshold=0)) == set()


def test_models_that_do_not_rewire_pass_candidates_over():
    assert torch.equal(quick(OWN).predict_proba(), quick(PLAIN).predict_proba())
