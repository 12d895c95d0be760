"""The graph's operations against dense matrices, on any small graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from helpers import dense_weights, normal

bounded = settings(max_examples=60, deadline=None)


@dataclass
class Case:
    """A graph with features [B, N, D] and pair weights [B, P]."""

    graph: PairGraph
    x: Tensor
    weight: Tensor
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = draw(st.integers(2, 7))
    node = st.integers(0, nodes - 1)
    edge_list = st.lists(st.tuples(node, node), min_size=1, max_size=20)
    proper = edge_list.filter(lambda pairs: any(source != target for source, target in pairs))
    graph = PairGraph.build(torch.tensor(draw(proper)).T, nodes, undirected=draw(st.booleans()))
    batch, width, seed = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 2**16))
    return Case(graph, normal(batch, nodes, width, seed=seed), normal(batch, graph.num_pairs, seed=seed + 1), seed)


def check_values_and_gradients(actual_of, expected_of, *inputs: Tensor) -> None:
    results = []
    for function in (actual_of, expected_of):
        leaves = [value.clone().requires_grad_() for value in inputs]
        out = function(*leaves)
        results.append([out, *torch.autograd.grad((out * normal(*out.shape, seed=9)).sum(), leaves)])
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)


@bounded
@given(cases())
def test_propagate_is_the_dense_product(case):
    check_values_and_gradients(
        lambda x, weight: case.graph.propagate(x, weight),
        lambda x, weight: dense_weights(case.graph, weight) @ x,
        case.x,
        case.weight,
    )


@bounded
@given(cases())
def test_pair_scores_are_entries_of_the_dense_product(case):
    source, target = case.graph.pair_index
    check_values_and_gradients(
        lambda a, b: case.graph.pair_scores(a, b),
        lambda a, b: (a @ b.transpose(1, 2))[:, source, target],
        case.x,
        normal(*case.x.shape, seed=case.seed + 2),
    )


@bounded
@given(cases())
def test_degree_is_the_row_sum(case):
    check_values_and_gradients(
        lambda weight: case.graph.degree(weight, weight.dtype),
        lambda weight: dense_weights(case.graph, weight).sum(-1),
        case.weight,
    )


@bounded
@given(cases(), st.randoms(use_true_random=False))
def test_renumbering_the_nodes_renumbers_the_result(case, random):
    nodes = case.graph.num_nodes
    order = torch.tensor(random.sample(range(nodes), nodes))
    place = order.argsort()
    renumbered = PairGraph.build(place[case.graph.pair_index], nodes, undirected=case.graph.undirected)
    dense = dense_weights(case.graph, case.weight)[:, order][:, :, order]
    source, target = renumbered.pair_index
    moved = renumbered.propagate(case.x[:, order], dense[:, target, source])
    torch.testing.assert_close(moved, case.graph.propagate(case.x, case.weight)[:, order])


@bounded
@given(cases(), st.data())
def test_weight_zero_is_the_edge_removed(case, data):
    pairs = case.graph.num_pairs
    kept = torch.tensor(data.draw(st.lists(st.booleans(), min_size=pairs, max_size=pairs).filter(any)))
    smaller = PairGraph.build(case.graph.pair_index[:, kept], case.graph.num_nodes, undirected=case.graph.undirected)
    weight = case.weight.abs()
    zeroed = WeightedGraph(case.graph, weight * kept, torch.float64)
    removed = WeightedGraph(smaller, weight[:, kept], torch.float64)
    scores = normal(2, len(case.x), 1, case.x.shape[1], seed=case.seed + 3)
    for aggregate in (
        lambda graph: graph.degree,
        lambda graph: graph.mean(case.x),
        lambda graph: graph.symmetric(case.x),
        lambda graph: graph.attend(case.x, *scores, 0.2),
    ):
        torch.testing.assert_close(aggregate(zeroed), aggregate(removed), rtol=1e-10, atol=1e-10)
