"""What follows a layer: bias, norm, ReLU and dropout, each replica dropping by its own random stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.kernels import gpu_kernels
from gumbel_mpnn.nn.modules import BatchNorm, LayerNorm
from gumbel_mpnn.nn.replica_rng import ReplicaRNG


def activate(x: Tensor, bias: Tensor, norm: nn.Module, probability: float, rng: ReplicaRNG) -> Tensor:
    """dropout(relu(norm(x + bias))) for x [R, N, D], in one pass on a GPU; nothing is dropped outside training."""
    probability = probability if norm.training else 0.0
    kernels = gpu_kernels(x.device, "norm")
    # The fused gradient of batch norm is that of training; the rare gradient in evaluation goes the plain way.
    wanted = torch.is_grad_enabled() and (x.requires_grad or bias.requires_grad)
    if kernels is None or (isinstance(norm, BatchNorm) and not norm.training and wanted):
        return dropout(torch.relu(norm(x + bias.to(x.dtype))), probability, rng)
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


def dropout(x: Tensor, probability: float, rng: ReplicaRNG) -> Tensor:
    """Zero entries of [R, ...] with `probability`, each replica from its own stream, and scale up the rest."""
    if probability == 0:
        return x
    if kernels := gpu_kernels(x.device, "random"):
        out: Tensor = kernels.fused_dropout(x, probability, rng.seeds, rng.next_call())
        return out
    mask, kept = rng.keep(x.shape[1:], 1 - probability)
    return x * mask.to(x.dtype).mul_(1 / kept) if kept else torch.zeros_like(x)


def dropout_features(x: Tensor | SparseFeatures, probability: float, rng: ReplicaRNG) -> Tensor | SparseFeatures:
    """The same on features that the replicas share until here."""
    if probability == 0:
        return x
    if isinstance(x, SparseFeatures):
        return SparseFeatures(x.layout, dropout(x.values.expand(len(rng), -1), probability, rng))
    return dropout(x.expand(len(rng), *x.shape), probability, rng)
