"""Data that bring candidates: the settings of a run say whose it had, and that is so."""

import pytest
import torch

from gumbel_mpnn.candidates import Global, Local, TwoHop
from gumbel_mpnn.util.errors import DataError
from helpers import changed, edges, small_data
from quick_fit import quick

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


def test_they_are_what_is_chosen_from_unless_something_else_is_asked_for():
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


def test_a_graph_that_should_bring_some_and_does_not():
    with pytest.raises(DataError, match=r"rewiring\.candidates is 'data', but this graph has none"):
        trained(PLAIN, candidates="data")
    run = trained(OWN)
    with pytest.raises(DataError, match="has none"):
        run.predict(PLAIN)
    empty = changed(PLAIN, candidate_index=edges())
    assert added(run.rewire(empty, threshold=0)) == set()


def test_models_that_do_not_rewire_pass_them_over():
    assert torch.equal(quick(OWN).predict_proba(), quick(PLAIN).predict_proba())
