"""Exact search for the most similar nodes of each node, some rows of the similarity matrix at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gumbel_mpnn.candidates.blocks import Block
from gumbel_mpnn.candidates.similarity import (
    circle_steps,
    full_precision,
    is_possible,
    memory,
    rank_of,
    sortable,
)
from gumbel_mpnn.graph import PairGraph


def nearest(x: Tensor, graph: PairGraph, blocks: Sequence[Block], per_node: int) -> Tensor:
    """Most similar nodes of each node, best first, int64 [N, K]; −1 if there are no more.

    Similarity is the dot product of embeddings float32 [N, D]. K is `per_node`, or the size of the largest block minus
    one if that is smaller. Neighbors, the node itself, nodes of other graphs and nodes of similarity 0 or less are left
    out. Among equally similar nodes, those come first whose numbers follow that of the node; the first node follows the
    last one. If the lowest numbers came first, a few nodes would be chosen by all nodes with the same features.
    """
    width = min(per_node, max(block.size for block in blocks) - 1)
    found = torch.full((x.shape[0], width), -1, dtype=torch.int64, device=x.device)
    with full_precision():
        for block in blocks:
            if block.size > 1:
                _search(x, graph, block, found[:, : block.size - 1])
    return found


def _search(x: Tensor, graph: PairGraph, block: Block, found: Tensor) -> None:
    """Fill the rows of `found` [N, K] that belong to nodes of `block`."""
    rows = torch.arange(block.start, block.stop, device=x.device)
    lane = _lane_width(block.size, found.shape[1])
    stride = -(-block.size // lane) * lane
    chunks = rows.split(max(memory(x.device) // _bytes_per_row(stride, lane, found.shape[1]), 1))
    others = x[block.start : block.stop].T
    # Allocated once; columns beyond the block remain −∞.
    scores = x.new_full((chunks[0].numel(), stride), -torch.inf)
    for chunk in chunks:
        part, own = scores[: chunk.numel()], chunk - block.start
        torch.mm(x[chunk], others, out=part[:, : block.size])
        if block.graph_of is not None:
            part[:, : block.size].masked_fill_(block.graph_of[own, None] != block.graph_of, -torch.inf)
        place, neighbor = _neighbors(graph, chunk)
        part.view(-1).index_fill_(0, place * stride + (neighbor - block.start), -torch.inf)
        part.scatter_(1, own[:, None], -torch.inf)
        found[chunk] = _top(part, own, found.shape[1], lane, block.start)


def _neighbors(graph: PairGraph, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Arcs of some nodes: positions in `nodes`, and neighbors, int64 [A]."""
    begin, end = graph.arcs.rowptr[nodes].long(), graph.arcs.rowptr[nodes + 1].long()
    degree = end - begin
    place = torch.repeat_interleave(degree)
    arc = torch.arange(place.numel(), device=nodes.device) + (begin - (degree.cumsum(0) - degree))[place]
    return place, graph.arcs.col[arc].long()


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
    return torch.where(is_possible(key), node, -1)


def _lane_width(columns: int, count: int) -> int:
    """Power of two for which there are about as many lanes as columns in the lanes that are searched."""
    return 1 << min(max(round(math.log2(columns / (count + 1)) / 2), 4), 8)


def _bytes_per_row(stride: int, lane: int, count: int) -> int:
    lanes = stride // lane
    return 4 * stride + 48 * lanes + 48 * min(count + 1, lanes) * lane
