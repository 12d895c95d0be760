"""Operations whose result for one replica does not depend on the other replicas, to the last bit.

torch, MKL and cuBLAS choose how to compute by the shape of the whole array: a batched product by the number of its
matrices and by where they lie in memory, a sum by the number of results, a sigmoid by where the array ends. The last
bits differ, and training multiplies the difference. Here every replica is computed as if it were alone. All other
operations of a training step treat every replica alike already, which `tests/contracts/test_same_seed.py` and
`tests/gpu/test_same_seed_gpu.py` check.

On a CPU, a product is cut into blocks of nodes, and each block of each replica is computed by one thread. Threads share
the blocks, not a product, for which they would wait for each other, and their number does not change a bit of a
product. On a GPU, the products of some replicas are computed at once, on streams of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.nn.kernels import gpu_kernels

ALIGNED = 64
"""Bytes. MKL and cuBLAS sum some matrices in another order if they do not begin at a multiple of this, as new tensors
do."""
BLOCK = 2048
"""Largest number of nodes in a block of a product on a CPU."""
NARROW = 16
"""Up to this width of y, MKL computes xᵀ y in half the time as (yᵀ x)ᵀ."""
PART = 1024
"""Number of entries that are summed first: threads share the parts, but do not cut them."""
STREAMS = 4
"""Number of products that a GPU computes at once; torch keeps a cuBLAS workspace of 32 MiB for each."""

Job = tuple[Tensor, Tensor, Tensor]
"""Where a product goes, and its two matrices."""
LITTLE = 2_000_000
"""Multiplications that are done before another thread wakes up."""


def product(x: Tensor, weight: Tensor, start: Tensor | None = None) -> Tensor:
    """Product x W of every replica, [R, N, in] and [R, in, out] → [R, N, out], added to `start` if given."""
    out: Tensor = _Product.apply(*_cast(x, weight), start)  # type: ignore[no-untyped-call]
    return out


def add_product(out: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """`out` [R, N, out] with x W of every replica added in place, without a gradient."""
    _compute(_add, _blocks(out, x, weight))
    return out


def outer_sum(x: Tensor, y: Tensor) -> Tensor:
    """Product xᵀ y of every replica, a sum over the nodes: [R, N, in] and [R, N, out] → [R, in, out]."""
    out: Tensor = _OuterSum.apply(*_cast(x, y))  # type: ignore[no-untyped-call]
    return out


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Sum of x and bias for every replica, [R, N, D] and [R, 1, D] → [R, N, D]; its gradient is `over_nodes`."""
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
    """Sum over the nodes of every replica, [R, N, D] → [R, D]; whole numbers and booleans are counted, in any order."""
    if not x.is_floating_point() or gpu_kernels(x.device, "replica") is None:
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
        _compute(_multiply, _blocks(out, x, weight))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_start = ctx.needs_input_grad
        grad_x = product(grad, weight.transpose(1, 2)) if needs_x else None
        grad_weight = outer_sum(x, grad) if needs_weight else None
        return grad_x, grad_weight, grad if needs_start else None


class _OuterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        (replicas, _, fan_in), fan_out = x.shape, y.shape[2]
        rows = _rows(x)
        wide = torch.promote_types(x.dtype, torch.float32)
        parts = x.new_empty(replicas, len(rows), fan_in, fan_out, dtype=wide)
        multiply = _multiply_turned if not x.is_cuda and fan_out <= NARROW < fan_in else _multiply
        _compute(
            multiply,
            [(parts[r, k], x[r, part].t(), y[r, part]) for r in range(replicas) for k, part in enumerate(rows)],
        )
        out, *others = parts.unbind(1)
        for part in others:
            out += part
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, y = ctx.saved_tensors
        needs_x, needs_y = ctx.needs_input_grad
        return product(y, grad.transpose(1, 2)) if needs_x else None, product(x, grad) if needs_y else None


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
        kernels = gpu_kernels(x.device, "replica")
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


def _cast(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype of autocast, if that is enabled."""
    if not torch.is_autocast_enabled(x.device.type):
        return x, y
    dtype = torch.get_autocast_dtype(x.device.type)
    return x.to(dtype), y.to(dtype)


def _rows(x: Tensor) -> list[slice]:
    """Blocks of the nodes of x [R, N, D]: all on a GPU, else some of about the same size.

    Multiples of 16 rows keep a block aligned.
    """
    nodes = x.shape[1]
    size = nodes if x.is_cuda else -(-nodes // max(1, -(-nodes // BLOCK)) // 16) * 16
    return [slice(first, first + size) for first in range(0, nodes, size or 1)] or [slice(0, 0)]


def _blocks(out: Tensor, x: Tensor, weight: Tensor) -> list[Job]:
    rows = _rows(x)
    return [(out[r, part], x[r, part], weight[r]) for r in range(len(weight)) for part in rows]


def _compute(compute: Callable[[Tensor, Tensor, Tensor], None], jobs: Sequence[Job]) -> None:
    """Call `compute` for every job: on a CPU over threads, on a GPU over streams."""
    if not jobs:
        return
    out, first, second = jobs[0]
    if not out.is_cuda:
        one_thread_each(compute, jobs, len(jobs) * first.numel() * second.shape[1])
    elif len(jobs) == 1:
        compute(*jobs[0])
    else:
        _on_streams(compute, jobs, out.device)


def _on_streams(compute: Callable[[Tensor, Tensor, Tensor], None], jobs: Sequence[Job], device: torch.device) -> None:
    current, streams = torch.cuda.current_stream(device), _streams(device)[: len(jobs)]
    for number, stream in enumerate(streams):
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for job in jobs[number :: len(streams)]:
                compute(*job)
    for stream in streams:
        current.wait_stream(stream)


@cache
def _streams(device: torch.device) -> Sequence[torch.cuda.Stream]:
    return [torch.cuda.Stream(device) for _ in range(STREAMS)]


def _multiply(into: Tensor, a: Tensor, b: Tensor) -> None:
    a, b = _aligned(a), _aligned(b)
    if into.data_ptr() % ALIGNED or into.dtype != a.dtype:
        into.copy_(torch.mm(a, b))
    else:
        torch.mm(a, b, out=into)


def _multiply_turned(into: Tensor, a: Tensor, b: Tensor) -> None:
    """Write the product a b as (bᵀ aᵀ)ᵀ."""
    into.copy_(torch.mm(_aligned(b).t(), _aligned(a).t()).t())


def _add(into: Tensor, a: Tensor, b: Tensor) -> None:
    if into.data_ptr() % ALIGNED:
        into.copy_(into.clone().addmm_(_aligned(a), _aligned(b)))
    else:
        into.addmm_(_aligned(a), _aligned(b))


def _aligned(matrix: Tensor) -> Tensor:
    return matrix.clone() if matrix.data_ptr() % ALIGNED else matrix


def one_thread_each(compute: Callable[..., None], jobs: Sequence[tuple[Any, ...]], work: int) -> None:
    """Call `compute(*job)` for every job, without gradients, in several threads at once.

    `compute` writes its result into one of its arguments. `work` is the number of multiplications of all calls; a
    little work is not shared.
    """
    threads = torch.get_num_threads()
    waiting = iter(jobs)  # all threads take from it; `next` is atomic
    inference = torch.is_inference_mode_enabled()

    def work_on() -> None:
        with torch.inference_mode() if inference else torch.no_grad():  # each thread has its own mode
            for job in waiting:
                compute(*job)

    if threads == 1:
        return work_on()
    helpers = min(threads, len(jobs)) - 1 if work > LITTLE else 0
    helping = [_helpers(threads - 1).submit(work_on) for _ in range(helpers)]
    try:
        torch.set_num_threads(1)
        work_on()
    finally:
        torch.set_num_threads(threads)
        for helper in helping:
            if not helper.cancel():  # it has begun
                helper.result()


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "gumbel-mpnn", initializer=_take_one_thread)


def _take_one_thread() -> None:
    torch.get_num_threads()  # sets the number of this thread to that of the process when it is first called
    torch.set_num_threads(1)
