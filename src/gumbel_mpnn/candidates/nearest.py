"""Exact search for each node's most similar nodes, some rows of the similarity matrix at a time."""

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
    """The `per_node` most similar nodes of each node, int64 [N, K], best first, −1 where there are no more.

    Neighbors, the node itself, nodes of other graphs and nodes whose similarity is not above 0 are left out. Of equally
    similar nodes those come first whose numbers follow the node's own, the last node being followed by the first. (The
    lowest numbers would be everybody's choice: where many nodes have the same features, a few would be candidates of
    all others.)

    Args:
        x: Embeddings float32 [N, D]; similarity is their dot product.
        graph: The edges.
        blocks: Nodes to search among, covering all N.
        per_node: More than there are is no error: K is at most the size of the largest block less one.
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
    # Made once; the columns beyond the block keep their −∞.
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
    """The arcs of some nodes [R]: places in `nodes` and neighbors, int64 [A]."""
    begin, end = graph.arcs.rowptr[nodes].long(), graph.arcs.rowptr[nodes + 1].long()
    degree = end - begin
    place = torch.repeat_interleave(degree)
    arc = torch.arange(place.numel(), device=nodes.device) + (begin - (degree.cumsum(0) - degree))[place]
    return place, graph.arcs.col[arc].long()


def _top(scores: Tensor, own: Tensor, count: int, lane: int, first_node: int) -> Tensor:
    """Nodes of the `count` best columns of each row, [rows, columns] → int64 [rows, count], −1 for scores not above 0.

    Row r stands for column `own[r]`. Columns are taken together in lanes. The best lie in the `count` lanes with
    the largest maxima or in the row's own lane, so only those are looked into: on a CPU twice as fast as `topk` of
    whole rows.
    """
    rows, stride = scores.shape
    lanes = scores.view(rows, stride // lane, lane)
    own = own[:, None]
    chosen = torch.arange(lanes.shape[1], device=scores.device).expand(rows, -1)
    if lanes.shape[1] > count + 1:
        # Going up from the row, all other lanes are met one after the other; its own is met first and last.
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
    """A power of two with which there are about as many lanes as columns in the lanes that are looked into."""
    return 1 << min(max(round(math.log2(columns / (count + 1)) / 2), 4), 8)


def _bytes_per_row(stride: int, lane: int, count: int) -> int:
    lanes = stride // lane
    return 4 * stride + 48 * lanes + 48 * min(count + 1, lanes) * lane
