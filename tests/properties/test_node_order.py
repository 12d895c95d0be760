"""How the nodes of a graph are numbered decides nothing: candidates, SDRF and noise are held to it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn.baselines import SDRF
from gumbel_mpnn.candidates import Global, Local, Ricci, TwoHop, candidates
from gumbel_mpnn.data import add_noise_edges
from gumbel_mpnn.graph import PairGraph, content_order, in_order
from gumbel_mpnn.util.errors import DataError
from helpers import both_ways, edges, random_edges

bounded = settings(max_examples=40, deadline=None)
EVERY_KIND = [
    Local(2),
    Local(3, "dot"),
    Global(7),
    Global(0, "dot"),
    TwoHop(2),
    Ricci(5, per_edge=2),
    Ricci(),
]


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    """Up to 16 nodes with features that differ but tie in similarity, three classes, and test nodes."""
    nodes = draw(st.integers(2, 16))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=30))
    rows = draw(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), min_size=nodes, max_size=nodes, unique=True))
    y = torch.tensor(draw(st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes)))
    test = torch.tensor(draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    return Data(x=torch.tensor(rows).float(), y=y, test_mask=test, edge_index=both_ways(edges(*pairs)), num_nodes=nodes)


def permuted(data: Data, random) -> tuple[Data, Tensor]:
    """The graph with its nodes renumbered at random, and the old number of each node."""
    order = torch.tensor(random.sample(range(data.num_nodes), data.num_nodes))
    return in_order(data, order), order


def undirected(index: Tensor) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in index.T.tolist()}


def test_every_strategy_is_held_to_it():
    assert {type(strategy) for strategy in EVERY_KIND} == {candidates[name] for name in candidates}


@bounded
@given(graphs(), st.sampled_from(EVERY_KIND), st.randoms(use_true_random=False))
def test_candidates(data, strategy, random):
    other, order = permuted(data, random)
    assert undirected(order[strategy(other).candidate_index]) == undirected(strategy(data).candidate_index)


@bounded
@given(graphs(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_sdrf(data, seed, random):
    other, order = permuted(data, random)
    strategy = SDRF(iterations=6, tau=3.0, removal_bound=0.0, seed=seed)
    assert undirected(order[strategy(other).edge_index]) == undirected(strategy(data).edge_index)


@bounded
@given(graphs(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_noise(data, seed, random):
    other, order = permuted(data, random)
    try:
        noisy, again = add_noise_edges(data, 2, seed), add_noise_edges(other, 2, seed)
    except DataError:  # two edges do not fit
        assume(False)
    assert undirected(order[again.edge_index]) == undirected(noisy.edge_index)


@pytest.mark.parametrize("strategy", [Local(5), Local(5, "dot"), Global(3000), TwoHop(5), Ricci(3000)], ids=str)
@pytest.mark.parametrize("features", ["identity", "constant", "few columns", "few columns, no edge"])
def test_a_file_sorted_by_class_gives_no_class_away(strategy, features):
    """Three classes of 200 nodes, one after the other, and edges and features that say nothing of them."""
    y = torch.arange(600) // 200
    generator = torch.Generator().manual_seed(0)
    x = {"identity": torch.eye(600), "constant": torch.ones(600, 1)}.get(features)
    x = torch.randint(2, (600, 3), generator=generator).float() if x is None else x
    index = edges() if "no edge" in features else both_ways(random_edges(600, 1500))
    first, second = strategy(Data(x=x, edge_index=index, num_nodes=600)).candidate_index
    if features == "identity" and isinstance(strategy, Local | Global):
        assert first.numel() == 0  # all similarities are 0
    elif first.numel():
        share = (y[first] == y[second]).float().mean()
        assert abs(share - 1 / 3) < 4 * (2 / 9 / first.numel()) ** 0.5 + 0.01
    else:
        assert isinstance(strategy, TwoHop | Ricci)


def test_nodes_that_nothing_tells_apart_come_in_a_random_order():
    graph = PairGraph.build(edges(), 1000)
    order = content_order(graph, [torch.zeros(1000, 3)])
    assert sorted(order.tolist()) == list(range(1000))
    moved = (order - torch.arange(1000)).abs().float().mean()
    assert 250 < moved < 420  # a third of the nodes on average


def test_the_order_within_a_graph_of_a_batch_is_its_own():
    single = Data(x=torch.ones(50, 2), edge_index=random_edges(50, 80))
    batch = Batch.from_data_list([single, single, single])
    alone = content_order(PairGraph.of(single), [single.x])
    together = content_order(PairGraph.of(batch), [batch.x], batch.batch)
    assert torch.equal(together.view(3, 50), alone + torch.tensor([[0], [50], [100]]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_features_of_any_type_tell_nodes_apart(dtype):
    x = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0]]).to(dtype)
    graph, order = PairGraph.build(edges(), 4), torch.tensor([2, 0, 3, 1])
    assert torch.equal(order[content_order(graph, [x[order]])], content_order(graph, [x]))
