"""Sums of linear maps, for example of messages, of the node itself and of a shortcut, in few passes over memory."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn._util.no_double_backward import first_order
from gumbel_mpnn.graph import matmul
from gumbel_mpnn.nn.each_replica import add_product, outer_sum, product
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.kernels import gpu_kernels

Inputs = Tensor | SparseFeatures


def linear_sum(terms: Sequence[tuple[Inputs, Tensor]], start: Tensor | None = None) -> Tensor:
    """Σ x W + start for every replica, [R, N, out].

    Terms are pairs of inputs and matrices [R, in, out]. Inputs are [R, N, in], [N, in] if all replicas share them, or
    sparse features.
    """
    dense = []
    for x, weight in terms:
        if isinstance(x, SparseFeatures):
            sparse = _times_sparse(x, weight)
            start = sparse if start is None else start + sparse
        else:
            dense.append((x, weight))
    if not dense:
        assert start is not None
        return start
    weights = [weight for _, weight in dense]
    if torch.is_autocast_enabled(weights[0].device.type):
        return _low_precision_sum([x for x, _ in dense], weights, start)
    xs = [x.expand(len(weight), -1, -1) for x, weight in dense]
    kernels = gpu_kernels(xs[0].device, "linear")
    plain = all(tensor.dtype == torch.float32 for tensor in (*xs, *weights))
    narrow = kernels if kernels is not None and plain and kernels.is_narrow(weights) else None
    if narrow is None and len(xs) == 1 and start is None:  # this product also has second derivatives
        return product(xs[0], weights[0])
    total: Tensor = _LinearSum.apply(narrow, start, *xs, *weights)  # type: ignore[no-untyped-call]
    return total


def _low_precision_sum(xs: list[Tensor], weights: list[Tensor], start: Tensor | None) -> Tensor:
    """Σ x W + start under autocast, as one product: sums are accumulated in 32 bits and rounded to 16 bits once."""
    dtype = torch.get_autocast_dtype(weights[0].device.type)
    xs = [x.to(dtype) if x.dtype == torch.float32 else x for x in xs]  # before they are concatenated
    xs = [x.expand(len(weight), -1, -1) for x, weight in zip(xs, weights, strict=True)]
    x, weight = (xs[0], weights[0]) if len(xs) == 1 else (torch.cat(xs, -1), torch.cat(weights, 1))
    if start is None or start.dtype == dtype:
        return product(x, weight, start)
    return start + product(x, weight)


def _times_sparse(x: SparseFeatures, weight: Tensor) -> Tensor:
    replicas, fan_in, fan_out = weight.shape
    if x.values.dim() == 2 or weight.is_cuda:
        return matmul(x.layout, x.values, weight)
    side_by_side = weight.transpose(0, 1).reshape(1, fan_in, replicas * fan_out)
    out = matmul(x.layout, x.values, side_by_side).view(-1, replicas, fan_out).transpose(0, 1)
    return out.contiguous()  # else a sum over the nodes would depend on the number of replicas


class _LinearSum(torch.autograd.Function):
    """Σ x W + start accumulated in one array; the gradients of narrow matrices take one pass."""

    @staticmethod
    def forward(ctx: Any, narrow: ModuleType | None, start: Tensor | None, *tensors: Tensor) -> Tensor:
        ctx.narrow, count = narrow, len(tensors) // 2
        xs, weights = tensors[:count], tensors[count:]
        ctx.save_for_backward(*tensors)
        if narrow is not None:
            out: Tensor = narrow.sum_of_products(xs, weights, start)
            return out
        out = product(xs[0], weights[0])
        for x, weight in zip(xs[1:], weights[1:], strict=True):
            add_product(out, x, weight)
        return out if start is None else out.add_(start)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors: Sequence[Tensor] = ctx.saved_tensors
        count = len(tensors) // 2
        xs, weights = tensors[:count], tensors[count:]
        _, needs_start, *needed = ctx.needs_input_grad
        grads: list[Tensor | None] = [
            product(grad, weight.transpose(1, 2)) if needs else None
            for weight, needs in zip(weights, needed, strict=False)
        ]
        if ctx.narrow is not None and all(needed[count:]):
            grads += ctx.narrow.outer_sums(xs, grad)
        else:
            grads += [outer_sum(x, grad) if needs else None for x, needs in zip(xs, needed[count:], strict=True)]
        return None, grad if needs_start else None, *grads
