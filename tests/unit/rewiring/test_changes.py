"""What rewiring changed, counted by hand on five pairs."""

import json

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring import changes
from helpers import edges
from quick_fit import TABLES, quick

# Pairs are sorted: (0, 1) and (2, 3) and (3, 4) are given, (0, 2) and (1, 4) are candidates.
GRAPH = PairGraph.build(edges((0, 1), (2, 3), (3, 4)), 5, undirected=True, candidate_index=edges((0, 2), (1, 4)))


def by_pair(**values):
    return torch.tensor([values[f"p{a}{b}"] for a, b in GRAPH.pair_index.T.tolist()])


def test_counts_and_the_largest_first():
    found = changes(GRAPH, by_pair(p01=0.9, p23=0.25, p34=0.0, p02=0.75, p14=0.125), node_ids=list("abcde"))
    assert (found.kept, found.dropped, found.added, found.candidates) == (1, 2, 1, 2)
    assert [(each.change, each.source, each.target, each.probability) for each in found.largest] == [
        ("dropped", "d", "e", 0.0),
        ("added", "a", "c", 0.75),
        ("dropped", "c", "d", 0.25),
    ]
    assert found.sentence() == "at one half, 1 given edges are kept, 2 dropped and 1 of 2 candidates added"
    assert json.loads(json.dumps(found.to_dict()))["largest"][0] == {
        "change": "dropped", "source": "d", "target": "e", "probability": 0.0,
    }  # fmt: skip


def test_a_pair_at_the_threshold_is_an_edge():
    found = changes(GRAPH, torch.full((5,), 0.75), threshold=0.75)
    assert (found.kept, found.dropped, found.added) == (3, 0, 2)
    assert found.sentence().startswith("at 0.75, ")


def test_nothing_changed_is_said_in_these_words():
    found = changes(GRAPH, by_pair(p01=0.95, p23=0.95, p34=0.95, p02=0.05, p14=0.05))
    assert found.largest == ()
    assert found.sentence() == "the learned graph is the given one: at one half, all 3 edges are kept and none is added"


def test_of_a_run():
    run = quick(model="gumbel-mpnn", settings=TABLES)
    found, graph = run.changes(), run.rewire(threshold=0.5)
    assert 2 * (found.kept + found.added) == graph.edge_index.shape[1]
    assert found.kept + found.dropped == gm.PairGraph.of(run.data, candidates=False).num_pairs
    with pytest.raises(gm.UserError, match="model 'gcn' has no edge probabilities"):
        quick().changes()
