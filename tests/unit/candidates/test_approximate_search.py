"""The approximate search for candidates: exact within parts, by NN-descent across them."""

import sys

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.candidates import Global, Local
from gumbel_mpnn.candidates.approximate import _best, _within_parts
from gumbel_mpnn.graph import PairGraph, contains, pair_key, partition
from helpers import edges


def graph_of(nodes, seed=0):
    """Normal features around twenty centers, and edges along the numbers of the nodes."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(20, 16, generator=generator)
    x = centers[torch.randint(20, (nodes,), generator=generator)] + torch.randn(nodes, 16, generator=generator)
    near = torch.randint(1, 6, (2 * nodes,), generator=generator)
    first = torch.randint(nodes - 6, (2 * nodes,), generator=generator)
    return Data(x=x, edge_index=torch.stack([first, first + near]))


def keys(data):
    return pair_key(data.candidate_index, data.num_nodes)


@pytest.mark.slow  # pynndescent compiles its functions
def test_sparse_features():
    data, threads = graph_of(900), torch.get_num_threads()
    words = torch.randint(300, (900, 8), generator=torch.Generator().manual_seed(0))
    data.x = torch.zeros(900, 300).scatter_(1, words // 4 * 4, 1.0)
    exact, found = Local(2)(data.clone()), Local(2, search="approximate")(data.clone())
    similarity = torch.nn.functional.normalize(data.x, dim=1)
    means = [(similarity[pairs[0]] * similarity[pairs[1]]).sum(-1).mean() for pairs in
             (found.candidate_index, exact.candidate_index)]  # fmt: skip
    assert means[0] > 0.97 * means[1]  # many nodes are equally similar, and any of them will do
    assert torch.get_num_threads() == threads  # numba would have set it to all cores


@pytest.mark.slow  # pynndescent compiles its functions
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("strategy", [Local, Global])
def test_nearly_all_candidates_of_the_exact_search_are_found(strategy, parts):
    exact, found = strategy()(graph_of(900)), strategy(search="approximate", parts=parts)(graph_of(900))
    assert contains(keys(found), keys(exact)).float().mean() > 0.95
    first, second = found.candidate_index
    assert (first < second).all()
    assert not contains(pair_key(PairGraph.of(graph_of(900)).pair_index, 900), keys(found)).any()
    assert torch.equal(keys(strategy(search="approximate", parts=parts)(graph_of(900))), keys(found))
    if strategy is Global:
        assert len(keys(found)) == len(keys(exact))


def test_the_search_within_parts_is_exact():
    data = graph_of(200)
    graph, x = PairGraph.of(data), torch.nn.functional.normalize(data.x, dim=1)
    part = partition(graph, 4)
    assert len(part.unique()) == 4
    similarity = x @ x.T
    similarity[part[:, None] != part] = -torch.inf
    similarity.fill_diagonal_(-torch.inf)
    similarity[graph.edge_index[0], graph.edge_index[1]] = -torch.inf
    best = similarity.topk(3)
    assert torch.equal(_within_parts(x, graph, 3, 4), best.indices.where(best.values > 0, -1))


def test_the_best_of_what_was_found():
    """Node 0 has the neighbor 1; 2 is found twice, 3 is opposite, and 4 is nearer than 2."""
    x = torch.nn.functional.normalize(torch.tensor([[1.0, 0], [1, 0.1], [1, 1], [-1, 0], [1, 0.5]]), dim=1)
    pairs = pair_key(PairGraph.build(edges((0, 1)), 5).pair_index, 5)
    found = torch.tensor([[2, 0, 1, 3, 2, 4, -1]])
    assert _best(x, torch.tensor([0]), found, pairs, 3).tolist() == [[4, 2, -1]]


def test_when_the_search_is_approximate():
    small, large, batch = Data(num_nodes=400), Data(num_nodes=60_000), Data(num_nodes=60_000, batch=torch.zeros(60_000))
    assert not Local().is_approximate(large)
    assert Local(parts=8).is_approximate(large)
    assert not Local(parts=8, search="exact").is_approximate(large)
    assert not Local(parts=8, similarity="dot").is_approximate(large)
    assert not Local(parts=8).is_approximate(Data(num_nodes=50_000))
    assert Local(search="approximate").is_approximate(large)
    assert not Local(search="approximate").is_approximate(small)
    assert not Global(search="approximate").is_approximate(batch)


def test_mistakes_are_told(monkeypatch):
    with pytest.raises(UserError, match="approximate search is for similarity 'cosine', not 'dot'"):
        Local(search="approximate", similarity="dot")
    with pytest.raises(UserError, match="there is no search called 'fast'"):
        Global(search="fast")
    with pytest.raises(UserError, match="parts must be at least 1"):
        Local(parts=0)
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(UserError, match="needs the package pynndescent: pip install"):
        Local(search="approximate")(graph_of(600))


def test_global_finds_nothing_without_edges():
    """As many candidates as edges are sought, twice: none."""
    data = Data(x=torch.randn(900, 4), edge_index=torch.empty(2, 0, dtype=torch.int64))
    assert Global(search="approximate")(data).candidate_index.shape == (2, 0)
