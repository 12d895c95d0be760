"""Measures of learned graphs by pairs of training nodes: averages over runs, and when they say overfitting."""

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.runs.audit import measure_pairs
from gumbel_mpnn.runs.store import Learned
from helpers import edges
from quick_fit import TABLES, quick

# Split 0 trains on nodes 0 to 3, split 1 on nodes 4 to 7. Even and odd nodes are of two classes.
Y = torch.arange(8) % 2
MASK = torch.stack([torch.arange(8) < 4, torch.arange(8) >= 4], dim=1)
GRAPH = PairGraph.build(edges((0, 1), (0, 2), (4, 5), (4, 6), (3, 4)), 8, undirected=True)
DATA = Data(edge_index=edges((0, 1)), y=Y, train_mask=MASK, num_nodes=8)


def learned(*dropped):
    """Learned graphs that lack one edge each."""
    rows = []
    for pair in dropped:
        missing = (torch.tensor(pair) == GRAPH.pair_index.T).all(1)
        rows.append(torch.where(missing, 0.1, 0.9))
    return Learned(GRAPH, torch.stack(rows))


def test_every_run_has_its_own_graph_and_its_own_split():
    found = measure_pairs(learned((0, 1), (4, 5)), DATA, [0, 1])
    inside = found.kinds["train_train"]
    assert (inside.before["num_edges"], inside.after["num_edges"]) == (2, 1)
    assert (inside.before["edge_homophily"], inside.after["edge_homophily"]) == (0.5, 1.0)
    assert (inside.change.mean, inside.change.std, found.runs) == (0.5, 0.0, 2)
    assert found.kinds["other_other"].change.mean == 0
    assert found.kinds["train_other"].after["edge_homophily"] == 0.0
    assert found.overfits
    assert found.sentence() == (
        "edge homophily changes by +0.500 among training nodes but by +0.000 among other nodes: the improvement is on"
        " training nodes alone, that is overfitting"
    )


@pytest.mark.parametrize(
    ("dropped", "change", "std"),
    [
        (((4, 5), (0, 1)), 0.0, 0.0),  # better among other nodes, which is what one wants
        (((0, 1), (4, 6)), 0.0, 0.5**0.5),  # +1/2 and −1/2 among training nodes: the mean is within the spread
        (((0, 1), (0, 1)), 0.25, 0.125**0.5),  # in one of two runs
    ],
    ids=str,
)
def test_what_is_not_overfitting(dropped, change, std):
    found = measure_pairs(learned(*dropped), DATA, [0, 1])
    inside = found.kinds["train_train"].change
    assert (inside.mean, inside.std) == pytest.approx((change, std))
    assert not found.overfits
    assert found.sentence() == ""


def test_pairs_that_do_not_exist_say_nothing():
    found = measure_pairs(learned((3, 4)), Data(y=Y, train_mask=MASK[:, :1] | True, num_nodes=8), [0])
    assert found.kinds["other_other"].change.n == 0
    assert not found.overfits
    assert found.to_dict()["other_other"]["homophily_change"] is None


def test_of_a_run():
    run = quick(model="gumbel-mpnn", settings=TABLES)
    found = run.measure_pairs()
    assert found.runs == 2
    graphs = list(run.graphs())
    means = [
        gm.measures.training_pairs(graph, graph.train_mask[:, split])["train_other"]["num_edges"]
        for split, graph in enumerate(graphs)
    ]
    assert found.kinds["train_other"].after["num_edges"] == sum(means) / 2
    with pytest.raises(gm.UserError, match="model 'gcn' learns no graph"):
        quick().measure_pairs()
