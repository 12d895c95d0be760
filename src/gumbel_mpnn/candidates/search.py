"""Search for similar nodes: the most similar nodes of each node, and the most similar pairs of a graph.

Similarity is a dot product of embeddings. Only similarities above 0 count, since 0 has no meaning. The exact search
computes the similarity matrix a part at a time; the approximate one is NN-descent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, contains, pair_key
from gumbel_mpnn.util.errors import DataError, UserError, did_you_mean
from gumbel_mpnn.util.tensors import coalesced

MEMORY = {"cpu": 2**26, "cuda": 2**29}
"""Bytes that a search may use besides its result; few on a CPU, so that scores stay in the cache."""
MORE = 10
"""Nodes that the approximate search finds for each node beyond twice those needed, since neighbors are left out."""
SPARSE_BELOW = 0.05
"""Share of non-zeros below which NN-descent takes sparse features."""
_LANE = 64
"""Entries of a tile whose maximum is looked at first."""

Span = tuple[int, int]
"""Range of nodes: the first one and the one after the last."""


def embeddings(data: Data, on: str, similarity: str) -> Tensor:
    """Embeddings float32 [N, D] whose dot products sort all pairs by the similarity of the attribute `on`.

    They are scaled such that no dot product overflows. The cosine of a zero vector with any other is 0.
    """
    if _is_apart(data.get(on), data.num_nodes):
        return torch.zeros(int(data.num_nodes or 0), 1, device=data[on].device)
    x = _attribute(data, on)
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 1, dtype=torch.float32)
    size = x.abs()
    if similarity == "cosine":
        peak = size.amax(dim=1, keepdim=True)
        x = (x / torch.where(peak > 0, peak, 1)).float()
        norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return x / torch.where(norm > 0, norm, 1)
    # A power of two does not round, so equal products stay equal; it is bounded to be finite, as is its inverse.
    bound = 100 if x.dtype == torch.float32 else 1000
    exponent = math.frexp(float(size.max()))[1]
    return (x * math.ldexp(1.0, -min(max(exponent, -bound), bound))).float()


def _is_apart(value: object, num_nodes: int | None) -> bool:
    """Whether `value` is sparse and no two nodes share a feature, as in the identity matrix: all similarities are 0."""
    if not isinstance(value, Tensor) or value.layout is torch.strided or value.dim() != 2 or len(value) != num_nodes:
        return False
    columns = coalesced(value.detach()).indices()[1]
    return columns.numel() == 0 or int(columns.bincount().max()) == 1


def _attribute(data: Data, name: str) -> Tensor:
    """Check the attribute and convert it to floats [N, D]."""
    value = data.get(name)
    if not isinstance(value, Tensor):
        raise DataError(f"the graph has no tensor {name!r} to measure similarity on: {did_you_mean(name, data.keys())}")
    x = value.detach()
    x = x.to_dense() if x.layout is not torch.strided else x
    if x.dim() != 2 or x.shape[0] != data.num_nodes or x.is_complex():
        wanted = f"numbers of shape [{data.num_nodes}, D]"
        raise DataError(f"{name!r} must be {wanted} to measure similarity on, not {x.dtype} {list(x.shape)}")
    x = x if x.dtype in (torch.float32, torch.float64) else x.float()
    broken = ~torch.isfinite(x).all(dim=1)
    if bool(broken.any()):
        raise DataError(f"{name!r} of node {int(broken.nonzero()[0])} is not finite: similarity needs finite numbers")
    return x


@contextmanager
def full_precision() -> Iterator[None]:
    """Multiply float32 matrices in full precision, even if training allows TF32 or bfloat16."""
    switches: list[Any] = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]  # type: ignore[attr-defined]
    before = [switch.fp32_precision for switch in switches]
    for switch in switches:
        switch.fp32_precision = "ieee"
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.fp32_precision = value


def nearest(x: Tensor, graph: PairGraph, spans: Sequence[Span], per_node: int) -> Tensor:
    """Most similar nodes of each node, best first, int64 [N, K]; −1 if there are no more.

    Similarity is the dot product of embeddings float32 [N, D]; nodes of different `spans` are not compared. K is
    `per_node`, or the size of the largest span minus one if that is smaller. Neighbors, the node itself and nodes of
    similarity 0 or less are left out. Among equally similar nodes, those come first whose numbers follow that of the
    node; the first node follows the last one. If the lowest numbers came first, a few nodes would be chosen by all
    nodes with the same features.
    """
    width = min(per_node, max(stop - start for start, stop in spans) - 1)
    found = torch.full((x.shape[0], width), -1, dtype=torch.int64, device=x.device)
    with full_precision():
        for start, stop in spans:
            if stop - start > 1:
                _search(x, graph, (start, stop), found[:, : stop - start - 1])
    return found


def _search(x: Tensor, graph: PairGraph, span: Span, found: Tensor) -> None:
    """Fill the rows of `found` [N, K] that belong to nodes of a span."""
    start, stop = span
    size, rows = stop - start, torch.arange(start, stop, device=x.device)
    # A power of two for which there are about as many lanes as columns in the lanes that are searched.
    lane = 1 << min(max(round(math.log2(size / (found.shape[1] + 1)) / 2), 4), 8)
    lanes = -(-size // lane)
    stride = lanes * lane
    bytes_per_row = 4 * stride + 48 * lanes + 48 * min(found.shape[1] + 1, lanes) * lane
    chunks = rows.split(max(memory(x.device) // bytes_per_row, 1))
    others = x[start:stop].T
    # Allocated once; columns beyond the span remain −∞.
    scores = x.new_full((chunks[0].numel(), stride), -torch.inf)
    for chunk in chunks:
        part, own = scores[: chunk.numel()], chunk - start
        torch.mm(x[chunk], others, out=part[:, :size])
        arcs = graph.arcs.positions_in(chunk)
        place, neighbor = graph.arcs.row[arcs].long() - chunk[0], graph.arcs.col[arcs].long()
        part.view(-1).index_fill_(0, place * stride + (neighbor - start), -torch.inf)
        part.scatter_(1, own[:, None], -torch.inf)
        found[chunk] = _top(part, own, found.shape[1], lane, start)


def _top(scores: Tensor, own: Tensor, count: int, lane: int, first_node: int) -> Tensor:
    """Nodes of the `count` best columns of each row, [rows, columns] → int64 [rows, count]; −1 for scores of 0 or less.

    Row r belongs to the node of column `own[r]`. Columns are grouped into lanes. The best columns are in the `count`
    lanes with the largest maxima or in the row's own lane, so only these are searched, which on a CPU is twice as fast
    as `topk` of whole rows.
    """
    rows, stride = scores.shape
    lanes = scores.view(rows, stride // lane, lane)
    own = own[:, None]
    chosen = torch.arange(lanes.shape[1], device=scores.device).expand(rows, -1)
    if lanes.shape[1] > count + 1:
        # Counting up from the row's own column, its own lane comes both first and last, so it is always chosen.
        own_lane = own // lane
        key = sortable(lanes.amax(dim=2), circle_steps(own_lane, chosen, lanes.shape[1]))
        key.scatter_(1, own_lane, torch.iinfo(torch.int64).max)
        chosen = key.topk(count + 1, dim=1, sorted=False).indices
    inside = lanes.gather(1, chosen[..., None].expand(-1, -1, lane)).view(rows, -1)
    column = (chosen[..., None] * lane + torch.arange(lane, device=scores.device)).view(rows, -1)
    key = sortable(inside, circle_steps(own, column, stride)).topk(count, dim=1).values
    column = own + rank_of(key)
    node = first_node + torch.where(column < stride, column, column - stride)
    return torch.where(key > 0, node, -1)


Scored = tuple[Tensor, Tensor]
"""Similarities float32 [K] of pairs `i < j` int64 [2, K]."""


@full_precision()
def closest_pairs(x: Tensor, edges: Tensor, span: Span, quota: int) -> Tensor:
    """Most similar pairs of the nodes of a span without those of the keys `edges` [P], at most `quota`, int64 [2, K].

    Similarity is the dot product of embeddings float32 [N, D]. Ties are broken in favor of pairs with close node
    numbers, so that no node is preferred because of its number.

    Once `quota` pairs are found, only pairs that are better than the worst of them are collected. So there are never
    many more than twice the quota.
    """
    score, pairs, floor, floor_gap = x.new_empty(0), edges.new_empty(2, 0), 0.0, 0
    for rows, cols in _tiles(span, max(math.isqrt(memory(x.device) // 64), 1)) if quota else ():
        # Among equally similar pairs, the one whose node numbers are closer comes first.
        never_nearer = cols[0] - (rows[1] - 1) > floor_gap
        more, among = _above(x, edges, rows, cols, floor, strictly=floor == 0 or never_nearer)
        score, pairs = torch.cat([score, more]), torch.cat([pairs, among], dim=1)
        if len(score) > quota and (len(score) > 2 * quota or floor == 0):
            score, pairs = _best(score, pairs, quota)
            floor, floor_gap = float(score[-1]), int(pairs[1, -1] - pairs[0, -1])
    return _best(score, pairs, quota)[1]


def _best(score: Tensor, pairs: Tensor, quota: int) -> Scored:
    """The `quota` most similar pairs, best first; ties by the distance of the node numbers, then by the first node."""
    by_number = pairs[0].argsort()
    key = sortable(score, pairs[1] - pairs[0])[by_number]
    best = by_number[key.argsort(descending=True, stable=True)][:quota]
    return score[best], pairs[:, best]


def _tiles(span: Span, limit: int) -> Iterator[tuple[Span, Span]]:
    """Tiles on and above the diagonal of at most `limit` nodes a side, those closest to it first."""
    start, size = span[0], span[1] - span[0]
    count = -(-size // limit)
    chunks = list(pairwise(start + size * cut // count for cut in range(count + 1)))
    for distance in range(len(chunks)):
        yield from zip(chunks, chunks[distance:], strict=False)


def _above(x: Tensor, edges: Tensor, rows: Span, cols: Span, floor: float, *, strictly: bool) -> Scored:
    """Pairs of a tile that are not edges and have a similarity above `floor`, or equal to it unless `strictly`."""
    height, width = rows[1] - rows[0], cols[1] - cols[0]
    tile = x.new_full((-(-height * width // _LANE), _LANE), -torch.inf)
    scores = tile.view(-1)[: height * width].view(height, width)
    torch.mm(x[slice(*rows)], x[slice(*cols)].T, out=scores)
    good = torch.gt if strictly else torch.ge
    # Most lanes have no good entry: checking their maxima takes a third of the time of checking every entry.
    lanes = good(tile.amax(dim=1), floor).nonzero().squeeze(1)
    lane, place = good(tile[lanes], floor).nonzero().T
    entry = lanes[lane] * _LANE + place
    pairs = torch.stack([rows[0] + entry // width, cols[0] + entry % width])
    wanted = pairs[0] < pairs[1]
    wanted &= ~contains(edges, pair_key(pairs, len(x)))
    return tile[lanes[lane], place][wanted], pairs[:, wanted]


def nearest_approximately(x: Tensor, graph: PairGraph, per_node: int) -> Tensor:
    """Most similar nodes of each node, as `nearest` finds them, but for few, int64 [N, K]; −1 if there are no more.

    Similarity is the cosine: embeddings float32 [N, D] have length 1. NN-descent (pynndescent) searches.
    """
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise UserError(
            "the approximate search for candidates needs the package pynndescent: pip install 'gumbel-mpnn[scale]', or"
            " set rewiring.candidates.search=exact"
        ) from None
    from scipy.sparse import csr_matrix

    count = min(2 * per_node + MORE, len(x) - 1)
    features = csr_matrix(x.numpy()) if int(x.count_nonzero()) < SPARSE_BELOW * x.numel() else x.numpy()
    threads = torch.get_num_threads()
    try:
        index, distance = NNDescent(features, metric="cosine", n_neighbors=count, random_state=0).neighbor_graph
    finally:
        torch.set_num_threads(threads)  # numba starts its threads with OpenMP, as torch does, and leaves all cores set
    found, own = torch.from_numpy(index).long(), torch.arange(len(x))[:, None]
    keys = pair_key(torch.stack([torch.minimum(own, found), torch.maximum(own, found)]).flatten(1), len(x))
    is_edge = contains(pair_key(graph.pair_index, len(x)), keys).view_as(found)
    wrong = is_edge | (found == own) | (found < 0) | (torch.from_numpy(distance) >= 1)
    best = wrong.int().argsort(dim=1, stable=True)[:, :per_node]
    return found.masked_fill(wrong, -1).gather(1, best)


def memory(device: torch.device) -> int:
    """Bytes that a search on `device` may use."""
    return MEMORY.get(device.type, MEMORY["cpu"])


def sortable(score: Tensor, rank: Tensor | int) -> Tensor:
    """Sort keys int64: ascending by `score` (float32), equal scores descending by `rank` (below 2³¹).

    Keys of scores above 0 are above 0.
    """
    bits = (score + 0.0).view(torch.int32)  # turns −0 into 0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # the bits of negative floats grow with their absolute value
    return (ordered.long() << 32) - rank


def circle_steps(start: Tensor, end: Tensor, size: int) -> Tensor:
    """Number of steps forward from `start` to `end` on a circle of `size` places."""
    steps = end - start
    return torch.where(steps < 0, steps + size, steps)


def rank_of(key: Tensor) -> Tensor:
    """Rank of a key of `sortable`."""
    return -key & 0xFFFFFFFF
