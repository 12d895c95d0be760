"""The most similar nodes, and pairs, of a large graph on a GPU: ruled out by tensor cores, then scored exactly.

For N = 169,343 nodes with D = 128 channels and five of each node, by operations and bytes (H200: 989 TFLOP/s dense in
float16, 4.8 TB/s; about half of either can be had):

    nodes, first walk over all pairs     2 N² D = 7.3 TFLOP in float16                    15 ms at 500 TFLOP/s
    nodes, second walk                   the same once more                               15 ms
    pairs, one walk over half of them    3.7 TFLOP                                         8 ms
    columns that a walk reads            N / 128 times 43 MB from the L2 cache: 57 GB     in its shadow, at 5 TB/s 12 ms
    exact scores of nodes                about 7 N lanes · 16 columns · 512 B = 10 GB      4 ms
    exact scores of 2 |E| = 2.4 M pairs  about 3 M lanes · 8 KB = 25 GB                    8 ms
    a sample of 4 M pairs                4 GB                                              2 ms
    scores of the edges, both ways       2.4 M · 1 KB = 2.4 GB                             1 ms

Measured: 39 ms for nodes, 18 and 23 ms for .85 and 2.4 million pairs (benchmarks/candidates_gpu.py); a walk takes 11 to
14 ms. The chunked searches need 144 ms for the product alone (float32 without tensor cores, 51 TFLOP/s) and write and
read N² scores, 230 GB.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gumbel_mpnn.candidates import screen
from gumbel_mpnn.candidates.scored import Scored
from gumbel_mpnn.candidates.screen import Screen
from gumbel_mpnn.candidates.similarity import circle_steps, memory, sortable
from gumbel_mpnn.graph import PairGraph, contains

GROUPS = 24
"""Groups of columns for each node that is wanted: so many that the best of them seldom share one."""
SLOTS = 8
"""Lanes that a row may find for each node that is wanted, and two more, before it is left to the chunked search."""
SAMPLE = 2**22
"""Pairs from which the similarity of the last one wanted is estimated."""


def screened_nearest(x: Tensor, graph: PairGraph, start: int, found: Tensor) -> Tensor:
    """Fill rows of `found` int64 [n, K] with the nearest of each node, as `nearest` does; those left, bool [n].

    The first walk finds how similar the K best of each row are at least: of every group of columns it knows the best,
    less the bound; groups whose best may be a neighbor do not count. The second walk lists where the bound admits as
    much, little more than K places. Left are rows with more than their list holds: those with many equals, mostly.

    Args:
        x: Embeddings float32 [n, D] of one graph.
        graph: The edges.
        start: Number of the first node.
        found: On entry all −1.
    """
    left = torch.ones(x.shape[0], dtype=torch.bool, device=x.device)
    kernels = screen.kernels_for(x, found.shape[1])
    if kernels is not None:
        view, tall = Screen.of(x, kernels), kernels.TILING.rows
        step = max(memory(x.device) // (_bytes_per_row(found.shape[1]) * tall), 1) * tall
        for first in range(0, x.shape[0], step):
            rows = range(first, min(first + step, x.shape[0]))
            left[rows.start : rows.stop] = _nearest_of(view, graph, start, rows, found[rows.start : rows.stop])
    return left


def _nearest_of(view: Screen, graph: PairGraph, start: int, rows: range, found: Tensor) -> Tensor:
    """Fill `found` [rows, K] for some rows; those left, bool [rows]."""
    nodes, wanted, capacity = view.x.shape[0], found.shape[1], _capacity(found.shape[1])
    begin, end = graph.arcs.rowptr[[start + rows.start, start + rows.stop]].tolist()
    neighbors = torch.stack([graph.arcs.row[begin:end], graph.arcs.col[begin:end]]).long() - start
    best = _lower_bounds(view, rows, wanted, neighbors)
    floor = best.topk(wanted, dim=1).values[:, -1]
    near = best >= (floor - 2 * view.slack.median())[:, None]
    floor[near.sum(dim=1) > capacity] = torch.inf  # its list would overflow: not worth the walk
    floor[floor == -torch.inf] = torch.inf
    lanes, count = view.lanes_above(rows, floor, capacity)
    complete = (floor < torch.inf) & (count <= capacity)
    lanes = lanes[complete[:, None] & (torch.arange(capacity, device=floor.device) < count[:, None])]
    row, col, score = view.exact(lanes, (floor * view.unit[rows.start : rows.stop]).float(), rows.start)
    good = (row != col) & ~contains(neighbors[0] * nodes + neighbors[1], row * nodes + col)
    row, col = row[good], col[good]
    row, place, col = _ranked(row, col, sortable(score[good], circle_steps(row, col, nodes)))
    found[row[place < wanted] - rows.start, place[place < wanted]] = col[place < wanted] + start
    return ~complete


def _ranked(row: Tensor, col: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns [K] sorted by row, then best `key` first, and the place of each in its row."""
    order = key.argsort(descending=True)
    order = order[row[order].argsort(stable=True)]
    row = row[order]
    place = torch.arange(row.numel(), device=row.device) - torch.searchsorted(row, row)
    return row, place, col[order]


def _lower_bounds(view: Screen, rows: range, wanted: int, neighbors: Tensor) -> Tensor:
    """For each row and group of columns a similarity, in units of the row, that another node reaches, [rows, groups].

    −∞ where the group's best may be the row itself or one of its `neighbors` int64 [2, A].
    """
    kernels, tiling = view.kernels, view.kernels.TILING
    tiles = view.x.shape[0] // tiling.cols  # whole ones: zeros that fill up must not count
    parts = min(-(-GROUPS * wanted // tiling.lanes), tiles)
    best: Tensor = kernels.lane_maxima(view.tiles_of(rows), view.cols, view.tile_slack, tiles, parts)
    best = best[: len(rows)]
    own = torch.arange(rows.start, rows.stop, device=best.device)
    row, col = torch.cat([neighbors, own.expand(2, -1)], dim=1)
    group, looked_at = kernels.group_of(col, tiles, parts)
    row, col, group = row[looked_at], col[looked_at], group[looked_at]
    place = row - rows.start
    may_be = kernels.dots(view.x, row, col)[:, 0] >= (best[place, group] * view.unit[row]).float()
    best[place[may_be], group[may_be]] = -torch.inf
    return best


def screened_pairs(x: Tensor, graph: PairGraph, start: int, quota: int) -> Scored | None:
    """The `quota` most similar pairs of one graph that are no edges, as `closest_pairs` finds them; None: not found.

    A sample says which similarity a few more than `quota` pairs reach, whatever their distribution. One walk lists
    where the bound admits as much. If then as many pairs as wanted do reach it, no others can be among the best. None
    where a screen does not pay, where equals are too many, or, less than once in ten thousand, the sample was unlucky.

    Args:
        x: Embeddings float32 [n, D] of one graph.
        graph: The edges.
        start: Number of the first node.
        quota: At least 1.
    """
    nodes, pairs = x.shape[0], x.shape[0] * (x.shape[0] - 1) // 2
    kernels = screen.kernels_for(x, 1)
    if kernels is None or 64 * quota > pairs:
        return None
    view = Screen.of(x, kernels)
    first, second = graph.pair_index - start
    inside = (first >= 0) & (second < nodes)
    edges = first[inside] * nodes + second[inside]
    floor, expected = _floor_of_pairs(view, edges, quota / pairs)
    # Edges and self-pairs are found too, and each row finds a whole tile where one column is far longer than the rest.
    capacity = int(1.5 * expected * pairs) + edges.numel() + 2 * kernels.TILING.lanes * nodes
    if floor == -math.inf or 64 * capacity > 2 * memory(x.device):
        return None
    lanes, count = view.lanes_above(range(nodes), (floor / view.unit).float(), capacity, pairs=True)
    if int(count) > capacity:
        return None
    row, col, score = view.exact(lanes[0, : int(count)], x.new_full((nodes,), floor))
    good = (row < col) & ~contains(edges, row * nodes + col)
    found = Scored(score[good], torch.stack([row[good], col[good]]) + start)
    return found.in_order()[:quota] if len(found) >= quota else None


def _floor_of_pairs(view: Screen, edges: Tensor, share: float) -> tuple[float, float]:
    """A similarity that a little more than a `share` of all pairs reach, and the share that will seem to reach it."""
    nodes, device = view.x.shape[0], view.x.device
    generator = torch.Generator(device).manual_seed(0)
    first = torch.randint(nodes, (SAMPLE,), generator=generator, device=device)
    second = torch.randint(nodes - 1, (SAMPLE,), generator=generator, device=device)
    second += second >= first
    first, second = torch.minimum(first, second), torch.maximum(first, second)
    score = view.kernels.dots(view.x, first, second)[:, 0]
    score[contains(edges, first * nodes + second)] = -torch.inf
    mean = share * SAMPLE
    floor = float(score.topk(min(math.ceil(mean + 4 * math.sqrt(mean) + 8), SAMPLE)).values[-1])
    seeming = score + 2 * view.unit[first] * view.slack[second] >= floor
    return floor, float(seeming.sum()) / SAMPLE


def _capacity(wanted: int) -> int:
    return SLOTS * (wanted + 2)


def _bytes_per_row(wanted: int) -> int:
    return 8 * GROUPS * wanted + 16 * _capacity(wanted) + 256 * (wanted + 2)
