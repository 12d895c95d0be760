"""What candidates must be on any small graph, and the searches against their plain definitions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.candidates import CandidateStrategy, Global, Local, TwoHop, candidates, search
from helpers import both_ways, edges, normal

bounded = settings(max_examples=60, deadline=None)
KINDS = st.sampled_from(["cosine", "dot"])


@st.composite
def graphs(draw: st.DrawFn, whole_numbers: bool = True, batched: bool = False) -> Data:
    """A graph of up to 20 nodes: whole-number features (many ties, some zero vectors) or normal ones."""
    nodes = draw(st.integers(1, 20))
    batch = torch.tensor(sorted(draw(st.lists(st.integers(0, 4), min_size=nodes, max_size=nodes))))
    batch = batch if batched else torch.zeros_like(batch)
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=40))
    edge_index = edges(*(pair for pair in pairs if batch[pair[0]] == batch[pair[1]]))
    if draw(st.booleans()):
        edge_index = both_ways(edge_index)
    seed, width = draw(st.integers(0, 2**16)), draw(st.integers(2, 4))
    x = normal(nodes, width, seed=seed, dtype=torch.float32)
    data = Data(x=(2 * x).round() if whole_numbers else x, edge_index=edge_index)
    return Data(**data.to_dict(), batch=batch) if batched else data


@st.composite
def strategies(draw: st.DrawFn) -> CandidateStrategy:
    name = draw(st.sampled_from(sorted(candidates)))
    count = draw(st.integers(1, 25))
    options = {
        "local": {"per_node": count, "similarity": draw(KINDS)},
        "global": {"pairs": count - 1, "similarity": draw(KINDS)},
        "two_hop": {"per_node": count, "seed": draw(st.integers(-5, 5))},
        "ricci": {"pairs": count - 1, "per_edge": draw(st.integers(1, 5)), "seed": draw(st.integers(-5, 5))},
    }
    return candidates[name](**options.get(name, {}))


def allowed(data: Data) -> Tensor:
    """Which pairs may be candidates, bool [N, N]."""
    free = ~torch.eye(data.num_nodes, dtype=torch.bool)
    source, target = data.edge_index
    free[source, target] = free[target, source] = False
    batch = data.get("batch")
    return free if batch is None else free & (batch[:, None] == batch)


def similarities(data: Data, kind: str) -> Tensor:
    """All of them, float64 [N, N]."""
    x = data.x.double()
    if kind == "cosine":
        x = x / x.norm(dim=1, keepdim=True).clamp(min=1e-300)
    return x @ x.T


def distinct(score: Tensor) -> bool:
    """Whether no two possible entries are so near that rounding decides which is larger."""
    possible = score[score > -torch.inf]
    return bool((possible.sort().values.diff() > 1e-5).all())


def rounding_decides(data: Data, kind: str) -> bool:
    """Whether some graph of a batch has two pairs so alike that the order of additions may say which is more so."""
    if kind == "dot" and torch.equal(data.x, data.x.round()):
        return False  # sums of whole numbers are exact
    score = similarities(data, kind).masked_fill(~allowed(data).triu(), -torch.inf)
    return not all(distinct(score[data.batch == graph]) for graph in data.batch.unique())


def as_set(data: Data) -> set[tuple[int, int]]:
    return {(first, second) for first, second in data.candidate_index.T.tolist()}


@bounded
@given(st.booleans().flatmap(lambda batched: graphs(batched=batched)), strategies())
def test_candidates_are_sorted_distinct_and_allowed(data, strategy):
    pairs = strategy(data).candidate_index
    assert pairs.dtype == torch.int64
    assert (pairs[0] < pairs[1]).all()
    assert ((pairs[0] * data.num_nodes + pairs[1]).diff() > 0).all()
    assert allowed(data)[pairs[0], pairs[1]].all()


@bounded
@given(graphs(), strategies(), st.randoms(use_true_random=False))
def test_how_edges_are_listed_does_not_matter(data, strategy, random):
    order = random.sample(range(data.edge_index.shape[1]), data.edge_index.shape[1])
    listed = torch.cat([data.edge_index[:, order].flip(0), data.edge_index], dim=1)
    other = Data(x=data.x, edge_index=listed)
    assert torch.equal(strategy(data).candidate_index, strategy(other).candidate_index)


@bounded
@given(st.booleans().flatmap(lambda batched: graphs(batched=batched)), st.integers(1, 25))
def test_local_is_the_best_of_each_row(data, per_node):
    score = similarities(data, "dot").masked_fill(~allowed(data), -torch.inf)
    found = as_set(Local(per_node, "dot")(data))
    chosen_by = dict.fromkeys(found, 0)
    for node, row in enumerate(score):
        best = row[row > 0].sort(descending=True).values[:per_node]
        mine = [other for other in range(data.num_nodes) if (min(node, other), max(node, other)) in found]
        worst = float(best[-1]) if len(best) else torch.inf
        good = [other for other in mine if row[other] >= worst]
        assert len(good) >= len(best)  # more where another node chose this one
        assert {other for other in range(data.num_nodes) if row[other] > worst} <= set(good)
        for other in good:
            chosen_by[min(node, other), max(node, other)] += 1
    assert all(chosen_by.values())


@bounded
@given(graphs(whole_numbers=False), st.integers(1, 25), KINDS)
def test_local_is_the_best_of_each_row_for_any_numbers(data, per_node, kind):
    score = similarities(data, kind).masked_fill(~allowed(data), -torch.inf)
    assume(all(map(distinct, score)))
    assume((score[score > -torch.inf].abs() > 1e-5).all())
    top = score.topk(min(per_node, data.num_nodes), dim=1)
    node, place = (top.values > 0).nonzero().T
    found = torch.stack([node, top.indices[node, place]])
    assert as_set(Local(per_node, kind)(data)) == {(min(pair), max(pair)) for pair in found.T.tolist()}


@bounded
@given(graphs(), st.integers(1, 60))
def test_global_is_the_best_of_all_pairs(data, pairs):
    score = similarities(data, "dot").masked_fill(~allowed(data).triu(), -torch.inf)
    best = score[score > 0].sort(descending=True).values[:pairs]
    found = [float(score[pair]) for pair in as_set(Global(pairs, "dot")(data))]
    assert sorted(found, reverse=True) == best.tolist()


@bounded
@given(graphs(whole_numbers=False), st.integers(1, 60), KINDS)
def test_global_is_the_best_of_all_pairs_for_any_numbers(data, pairs, kind):
    score = similarities(data, kind).masked_fill(~allowed(data).triu(), -torch.inf)
    assume(distinct(score))
    assume((score[score > -torch.inf].abs() > 1e-5).all())
    top = score.flatten().topk(min(pairs, score.numel()))
    best = top.indices[top.values > 0].tolist()
    assert as_set(Global(pairs, kind)(data)) == {divmod(entry, data.num_nodes) for entry in best}


@bounded
@given(st.data(), strategies(), st.integers(1, 20_000))
def test_memory_does_not_change_the_result(draws, strategy, budget):
    kind = getattr(strategy, "similarity", "dot")
    data = draws.draw(graphs(whole_numbers=kind == "dot", batched=True))
    assume(not rounding_decides(data, kind))
    expected = strategy(data).candidate_index
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(search.MEMORY, "cpu", budget)
        assert torch.equal(strategy(data).candidate_index, expected)


@bounded
@given(graphs(), st.integers(1, 25), st.integers(0, 100))
def test_two_hop_candidates_are_at_distance_two(data, per_node, seed):
    pairs = as_set(TwoHop(per_node, seed)(data))
    adjacent = torch.zeros(data.num_nodes, data.num_nodes)
    source, target = data.edge_index
    adjacent[source, target] = adjacent[target, source] = 1
    at_two = (adjacent @ adjacent > 0) & allowed(data)
    assert all(at_two[pair] for pair in pairs)
    degree = at_two.sum(1)
    assert len(pairs) <= degree.clamp(max=per_node).sum()
    for node in range(data.num_nodes):
        chosen = sum(node in pair for pair in pairs)
        assert min(per_node, int(degree[node])) <= chosen <= degree[node]
