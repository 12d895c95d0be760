"""Operations whose result for one replica does not depend on the other replicas, to the last bit.

torch, MKL and cuBLAS choose how to compute by the shape of the whole array: a batched product by the number of its
matrices and by where they lie in memory, a sum by the number of results, a sigmoid by where the array ends. The last
bits differ, and training multiplies the difference. Here every replica is computed as if it were alone. All other
operations of a training step treat every replica alike already, which `tests/contracts/test_same_seed.py` and
`tests/gpu/test_same_seed_gpu.py` check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.nn.kernels import gpu_kernels

ALIGNED = 64
"""Bytes. MKL and cuBLAS sum some matrices in another order if they do not begin at a multiple of this, as new tensors
do."""
PART = 1024
"""Number of entries that are summed first: threads share the parts, but do not cut them."""
STREAMS = 4
"""Number of products that a GPU computes at once; torch keeps a cuBLAS workspace of 32 MiB for each."""


def product(x: Tensor, weight: Tensor, start: Tensor | None = None) -> Tensor:
    """Product x W of every replica, [R, N, in] and [R, in, out] → [R, N, out], added to `start` if given."""
    if torch.is_autocast_enabled(x.device.type):
        x, weight = (tensor.to(torch.get_autocast_dtype(x.device.type)) for tensor in (x, weight))
    out: Tensor = _Product.apply(x, weight, start)  # type: ignore[no-untyped-call]
    return out


def add_product(out: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """`out` [R, N, out] with x W of every replica added in place, without a gradient."""
    _for_each(lambda into, a, b: into.copy_(torch.addmm(_aligned(into), _aligned(a), _aligned(b))), out, x, weight)
    return out


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """X + bias for every replica, [R, N, D] and [R, 1, D] → [R, N, D]; the gradient for the bias is `over_nodes`."""
    out: Tensor = _AddBias.apply(x, bias)  # type: ignore[no-untyped-call]
    return out


def sigmoid(x: Tensor) -> Tensor:
    """Sigmoid of every entry, [R, P] → [R, P]."""
    return torch.sigmoid(x) if x.is_cuda else torch.stack([torch.sigmoid(row) for row in x])


def total(x: Tensor) -> Tensor:
    """Sum over the last axis, [..., P] → [...], for any number of threads the same."""
    if x.is_cuda:
        return over_nodes(x.reshape(-1, x.shape[-1], 1)).view(x.shape[:-1])
    parts: Tensor = F.pad(x, (0, -x.shape[-1] % PART)).unflatten(-1, (-1, PART))
    return parts.sum(-1).sum(-1)


def over_nodes(x: Tensor) -> Tensor:
    """Sum over the nodes of every replica, [R, N, D] → [R, D]."""
    if gpu_kernels(x.device, "sums") is None:
        return x.sum(1)
    out: Tensor = _OverNodes.apply(x)  # type: ignore[no-untyped-call]
    return out


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
        _for_each(_store_product, out, x, weight)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_start = ctx.needs_input_grad
        grad_x = product(grad, weight.transpose(1, 2)) if needs_x else None
        grad_weight = product(x.transpose(1, 2), grad) if needs_weight else None
        return grad_x, grad_weight, grad if needs_start else None


class _AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        return x + bias

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        return grad, over_nodes(grad)[:, None] if ctx.needs_input_grad[1] else None


class _OverNodes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        kernels = gpu_kernels(x.device, "sums")
        assert kernels is not None
        ctx.nodes = x.shape[1]
        out: Tensor = kernels.over_rows(x)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad[:, None].expand(-1, ctx.nodes, -1)


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int) -> Tensor:
        return value.expand(-1, count)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return total(grad)[:, None], None


def _store_product(out: Tensor, x: Tensor, weight: Tensor) -> None:
    if out.data_ptr() % ALIGNED:
        out.copy_(torch.mm(_aligned(x), _aligned(weight)))
    else:
        torch.mm(_aligned(x), _aligned(weight), out=out)


def _for_each(operation: Callable[[Tensor, Tensor, Tensor], object], out: Tensor, x: Tensor, weight: Tensor) -> None:
    """Call `operation` for every replica; on a GPU, several at once."""
    replicas = list(zip(out, x, weight, strict=True))
    streams = _streams(out.device)[: len(replicas)] if out.is_cuda and len(replicas) > 1 else []
    if not streams:
        for replica in replicas:
            operation(*replica)
        return
    current = torch.cuda.current_stream(out.device)
    for number, stream in enumerate(streams):
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for replica in replicas[number :: len(streams)]:
                operation(*replica)
    for stream in streams:
        current.wait_stream(stream)


@cache
def _streams(device: torch.device) -> Sequence[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(STREAMS)]


def _aligned(matrix: Tensor) -> Tensor:
    return matrix.clone() if matrix.data_ptr() % ALIGNED else matrix
