"""Attention coefficients on a GPU: two kernels over arcs, without an array of arcs times channels.

Each program handles one node, for several replicas and heads at once: the first pass over its arcs finds the largest
score, the second computes the coefficients. Backward, the first pass computes the mean of the gradients weighted by the
coefficients, the second the gradients of the scores.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.graph.layout import SparseLayout

TILE = 64
"""Arcs times lanes (replicas and heads) that a program handles at once."""
FEWEST, MOST = 8, 32
"""Minimum and maximum number of arcs in a tile, about the mean degree."""
COUNTS = ["nodes", "positions", "lanes", "weight_batch", "repeat"]
"""Arguments that Triton should not specialize for."""


@triton.jit
def _leaky(x, slope):
    return tl.where(x > 0, x, x * slope)


@triton.jit
def _exp(exponent, safe):
    """Exponential with the exponent clamped at `safe`; NaN is propagated."""
    return tl.exp(tl.minimum(exponent, safe, propagate_nan=tl.PropagateNan.ALL))


@triton.jit(do_not_specialize=COUNTS)
def _shares(
    rowptr, col, weight, target, source, share, own_share, largest, scale,
    slope, safe, nodes, positions, lanes, weight_batch, repeat, LANES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, lane = tl.program_id(0), tl.program_id(1).to(tl.int64) * LANES + tl.arange(0, LANES)
    valid = lane < lanes
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    place = lane * nodes + row
    sources = source + (lane * nodes)[:, None]
    weights = weight + (lane // repeat * weight_batch)[:, None]
    parts = share + (lane * positions)[:, None]
    here = tl.load(target + place, mask=valid, other=0)
    own = _leaky(here + tl.load(source + place, mask=valid, other=0), slope)
    top = own
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = valid[:, None] & (arc < end)[None, :]
        present = there & (tl.load(weights + arc[None, :], mask=there, other=0) != 0)
        other = tl.load(col + arc, mask=arc < end, other=0)
        score = _leaky(here[:, None] + tl.load(sources + other[None, :], mask=there, other=0), slope)
        top = tl.maximum(top, tl.max(tl.where(present, score, own[:, None]), axis=1))
        start += BLOCK
    total = tl.exp(own - top)
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = valid[:, None] & (arc < end)[None, :]
        other = tl.load(col + arc, mask=arc < end, other=0)
        score = _leaky(here[:, None] + tl.load(sources + other[None, :], mask=there, other=0), slope)
        raw = tl.load(weights + arc[None, :], mask=there, other=0) * _exp(score - top[:, None], safe)
        tl.store(parts + arc[None, :], raw, mask=there)
        total += tl.sum(tl.where(there, raw, 0), axis=1)
        start += BLOCK
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = valid[:, None] & (arc < end)[None, :]
        raw = tl.load(parts + arc[None, :], mask=there, other=0)
        tl.store(parts + arc[None, :], raw / total[:, None], mask=there)
        start += BLOCK
    tl.store(own_share + place, tl.exp(own - top) / total, mask=valid)
    tl.store(largest + place, top, mask=valid)
    tl.store(scale + place, 1 / total, mask=valid)


@triton.jit(do_not_specialize=COUNTS)
def _share_grads(
    rowptr, col, weight, target, source, share, own_share, largest, scale, grad, own_grad,
    score_grad, weight_grad, target_grad, own_score_grad,
    slope, safe, nodes, positions, lanes, weight_batch, repeat, LANES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, lane = tl.program_id(0), tl.program_id(1).to(tl.int64) * LANES + tl.arange(0, LANES)
    valid = lane < lanes
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    place, arcs = lane * nodes + row, (lane * positions)[:, None]
    sources = source + (lane * nodes)[:, None]
    weights = weight + (lane // repeat * weight_batch)[:, None]
    own_part = tl.load(own_share + place, mask=valid, other=0)
    own_pull = tl.load(own_grad + place, mask=valid, other=0)
    mean = own_part * own_pull
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = valid[:, None] & (arc < end)[None, :]
        part = tl.load(share + arcs + arc[None, :], mask=there, other=0)
        mean += tl.sum(part * tl.load(grad + arcs + arc[None, :], mask=there, other=0), axis=1)
        start += BLOCK
    here = tl.load(target + place, mask=valid, other=0)
    top = tl.load(largest + place, mask=valid, other=0)
    inverse = tl.load(scale + place, mask=valid, other=0)
    rises = here + tl.load(source + place, mask=valid, other=0) > 0
    own = own_part * (own_pull - mean) * tl.where(rises, 1.0, slope)
    total = own
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = valid[:, None] & (arc < end)[None, :]
        other = tl.load(col + arc, mask=arc < end, other=0)
        sum_ = here[:, None] + tl.load(sources + other[None, :], mask=there, other=0)
        pull = tl.load(grad + arcs + arc[None, :], mask=there, other=0) - mean[:, None]
        unit = _exp(_leaky(sum_, slope) - top[:, None], safe) * inverse[:, None] * pull
        tl.store(weight_grad + arcs + arc[None, :], unit, mask=there)
        # Beyond the clamp, where the weight is 0, the score has no gradient: the factor of the weight ensures that.
        each = unit * tl.load(weights + arc[None, :], mask=there, other=0) * tl.where(sum_ > 0, 1.0, slope)
        tl.store(score_grad + arcs + arc[None, :], each, mask=there)
        total += tl.sum(tl.where(there, each, 0), axis=1)
        start += BLOCK
    tl.store(target_grad + place, total, mask=valid)
    tl.store(own_score_grad + place, own, mask=valid)


def shares(
    layout: SparseLayout, weight: Tensor, target: Tensor, source: Tensor, slope: float, safe: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Coefficients of arcs [B, A] and nodes [B, N]; for the gradient, the largest score and 1 / sum, [B, N]."""
    batch, nodes = target.shape
    share = target.new_empty(batch, layout.nnz)
    own_share, largest, scale = (torch.empty_like(target) for _ in range(3))
    if nodes:
        sizes = _sizes(layout)
        _shares[(nodes, triton.cdiv(batch, sizes["LANES"]))](
            layout.rowptr, layout.col, weight, target, source, share, own_share, largest, scale,
            slope, safe, nodes, layout.nnz, batch, weight.stride(0), batch // len(weight), **sizes,
        )  # fmt: skip
    return share, own_share, largest, scale


def share_grads(
    layout: SparseLayout, weight: Tensor, target: Tensor, source: Tensor, slope: float, safe: float,
    share: Tensor, own_share: Tensor, largest: Tensor, scale: Tensor, grad: Tensor, own_grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients for the scores of the arcs, for their weights, for `target`, and for the scores of self."""
    batch, nodes = target.shape
    score_grad, weight_grad = torch.empty_like(share), torch.empty_like(share)
    target_grad, own_score_grad = torch.empty_like(target), torch.empty_like(target)
    if nodes:
        sizes = _sizes(layout)
        _share_grads[(nodes, triton.cdiv(batch, sizes["LANES"]))](
            layout.rowptr, layout.col, weight, target, source, share, own_share, largest, scale, grad, own_grad,
            score_grad, weight_grad, target_grad, own_score_grad,
            slope, safe, nodes, layout.nnz, batch, weight.stride(0), batch // len(weight), **sizes,
        )  # fmt: skip
    return score_grad, weight_grad, target_grad, own_score_grad


def _sizes(layout: SparseLayout) -> dict[str, int]:
    """Numbers of arcs and lanes of a program, which must not depend on the batch: sums would have another order."""
    degree = layout.nnz // max(1, layout.shape[0])
    block = min(MOST, max(FEWEST, triton.next_power_of_2(max(1, degree))))
    return {"BLOCK": block, "LANES": TILE // block, "num_warps": 1}
