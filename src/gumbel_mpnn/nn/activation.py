"""Bias, norm, ReLU and dropout after a layer; each replica draws its dropout mask from its own random stream."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.kernels import gpu_kernels
from gumbel_mpnn.nn.modules import BatchNorm, LayerNorm
from gumbel_mpnn.nn.replica_rng import ReplicaRNG


def activate(x: Tensor, bias: Tensor, norm: nn.Module, probability: float, rng: ReplicaRNG) -> Tensor:
    """dropout(relu(norm(x + bias))) for x [R, N, D], in one pass on a GPU; no dropout in evaluation."""
    probability = probability if norm.training else 0.0
    kernels = gpu_kernels(x.device, "norm")
    # The fused gradient of batch norm is that of training; in evaluation, where it is rare, autograd computes it.
    wanted = torch.is_grad_enabled() and (x.requires_grad or bias.requires_grad)
    if kernels is None or (isinstance(norm, BatchNorm) and not norm.training and wanted):
        return relu_dropout(norm(x + bias.to(x.dtype)), probability, rng)
    weight = shift = mean = rstd = None
    kind, eps = "none", 0.0
    if isinstance(norm, LayerNorm | BatchNorm):
        kind, eps, weight, shift = "layer", norm.eps, norm.weight, norm.bias
    if isinstance(norm, BatchNorm):
        kind, mean, var = "batch", norm.running_mean - bias.detach(), norm.running_var
        if norm.training:
            mean, var = kernels.batch_moments(x.detach())
            norm.track(mean + bias.detach(), var, x.shape[1])
        rstd = (var + norm.eps).rsqrt()
    call = rng.next_call() if probability else rng.seeds
    out: Tensor = kernels.norm_relu_dropout(
        x, bias, weight, shift, mean, rstd, norm=kind, eps=eps, probability=probability, seeds=rng.seeds, call=call
    )
    return out


def relu_dropout(x: Tensor, probability: float, rng: ReplicaRNG) -> Tensor:
    """dropout(relu(x)) for x [R, ...]; on a CPU in fewer passes, of which autograd keeps the result alone."""
    if probability == 0 or x.is_cuda:
        return dropout(torch.relu(x), probability, rng)
    mask, kept = rng.bernoulli(x.shape[1:], 1 - probability)
    if not kept:
        return torch.zeros_like(x)
    out: Tensor = _ReluDropout.apply(x, mask, kept)  # type: ignore[no-untyped-call]
    return out


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, kept: float) -> Tensor:
        out = torch.relu(x).mul_(mask.to(x.dtype).mul_(1 / kept))
        ctx.kept = kept
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        # The gradient passes where the result is above 0: where x is, and the mask is 1.
        return torch.ops.aten.threshold_backward(grad, out, 0).mul_(1 / ctx.kept), None, None


def dropout(x: Tensor, probability: float, rng: ReplicaRNG) -> Tensor:
    """Zero entries of x [R, ...] with `probability`, each replica from its own stream, and scale the others."""
    if probability == 0:
        return x
    if kernels := gpu_kernels(x.device, "random"):
        out: Tensor = kernels.fused_dropout(x, probability, rng.seeds, rng.next_call())
        return out
    mask, kept = rng.bernoulli(x.shape[1:], 1 - probability)
    return x * mask.to(x.dtype).mul_(1 / kept) if kept else torch.zeros_like(x)


def dropout_features(x: Tensor | SparseFeatures, probability: float, rng: ReplicaRNG) -> Tensor | SparseFeatures:
    """Dropout of features [N, F] that all replicas share, or of [R, N, F]; each replica drops its own entries."""
    if probability == 0:
        return x
    if isinstance(x, SparseFeatures):
        return SparseFeatures(x.layout, dropout(x.values.expand(len(rng), -1), probability, rng))
    return dropout(x if x.dim() == 3 else x.expand(len(rng), *x.shape), probability, rng)
