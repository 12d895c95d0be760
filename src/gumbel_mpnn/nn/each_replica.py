"""Operations whose result for one replica does not depend on the other replicas, to the last bit.

On a CPU, torch and MKL choose how to compute by the shape of the whole array: a batched product by the number of its
matrices and by where they lie in memory, a sum by the number of results, a sigmoid by where the array ends. The last
bits differ, and training multiplies the difference. Here every replica is computed as if it were alone. All other
operations of a training step treat every replica alike already, which `tests/contracts/test_same_seed.py` checks.

On a GPU, these are torch's operations.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ALIGNED = 64
"""Bytes. MKL sums narrow matrices in another order if they do not begin at a multiple of this, as new tensors do."""
PART = 1024
"""Number of entries that are summed first: threads share the parts, but do not cut them."""


def product(x: Tensor, weight: Tensor, start: Tensor | None = None) -> Tensor:
    """Product x W of every replica, [R, N, in] and [R, in, out] → [R, N, out], added to `start` if given."""
    if x.is_cuda:
        return torch.bmm(x, weight) if start is None else torch.baddbmm(start, x, weight)
    if torch.is_autocast_enabled(x.device.type):
        x, weight = (tensor.to(torch.get_autocast_dtype(x.device.type)) for tensor in (x, weight))
    out: Tensor = _Product.apply(x, weight, start)  # type: ignore[no-untyped-call]
    return out


def add_product(out: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """`out` [R, N, out] with x W of every replica added in place, without a gradient."""
    if x.is_cuda:
        return out.baddbmm_(x, weight)
    for total, a, b in zip(out, x, weight, strict=True):
        total.copy_(torch.addmm(_aligned(total), _aligned(a), _aligned(b)))
    return out


def sigmoid(x: Tensor) -> Tensor:
    """Sigmoid of every entry, [R, P] → [R, P]."""
    return torch.sigmoid(x) if x.is_cuda else torch.stack([torch.sigmoid(row) for row in x])


def total(x: Tensor) -> Tensor:
    """Sum over the last axis, [..., P] → [...], for any number of threads the same."""
    if x.is_cuda:
        return x.sum(-1)
    parts: Tensor = F.pad(x, (0, -x.shape[-1] % PART)).unflatten(-1, (-1, PART))
    return parts.sum(-1).sum(-1)


def spread(value: Tensor, count: int) -> Tensor:
    """One value of each replica for all of its pairs, [R, 1] → [R, count]; the gradient is a `total`."""
    out: Tensor = _Spread.apply(value, count)  # type: ignore[no-untyped-call]
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, start: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        if start is not None:
            return add_product(start.clone(), x, weight)
        out = x.new_empty(len(weight), x.shape[1], weight.shape[2])
        for into, a, b in zip(out, x, weight, strict=True):
            if into.data_ptr() % ALIGNED:
                into.copy_(torch.mm(_aligned(a), _aligned(b)))
            else:
                torch.mm(_aligned(a), _aligned(b), out=into)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_start = ctx.needs_input_grad
        grad_x = product(grad, weight.transpose(1, 2)) if needs_x else None
        grad_weight = product(x.transpose(1, 2), grad) if needs_weight else None
        return grad_x, grad_weight, grad if needs_start else None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int) -> Tensor:
        return value.expand(-1, count)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return total(grad)[:, None], None


def _aligned(matrix: Tensor) -> Tensor:
    return matrix.clone() if matrix.data_ptr() % ALIGNED else matrix
