"""Approximate search for the most similar nodes of each node: exact within parts of the graph, approximate across."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.candidates.blocks import Block
from gumbel_mpnn.candidates.closest_pairs import Scored
from gumbel_mpnn.candidates.nearest import nearest
from gumbel_mpnn.candidates.similarity import circle_steps, full_precision, is_possible, memory, rank_of, sortable
from gumbel_mpnn.graph import PairGraph, contains, pair_key, pairs_of, partition, undirected_keys

MORE = 10
"""Nodes that the approximate search finds for each node beyond twice those needed, since neighbors are left out."""

SPARSE_BELOW = 0.05
"""Share of non-zeros below which NN-descent takes sparse features."""


def nearest_approximately(x: Tensor, graph: PairGraph, per_node: int, parts: int) -> Tensor:
    """Most similar nodes of each node, as `nearest` finds them, but for few, int64 [N, K]; −1 if there are no more.

    Similarity is the dot product of normalized embeddings float32 [N, D] of a single graph. Nodes of the same part, of
    `parts` that METIS makes of the edges, are compared exactly. Those of other parts are found by NN-descent
    (pynndescent).
    """
    found = _by_descent(x, per_node)
    if parts > 1:
        found = torch.cat([found, _within_parts(x, graph, per_node, parts)], dim=1)
    best = torch.full((len(x), min(per_node, len(x) - 1)), -1, dtype=torch.int64)
    edges = pair_key(graph.pair_index, graph.num_nodes)
    rows = max(memory(x.device) // (4 * found.shape[1] * x.shape[1]), 1)
    with full_precision():
        for chunk in torch.arange(len(x)).split(rows):
            best[chunk] = _best(x, chunk, found[chunk], edges, best.shape[1])
    return best


def closest_pairs_approximately(x: Tensor, graph: PairGraph, quota: int, parts: int) -> Tensor:
    """Most similar pairs that are not edges, at most `quota` and but for few, int64 [2, K].

    They are first sought among the nearest nodes of each node. Nodes that may have more of them, because even the last
    of their nearest is among the best pairs, are then compared with all nodes.
    """
    if quota == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    per_node = min(max(-(-4 * quota // len(x)), MORE), len(x) - 1)
    found = nearest_approximately(x, graph, per_node, parts)
    node, place = (found >= 0).nonzero().T
    best = _best_pairs(x, torch.stack([node, found[node, place]]), quota)
    if len(best) < quota:
        return best.pairs
    floor, last = best.score[-1], found[:, -1]
    full = ((last >= 0) & ((x * x[last]).sum(-1) > floor)).nonzero().flatten()
    edges = pair_key(graph.pair_index, graph.num_nodes)
    with full_precision():
        for rows in full.split(max(memory(x.device) // (8 * len(x)), 1)):
            row, other = (x[rows] @ x.T > best.score[-1]).nonzero().T
            keys = undirected_keys(torch.stack([rows[row], other]), len(x))
            more = pairs_of(keys[~contains(edges, keys)], len(x))
            best = _best_pairs(x, torch.cat([best.pairs, more], dim=1), quota)
    return best.pairs


def _best_pairs(x: Tensor, pairs: Tensor, quota: int) -> Scored:
    """The `quota` most similar of some pairs [2, K], which may be repeated."""
    pairs = pairs_of(undirected_keys(pairs, len(x)), len(x))
    rows = max(memory(x.device) // (8 * x.shape[1]), 1)
    score = [(x[first] * x[second]).sum(-1) for first, second in pairs.split(rows, dim=1)]
    return Scored(torch.cat([x.new_empty(0), *score]), pairs).in_order()[:quota]


def _within_parts(x: Tensor, graph: PairGraph, per_node: int, parts: int) -> Tensor:
    """Most similar nodes of each node in its part, int64 [N, K]."""
    part = partition(graph, parts)
    order = part.argsort(stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    inside = part[graph.pair_index[0]] == part[graph.pair_index[1]]
    edges = PairGraph.build(place[graph.pair_index[:, inside]], len(x))
    ends = [0, *part.bincount().cumsum(0).tolist()]
    blocks = [Block(start, stop) for start, stop in pairwise(ends) if stop > start]
    found = nearest(x[order], edges, blocks, per_node)
    back = torch.empty_like(found)
    back[order] = torch.where(found >= 0, order[found], -1)
    return back


def _by_descent(x: Tensor, per_node: int) -> Tensor:
    """Nodes that NN-descent finds for each node, itself and neighbors among them, int64 [N, K]."""
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise UserError(
            "the approximate search for candidates needs the package pynndescent: pip install 'gumbel-mpnn[scale]', or"
            " set rewiring.candidates.search=exact"
        ) from None
    from scipy.sparse import csr_matrix

    count = min(2 * per_node + MORE, len(x) - 1)
    is_sparse = int(x.count_nonzero()) < SPARSE_BELOW * x.numel()
    features = csr_matrix(x.numpy()) if is_sparse else x.numpy()
    threads = torch.get_num_threads()
    try:
        index, _ = NNDescent(features, metric="cosine", n_neighbors=count, random_state=0).neighbor_graph
    finally:
        torch.set_num_threads(threads)  # numba starts its threads with OpenMP, as torch does, and leaves all cores set
    return torch.from_numpy(index).long()


def _best(x: Tensor, rows: Tensor, found: Tensor, edges: Tensor, count: int) -> Tensor:
    """The `count` most similar of the nodes found for some rows, [rows, F] → [rows, count]; −1 if there are no more."""
    found = found.sort(dim=1).values
    own = rows[:, None]
    other = found.clamp(min=0)
    score = (x[rows, None] @ x[other].mT).squeeze(1)
    lower, upper = torch.minimum(own, other), torch.maximum(own, other)
    is_edge = contains(edges, pair_key(torch.stack([lower, upper]).flatten(1), len(x))).view_as(found)
    again = torch.zeros_like(is_edge)
    again[:, 1:] = found[:, 1:] == found[:, :-1]
    score.masked_fill_((found < 0) | (other == own) | is_edge | again, -torch.inf)
    # Ties are broken as in the exact search.
    key = sortable(score, circle_steps(own.expand_as(other), other, len(x))).topk(count, dim=1).values
    return torch.where(is_possible(key), (own + rank_of(key)) % len(x), -1)
