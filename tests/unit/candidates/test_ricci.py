"""Which pairs `Ricci` takes, and that it draws them evenly."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn import UserError
from gumbel_mpnn.candidates import Ricci, ricci
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures import balanced_forman
from helpers import edges

# Two cliques of forty and a bridge, 39 – 40: 1,600 pairs around it, too many to look at all.
BRIDGE = PairGraph.build(edges(*nx.barbell_graph(40, 0).edges), 80)
SMALL_BRIDGE = PairGraph.build(edges(*nx.barbell_graph(5, 0).edges), 10)


@pytest.mark.parametrize(("graph", "size"), [(SMALL_BRIDGE, 5), (BRIDGE, 40)])
def test_the_first_pairs_are_around_the_bridge_and_drawn_evenly(graph, size):
    times = np.zeros((2 * size, 2 * size), int)
    rounds = 60
    for seed in range(rounds):
        key = ricci.draw(graph, 10, 10, seed)
        assert len(set(key.tolist())) == 10
        times[key // (2 * size), key % (2 * size)] += 1
    assert times.sum() == times[:size, size:].sum() == 10 * rounds
    assert times[size - 1, size] == 0
    mean = 10 * rounds / (size * size - 1)
    assert abs(times.sum(1)[:size] - mean * size).max() < 6 * np.sqrt(mean * size)
    assert times.max() < mean + 7 * np.sqrt(mean)


def test_more_edges_are_served_where_each_draws_fewer():
    data = Data(edge_index=edges(*nx.karate_club_graph().edges))
    narrow, broad = (Ricci(pairs=12, per_edge=per_edge)(data) for per_edge in (12, 1))
    graph = PairGraph.build(data.edge_index, 34)
    curvature = balanced_forman(Data(edge_index=graph.pair_index))
    x, y = graph.pair_index[:, int(curvature.argmin())].tolist()
    near = [{end, *graph.edge_index[1, graph.edge_index[0] == end].tolist()} for end in (x, y)]
    around = [
        sum(
            (i in near[0] and j in near[1]) or (i in near[1] and j in near[0])
            for i, j in out.candidate_index.T.tolist()
        )
        for out in (narrow, broad)
    ]
    assert around[0] == 12 > around[1]


def test_joining_a_candidate_relieves_an_edge():
    data = Data(edge_index=edges(*nx.barbell_graph(5, 0).edges))
    candidates = Ricci(pairs=5)(data).candidate_index.T
    assert len(candidates) == 5
    for pair in candidates:
        joined = Data(edge_index=torch.cat([data.edge_index, pair[:, None]], dim=1))
        bridge = int((data.edge_index == torch.tensor([[4], [5]])).all(0).nonzero())
        assert balanced_forman(joined)[bridge] > balanced_forman(data)[bridge]


def test_the_seed_decides():
    data = Data(edge_index=edges(*nx.karate_club_graph().edges))
    one, again, other = (gm.candidates.Ricci(pairs=20, seed=seed)(data).candidate_index for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_mistakes():
    for options, message in (
        ({"pairs": -1}, "pairs must be at least 0, but is -1"),
        ({"per_edge": 0}, "per_edge must be at least 1, but is 0"),
        ({"pairs": 2.5}, "pairs must be a whole number, but is 2.5"),
        ({"per_edge": 1.5}, "per_edge must be a whole number, but is 1.5"),
        ({"seed": "a"}, "seed must be a whole number, but is 'a'"),
    ):
        with pytest.raises(UserError, match=message):
            Ricci(**options)


def test_edges_of_another_shape():
    with pytest.raises(UserError, match=r"edge_index must be integers of shape \[2, E\]"):
        Ricci()(Data(edge_index=edges((0, 1), (1, 2), (2, 0)).T, num_nodes=3))
