"""Attention over the arcs of every node on a GPU: two kernels on numbers of arcs, no array of arcs times channels.

A node's program walks over its arcs for the largest score, then for the shares. Its gradient likewise: for the mean of
the gradients under the shares, then for the gradients of the scores.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gumbel_mpnn.graph.layout import SparseLayout

BLOCK = 32
"""Arcs that a program looks at together."""
COUNTS = ["nodes", "positions", "weight_batch", "repeat"]
"""Numbers that Triton need not compile the kernels anew for."""


@triton.jit
def _leaky(x, slope):
    return tl.where(x > 0, x, x * slope)


@triton.jit
def _exp(exponent, safe):
    """The power of e, the exponent cut at `safe`; NaN stays NaN."""
    return tl.exp(tl.minimum(exponent, safe, propagate_nan=tl.PropagateNan.ALL))


@triton.jit(do_not_specialize=COUNTS)
def _shares(
    rowptr, col, weight, target, source, share, own_share, largest, scale,
    slope, safe, nodes, positions, weight_batch, repeat, BLOCK: tl.constexpr,
):  # fmt: skip
    row, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    target += batch * nodes
    source += batch * nodes
    weight += batch // repeat * weight_batch
    here = tl.load(target + row)
    own = _leaky(here + tl.load(source + row), slope)
    top = own
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = arc < end
        present = there & (tl.load(weight + arc, mask=there, other=0) != 0)
        score = _leaky(here + tl.load(source + tl.load(col + arc, mask=there, other=0), mask=there, other=0), slope)
        top = tl.maximum(top, tl.max(tl.where(present, score, own), axis=0))
        start += BLOCK
    total = tl.exp(own - top)
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = arc < end
        score = _leaky(here + tl.load(source + tl.load(col + arc, mask=there, other=0), mask=there, other=0), slope)
        raw = tl.load(weight + arc, mask=there, other=0) * _exp(score - top, safe)
        tl.store(share + batch * positions + arc, raw, mask=there)
        total += tl.sum(tl.where(there, raw, 0), axis=0)
        start += BLOCK
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = arc < end
        place = share + batch * positions + arc
        tl.store(place, tl.load(place, mask=there, other=0) / total, mask=there)
        start += BLOCK
    tl.store(own_share + batch * nodes + row, tl.exp(own - top) / total)
    tl.store(largest + batch * nodes + row, top)
    tl.store(scale + batch * nodes + row, 1 / total)


@triton.jit(do_not_specialize=COUNTS)
def _share_grads(
    rowptr, col, weight, target, source, share, own_share, largest, scale, grad, own_grad,
    score_grad, weight_grad, target_grad, own_score_grad,
    slope, safe, nodes, positions, weight_batch, repeat, BLOCK: tl.constexpr,
):  # fmt: skip
    row, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    target += batch * nodes
    source += batch * nodes
    weight += batch // repeat * weight_batch
    place = batch * nodes + row
    own_part, own_pull = tl.load(own_share + place), tl.load(own_grad + place)
    mean = own_part * own_pull
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = arc < end
        part = tl.load(share + batch * positions + arc, mask=there, other=0)
        mean += tl.sum(part * tl.load(grad + batch * positions + arc, mask=there, other=0), axis=0)
        start += BLOCK
    here, top, inverse = tl.load(target + row), tl.load(largest + place), tl.load(scale + place)
    own = own_part * (own_pull - mean) * tl.where(here + tl.load(source + row) > 0, 1.0, slope)
    total = own
    start = begin
    while start < end:
        arc = start + tl.arange(0, BLOCK)
        there = arc < end
        sum_ = here + tl.load(source + tl.load(col + arc, mask=there, other=0), mask=there, other=0)
        pull = tl.load(grad + batch * positions + arc, mask=there, other=0) - mean
        unit = _exp(_leaky(sum_, slope) - top, safe) * inverse * pull
        tl.store(weight_grad + batch * positions + arc, unit, mask=there)
        # Beyond the clamp an arc of weight 0 has no gradient for its score; its weight takes care of that.
        each = unit * tl.load(weight + arc, mask=there, other=0) * tl.where(sum_ > 0, 1.0, slope)
        tl.store(score_grad + batch * positions + arc, each, mask=there)
        total += tl.sum(tl.where(there, each, 0), axis=0)
        start += BLOCK
    tl.store(target_grad + place, total)
    tl.store(own_score_grad + place, own)


def shares(
    layout: SparseLayout, weight: Tensor, target: Tensor, source: Tensor, slope: float, safe: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shares of the arcs [B, A] and of self [B, N]; the largest score and the inverse of the sum, [B, N], for later."""
    batch, nodes = target.shape
    share = target.new_empty(batch, layout.nnz)
    own_share, largest, scale = (torch.empty_like(target) for _ in range(3))
    if nodes:
        _shares[(nodes, batch)](
            layout.rowptr, layout.col, weight, target, source, share, own_share, largest, scale,
            slope, safe, nodes, layout.nnz, *_batches(weight, batch), BLOCK=BLOCK, num_warps=1,
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
        _share_grads[(nodes, batch)](
            layout.rowptr, layout.col, weight, target, source, share, own_share, largest, scale, grad, own_grad,
            score_grad, weight_grad, target_grad, own_score_grad,
            slope, safe, nodes, layout.nnz, *_batches(weight, batch), BLOCK=BLOCK, num_warps=1,
        )  # fmt: skip
    return score_grad, weight_grad, target_grad, own_score_grad


def _batches(weight: Tensor, batch: int) -> tuple[int, int]:
    """The stride of the weights' rows, and how many rows of the scores share one."""
    return weight.stride(0), batch // weight.shape[0]
