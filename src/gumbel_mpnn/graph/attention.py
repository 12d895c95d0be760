"""GAT's attention: normalized coefficients of the incoming arcs and of the node itself, and the weighted averages."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn._util.no_double_backward import first_order
from gumbel_mpnn.graph import kernels as backend
from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.sparse import matmul, multiply_transposed, sampled_product

SAFE_EXPONENT = 60.0
"""Upper bound for exponents: an arc of weight 0 may exceed the largest score by far, and 0 · ∞ would give NaN."""


def attention(
    layout: SparseLayout, weight: Tensor, target: Tensor, source: Tensor, negative_slope: float
) -> tuple[Tensor, Tensor]:
    """Attention coefficients of all arcs [B, A] and of the nodes themselves [B, N]; those of one target sum to 1.

    The score of an arc is the leaky ReLU of the sum of `target` [B, N] at its target and `source` [B, N] at its source.
    Coefficients are multiplied by the weights of the arcs [B', A] before normalization; each row of weights is used for
    B / B' consecutive rows of scores. Rows of the layout are targets.
    """
    if kernels := backend.attention_kernels(target):
        shares: tuple[Tensor, Tensor] = _Attention.apply(  # type: ignore[no-untyped-call]
            weight.contiguous(), target.contiguous(), source.contiguous(), layout, negative_slope, kernels
        )
        return shares
    one = torch.ones_like(target)
    scores = sampled_product(layout, torch.stack([target, one], -1), torch.stack([one, source], -1))
    scores, own = F.leaky_relu(scores, negative_slope), F.leaky_relu(target + source, negative_slope)
    weight = weight.repeat_interleave(len(scores) // len(weight), dim=0)
    top, rows = _largest(layout, scores, own, weight), layout.row.long()
    share = weight * (scores - top.index_select(1, rows)).clamp(max=SAFE_EXPONENT).exp()
    own_share = (own - top).exp()
    total = matmul(layout, share, share.new_ones(*own.shape, 1)).squeeze(-1) + own_share
    return share / total.index_select(1, rows), own_share / total


def averages(layout: SparseLayout, share: Tensor, own_share: Tensor, x: Tensor) -> Tensor:
    """Σ_j share_ij · x_j + own_share_i · x_i for every node i and every head, [B, N, D].

    `share` [B, H, A] and `own_share` [B, H, N] are coefficients of the arcs and of the nodes themselves; the features x
    [B, N, D] are the concatenation of H heads. Rows of the layout are targets.
    """
    batch, heads, nodes = own_share.shape
    kernels = backend.gpu_kernels(x)
    if kernels is not None and share.dtype == x.dtype and x.shape[2] <= heads * kernels.WIDEST:
        out: Tensor = _Averages.apply(share, own_share, x, layout, kernels)  # type: ignore[no-untyped-call]
        return out
    width = x.shape[2] // heads
    by_head = x.view(batch, nodes, heads, width).transpose(1, 2).reshape(batch * heads, nodes, width)
    out = matmul(layout, share.flatten(0, 1), by_head) + own_share.flatten(0, 1)[..., None] * by_head
    return out.view(batch, heads, nodes, width).transpose(1, 2).reshape(x.shape)


@torch.no_grad()
def _largest(layout: SparseLayout, scores: Tensor, own: Tensor, weight: Tensor) -> Tensor:
    """Largest score among the node itself and its neighbors with a non-zero weight, [B, N]."""
    present = scores.masked_fill(weight == 0, -torch.inf)
    return own.scatter_reduce(1, layout.row.long().expand_as(present), present, "amax")


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        target: Tensor,
        source: Tensor,
        layout: SparseLayout,
        slope: float,
        kernels: ModuleType,
    ) -> tuple[Tensor, Tensor]:
        found = kernels.shares(layout, weight, target, source, slope, SAFE_EXPONENT)
        ctx.layout, ctx.slope, ctx.kernels = layout, slope, kernels
        ctx.save_for_backward(weight, target, source, *found)
        return found[0], found[1]

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor, own_grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, target, source, *found = ctx.saved_tensors
        grads = grad.contiguous(), own_grad.contiguous()
        score_grad, weight_grad, target_grad, own_score_grad = ctx.kernels.share_grads(
            ctx.layout, weight, target, source, ctx.slope, SAFE_EXPONENT, *found, *grads
        )
        ones = score_grad.new_ones(*target.shape, 1)
        source_grad = multiply_transposed(ctx.layout, score_grad, ones).squeeze(-1) + own_score_grad
        weight_grad = weight_grad.unflatten(0, (len(weight), -1)).sum(1) if ctx.needs_input_grad[0] else None
        return weight_grad, target_grad, source_grad, None, None, None


class _Averages(torch.autograd.Function):
    """`averages` in one pass, with one backward pass for all three gradients."""

    @staticmethod
    def forward(
        ctx: Any, share: Tensor, own_share: Tensor, x: Tensor, layout: SparseLayout, kernels: ModuleType
    ) -> Tensor:
        ctx.layout, ctx.kernels = layout, kernels
        ctx.save_for_backward(share, own_share, x)
        shares = {"values": share.flatten(0, 1), "loop": own_share.flatten(0, 1), "heads": share.shape[1]}
        out: Tensor = kernels.walk(layout.by_row, x, **shares).sums
        return out

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        share, own_share, x = ctx.saved_tensors
        shares = {"values": share.flatten(0, 1), "loop": own_share.flatten(0, 1), "heads": share.shape[1]}
        found = ctx.kernels.walk(ctx.layout.by_col, grad, own=x, **shares)
        return found.samples.view_as(share), found.loop_grad.view_as(own_share), found.sums, None, None
