"""Parts of a graph: METIS, halos, and the pairs of each part."""

import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.graph.partition import partition, subgraphs
from gumbel_mpnn.util.errors import UserError
from helpers import edges, random_edges


def test_a_path_in_two_parts():
    """0 - 1 - 2 | 3 - 4 - 5, with a candidate 0 - 5: each part also has the nodes that its own hear from."""
    graph = PairGraph.build(
        edges((0, 1), (1, 2), (2, 3), (3, 4), (4, 5)),
        6,
        edge_weight=torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
        candidate_index=edges((0, 5)),
    )
    first, second = subgraphs(graph, torch.tensor([0, 0, 0, 1, 1, 1]))
    assert first.nodes.tolist() == [0, 1, 2, 3, 5]
    assert first.own.tolist() == [True, True, True, False, False]
    assert first.graph.pair_index.T.tolist() == [[0, 1], [0, 4], [1, 2], [2, 3]]
    assert first.graph.pair_weight.tolist() == [1.0, 1.0, 2.0, 3.0]
    assert first.graph.is_original.tolist() == [True, False, True, True]
    assert first.pairs.tolist() == [0, 1, 2, 3]
    assert first.own_pairs.tolist() == [True, False, True, False]
    assert second.nodes.tolist() == [0, 2, 3, 4, 5]
    assert second.pairs.tolist() == [1, 3, 4, 5]
    assert second.own_pairs.tolist() == [True, True, True, True]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), count=st.integers(1, 6), undirected=st.booleans())
def test_parts_hold_every_node_and_pair_once_and_all_that_own_nodes_hear(seed, count, undirected):
    nodes = 20
    listed, extra = random_edges(nodes, 40, seed), random_edges(nodes, 10, seed + 1)
    graph = PairGraph.build(listed, nodes, undirected=undirected, candidate_index=extra)
    part = torch.randint(count, (nodes,), generator=torch.Generator().manual_seed(seed))
    parts = list(subgraphs(graph, part))
    assert sorted(torch.cat([each.nodes[each.own] for each in parts]).tolist()) == list(range(nodes))
    assert sorted(torch.cat([each.pairs[each.own_pairs] for each in parts]).tolist()) == list(range(graph.num_pairs))
    whole = {tuple(arc) for arc in graph.edge_index.T.tolist()}
    for each in parts:
        inside, own = set(each.nodes.tolist()), set(each.nodes[each.own].tolist())
        assert inside == own | {source for source, target in whole if target in own}
        arcs = each.nodes[each.graph.edge_index]
        assert {tuple(arc) for arc in arcs.T.tolist()} == {arc for arc in whole if set(arc) <= inside}
        assert torch.equal(each.nodes[each.graph.pair_index], graph.pair_index[:, each.pairs])
        assert torch.equal(each.graph.is_original, graph.is_original[each.pairs])


@pytest.mark.parametrize("undirected", [True, False])
def test_cliques_are_not_cut(undirected):
    clique = torch.combinations(torch.arange(6)).T
    listed = torch.cat([clique + 6 * k for k in range(4)] + [edges((5, 6), (11, 12), (17, 18))], dim=1)
    part = partition(PairGraph.build(listed, 24, undirected=undirected), 4)
    assert sorted({tuple(row) for row in part.view(4, 6).tolist()}) == [(k,) * 6 for k in range(4)]


def test_more_parts_than_nodes_and_no_edges():
    graph = PairGraph.build(edges((0, 1)), 3)
    assert sum(len(each.nodes[each.own]) for each in subgraphs(graph, partition(graph, 50))) == 3
    bare = PairGraph.build(edges(), 5)
    assert len(partition(bare, 2)) == 5
    assert partition(PairGraph.build(edges(), 1), 4).tolist() == [0]


def test_without_pymetis_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    graph = PairGraph.build(edges((0, 1), (1, 2)), 3)
    assert partition(graph, 1).tolist() == [0, 0, 0]
    with pytest.raises(UserError, match=r"need the package pymetis: pip install 'gumbel-mpnn\[scale\]'"):
        partition(graph, 2)
