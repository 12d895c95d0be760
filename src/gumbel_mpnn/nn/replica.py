"""Random numbers and operations whose result for one replica does not depend on the other replicas, to the last bit.

torch, MKL and cuBLAS choose how to compute by the shape of the whole array: a batched product by the number of its
matrices and by where they lie in memory, a sum by the number of results, a sigmoid by where the array ends. Here every
replica is computed as if it were alone, and draws from a stream of its own. All other operations of a training step
treat every replica alike already, as the tests test_same_seed check.

On a CPU, threads share blocks of nodes of all replicas, not a product, for which they would wait for each other; their
number does not change a bit. On a GPU, the products of some replicas are computed at once, on streams of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.graph.kernels import gpu_kernels
from gumbel_mpnn.util.errors import UserError, whole_numbers

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
LITTLE = 2_000_000
"""Multiplications that are done before another thread wakes up."""
LEVELS = 2**16
"""Number of probabilities that a mask can have."""

Job = tuple[Tensor, Tensor, Tensor]
"""Where a product goes, and its two matrices."""


class ReplicaRNG:
    """Random numbers for R replicas, each with its own generator.

    Args:
        seeds: One seed per replica.
        purpose: Streams of different purposes are independent, for example `init` and `train`.
        device: Device of the random numbers.
    """

    def __init__(self, seeds: Sequence[int], purpose: str, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        derived = [derive_seed(seed, purpose) for seed in seeds]
        with torch.inference_mode(False):  # else they could not be changed in training
            self.seeds = torch.tensor(derived, device=self.device)
            self._calls = torch.zeros((), dtype=torch.int64, device=self.device)
        self._generators = [torch.Generator(self.device).manual_seed(seed) for seed in derived]

    def rewind(self) -> None:
        """Reset all streams to their start."""
        self._calls.zero_()
        if _kernels(self.device) is None:  # else the generators are not used
            for generator in self._generators:
                generator.manual_seed(generator.initial_seed())

    def __len__(self) -> int:
        return len(self._generators)

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Tensor:
        """Uniform random numbers in [low, high), [R, *shape]."""
        out = torch.empty(len(self), *shape, device=self.device)
        for row, generator in zip(out, self._generators, strict=True):
            row.uniform_(low, high, generator=generator)
        return out

    def noise(self, count: int) -> Tensor:
        """Uniform random numbers in [0, 1), [R, count]; on a GPU one kernel draws them for all replicas."""
        if kernels := _kernels(self.device):
            out: Tensor = kernels.fused_uniform(self.seeds, self.next_call(), count)
            return out
        return self.uniform((count,), 0.0, 1.0)

    def bernoulli(self, shape: Sequence[int], probability: float) -> tuple[Tensor, float]:
        """Mask [R, *shape] that is true with about `probability`, and the exact probability that was used.

        Each 64-bit draw gives four 16-bit numbers, which is several times faster than one draw per entry.
        """
        count = int(torch.Size(shape).numel())
        words = torch.empty(len(self), (count + 3) // 4, dtype=torch.int64, device=self.device)
        for row, generator in zip(words, self._generators, strict=True):
            row.random_(-(2**63), None, generator=generator)
        threshold = round(probability * LEVELS)
        if threshold == 0:
            return torch.zeros(len(self), *shape, dtype=torch.bool, device=self.device), 0.0
        # The numbers are -2^15 to 2^15 - 1; with `<=` the bound is in this range even for probability 1.
        mask = words.view(torch.int16)[:, :count] <= threshold - 1 - LEVELS // 2
        return mask.view(len(self), *shape), threshold / LEVELS

    def next_call(self) -> Tensor:
        """Number of the next draw, for kernels that generate their own random numbers, int64 scalar."""
        self._calls += 1
        return self._calls.clone()

    def get_state(self) -> dict[str, Tensor]:
        """State of all streams, for `set_state`."""
        generators = torch.stack([generator.get_state() for generator in self._generators])
        return {"generators": generators, "calls": self._calls.clone()}

    def set_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore a state returned by `get_state`."""
        self._calls.copy_(state["calls"])
        for generator, row in zip(self._generators, state["generators"], strict=True):
            generator.set_state(row.cpu().clone())  # a copy, because torch reads from the start of the storage


def replica_seeds(seeds: Sequence[int] | None, count: int) -> list[int]:
    """One seed for each of `count` replicas: the given seeds, or new ones from torch's global generator."""
    if seeds is None:
        drawn: list[int] = torch.randint(2**62, (count,)).tolist()
        return drawn
    given = whole_numbers("seeds", seeds)
    if len(given) != count:
        raise UserError(f"seeds must have one entry per replica, {count}, not {len(given)}")
    return given


def derive_seed(seed: int, purpose: str) -> int:
    """Seed for one purpose, unrelated to those of other purposes and of adjacent seeds."""
    digest = hashlib.sha256(f"{purpose}/{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Product x W of every replica, [R, N, in] and [R, in, out] → [R, N, out]."""
    return product_sum([(x, weight)])


def product_sum(terms: Sequence[tuple[Tensor, Tensor]], start: Tensor | None = None) -> Tensor:
    """Σ x W + start of every replica, [R, N, out], accumulated in one array.

    Terms are pairs of x, [R, N, in] or [N, in] if all replicas share it, and W [R, in, out].
    """
    xs, weights = _cast(x for x, _ in terms), _cast(weight for _, weight in terms)
    xs = [x.expand(len(weight), -1, -1) for x, weight in zip(xs, weights, strict=True)]
    out: Tensor = _ProductSum.apply(start, *xs, *weights)  # type: ignore[no-untyped-call]
    return out


def outer_sum(x: Tensor, y: Tensor) -> Tensor:
    """Product xᵀ y of every replica, a sum over the nodes: [R, N, in] and [R, N, out] → [R, in, out]."""
    out: Tensor = _OuterSum.apply(*_cast([x, y]))  # type: ignore[no-untyped-call]
    return out


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Sum of x and bias for every replica, [R, N, D] and [R, 1, D] → [R, N, D]; its gradient is `over_nodes`."""
    spread_bias: Tensor = _Spread.apply(bias, x.shape[1], over_nodes)  # type: ignore[no-untyped-call]
    return x + spread_bias


def spread(value: Tensor, count: int) -> Tensor:
    """One value of each replica for all of its pairs, [R, 1] → [R, count]; the gradient is a `total`."""
    out: Tensor = _Spread.apply(value, count, total)  # type: ignore[no-untyped-call]
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
    kernels = _kernels(x.device) if x.is_floating_point() else None
    out: Tensor = x.sum(1) if kernels is None else _OverNodes.apply(x, kernels)  # type: ignore[no-untyped-call]
    return out


def _kernels(device: torch.device) -> ModuleType | None:
    return gpu_kernels(device, "nn.kernels.replica")


class _ProductSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, start: Tensor | None, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        (x, *xs), (weight, *weights) = _halves(tensors)
        out: Tensor = x.new_empty(len(weight), x.shape[1], weight.shape[2])
        _compute(_multiply, _blocks(out, x, weight))
        for each, matrix in zip(xs, weights, strict=True):
            _compute(_add, _blocks(out, each, matrix))
        return out if start is None else out.add_(start)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        needs_start, *needed = ctx.needs_input_grad
        (xs, weights), (needs_x, needs_weight) = _halves(ctx.saved_tensors), _halves(needed)
        turned = [weight.transpose(1, 2) for weight in weights]
        for_xs = [product(grad, weight) if needs else None for weight, needs in zip(turned, needs_x, strict=True)]
        for_weights = [outer_sum(x, grad) if needs else None for x, needs in zip(xs, needs_weight, strict=True)]
        return grad if needs_start else None, *for_xs, *for_weights


def _halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    return values[: len(values) // 2], values[len(values) // 2 :]


class _OuterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        (replicas, _, fan_in), fan_out = x.shape, y.shape[2]
        rows = _rows(x)
        wide = torch.promote_types(x.dtype, torch.float32)
        parts = x.new_empty(replicas, len(rows), fan_in, fan_out, dtype=wide)
        turned = not x.is_cuda and fan_out <= NARROW < fan_in
        each = [(parts[r, k], x[r, part].t(), y[r, part]) for r in range(replicas) for k, part in enumerate(rows)]
        _compute(_multiply_turned if turned else _multiply, each)
        out, *others = parts.unbind(1)
        for part in others:
            out += part
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, y = ctx.saved_tensors
        needs_x, needs_y = ctx.needs_input_grad
        return product(y, grad.transpose(1, 2)) if needs_x else None, product(x, grad) if needs_y else None


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int, add_up: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.add_up = add_up
        return value.expand(-1, count, *value.shape[2:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.add_up(grad)[:, None], None, None


class _OverNodes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernels: ModuleType) -> Tensor:
        ctx.nodes = x.shape[1]
        out: Tensor = kernels.over_rows(x)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[:, None].expand(-1, ctx.nodes, -1), None


def _cast(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors in the dtype of autocast, if that is enabled."""
    given = list(tensors)
    kind = given[0].device.type
    return [tensor.to(torch.get_autocast_dtype(kind)) for tensor in given] if torch.is_autocast_enabled(kind) else given


def _rows(x: Tensor) -> list[slice]:
    """Blocks of the nodes of x [R, N, D]: all on a GPU, else some of about the same size."""
    nodes = x.shape[1]
    size = nodes if x.is_cuda else -(-nodes // max(1, -(-nodes // BLOCK)) // 16) * 16  # aligned
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
        return one_thread_each(compute, jobs, len(jobs) * first.numel() * second.shape[1])
    if len(jobs) == 1:
        return compute(*jobs[0])
    current, streams = torch.cuda.current_stream(out.device), _streams(out.device)[: len(jobs)]
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
    """Call `compute(*job)` for every job, without gradients, in several threads if `work` (multiplications) is much."""
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
