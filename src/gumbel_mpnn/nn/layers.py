"""Linear maps, norms, ReLU and dropout with a leading replica axis; every parameter is [R, ...]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gumbel_mpnn.graph import matmul
from gumbel_mpnn.graph.kernels import gpu_kernels
from gumbel_mpnn.nn.features import Features, SparseFeatures
from gumbel_mpnn.nn.replica import ReplicaRNG, add_bias, product_sum, total
from gumbel_mpnn.util.errors import UserError, unknown_name
from gumbel_mpnn.util.tensors import first_order

EPSILON, MOMENTUM = 1e-5, 0.1
"""Constants of norms, as in torch."""


class ReplicaModule(nn.Module):
    """A module whose parameters have a leading replica axis; each replica is initialized from its own random stream."""

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Initialize the parameters of this module, without those of its submodules."""

    def init_parameters(self, rng: ReplicaRNG) -> None:
        """Initialize the parameters of this module and of all submodules, in order; on the meta device do nothing."""
        if any(values.is_meta for values in self.parameters()):
            return
        for module in self.modules():
            if isinstance(module, ReplicaModule):
                module.init_own_parameters(rng)


def parameter(*shape: int) -> nn.Parameter:
    """A parameter without values, which `init_own_parameters` sets."""
    return nn.Parameter(torch.empty(*shape))


def linear_sum(terms: Sequence[tuple[Features, Tensor]], start: Tensor | None = None) -> Tensor:
    """Σ x W + start for every replica, [R, N, out].

    Terms are pairs of inputs and matrices [R, in, out]. Features are [R, N, in], [N, in] if all replicas share them, or
    sparse features.
    """
    dense = []
    for x, weight in terms:
        if isinstance(x, SparseFeatures):
            sparse = _times_sparse(x, weight)
            start = sparse if start is None else start + sparse
        else:
            dense.append((x, weight))
    if dense:
        return product_sum(dense, start)
    assert start is not None
    return start


def _times_sparse(x: SparseFeatures, weight: Tensor) -> Tensor:
    replicas, fan_in, fan_out = weight.shape
    if x.values.dim() == 2 or weight.is_cuda:
        return matmul(x.layout, x.values, weight)
    side_by_side = weight.transpose(0, 1).reshape(1, fan_in, replicas * fan_out)
    out = matmul(x.layout, x.values, side_by_side).view(-1, replicas, fan_out).transpose(0, 1)
    return out.contiguous()  # else a sum over the nodes would depend on the number of replicas


class Linear(ReplicaModule):
    """x W + b for every replica; the input is [R, N, in], or [N, in] if all replicas share it."""

    def __init__(
        self, replicas: int, in_channels: int, out_channels: int, *, bias: bool = True, glorot: bool = False
    ) -> None:
        super().__init__()
        self.glorot = glorot
        self.weight = parameter(replicas, in_channels, out_channels)
        self.bias = parameter(replicas, 1, out_channels) if bias else None

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Glorot's initialization with bias 0, as in PyG's layers, or that of `torch.nn.Linear`."""
        _, fan_in, fan_out = self.weight.shape
        bound = math.sqrt(6 / (fan_in + fan_out)) if self.glorot else 1 / math.sqrt(max(fan_in, 1))
        with torch.no_grad():
            self.weight.copy_(rng.uniform(self.weight.shape[1:], -bound, bound))
            if self.bias is not None and self.glorot:
                self.bias.zero_()
            elif self.bias is not None:
                self.bias.copy_(rng.uniform((1, fan_out), -bound, bound))

    def forward(self, x: Features) -> Tensor:
        """[R, N, in], [N, in] or sparse features → [R, N, out]."""
        product = linear_sum([(x, self.weight)])
        return product if self.bias is None else add_bias(product, self.bias.to(product.dtype))


class Norm(ReplicaModule):
    """Base class of norms: every channel has a scale and a shift."""

    def __init__(self, replicas: int, channels: int) -> None:
        super().__init__()
        self.weight = parameter(replicas, 1, channels)
        self.bias = parameter(replicas, 1, channels)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set scale to 1 and shift to 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)


class LayerNorm(Norm):
    """Normalization over the channels of each node."""

    def forward(self, x: Tensor) -> Tensor:
        """[R, N, D] → [R, N, D]."""
        return torch.addcmul(self.bias, F.layer_norm(x, x.shape[-1:], eps=EPSILON), self.weight)


class BatchNorm(Norm):
    """Normalization over the nodes for each channel, with running statistics for evaluation."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, replicas: int, channels: int) -> None:
        super().__init__(replicas, channels)
        self.register_buffer("running_mean", torch.empty(replicas, 1, channels))
        self.register_buffer("running_var", torch.empty(replicas, 1, channels))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set scale and running variance to 1, shift and running mean to 0."""
        super().init_own_parameters(rng)
        self.running_mean.zero_()
        self.running_var.fill_(1)

    def forward(self, x: Tensor) -> Tensor:
        """[R, N, D] → [R, N, D]."""
        x = x.to(self.weight.dtype)  # under autocast x has 16 bits, too few for sums over all nodes
        if not self.training:
            scale = self.weight * (self.running_var + EPSILON).rsqrt()
            return torch.addcmul(self.bias - self.running_mean * scale, x, scale)
        var, mean = torch.var_mean(x.detach(), dim=1, keepdim=True, correction=0)
        self.track(mean, var, x.shape[1])
        normal: Tensor = _Standardize.apply(x, mean, (var + EPSILON).rsqrt())  # type: ignore[no-untyped-call]
        return torch.addcmul(self.bias, normal, self.weight)

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, nodes: int) -> None:
        """Update the running statistics with the mean and the biased variance of one pass."""
        self.running_mean.lerp_(mean, MOMENTUM)
        self.running_var.lerp_(var * (nodes / max(nodes - 1, 1)), MOMENTUM)


class _Standardize(torch.autograd.Function):
    """(x − mean) · rstd with the gradient of batch norm in half the passes that autograd needs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
        normal = torch.addcmul(-mean * rstd, x, rstd)
        ctx.save_for_backward(normal, rstd)
        return normal

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        normal, rstd = ctx.saved_tensors
        along_one = grad.mean(1, keepdim=True)
        along_normal = (grad * normal).mean(1, keepdim=True)
        return torch.addcmul(-rstd * along_one, grad, rstd).addcmul_(normal, -rstd * along_normal), None, None


class NoNorm(nn.Identity, ReplicaModule):
    """No normalization."""


NORMS: dict[str, type[ReplicaModule]] = {"layer": LayerNorm, "batch": BatchNorm, "none": NoNorm}


def make_norm(name: str, replicas: int, channels: int) -> ReplicaModule:
    """Create the norm called `layer`, `batch` or `none`."""
    if name not in NORMS:
        raise unknown_name("norm", name, NORMS)
    return NORMS[name](replicas, channels)


def activate(x: Tensor, bias: Tensor, norm: nn.Module, probability: float, rng: ReplicaRNG) -> Tensor:
    """dropout(relu(norm(x + bias))) for x [R, N, D], in one pass on a GPU; no dropout in evaluation."""
    probability = probability if norm.training else 0.0
    kernels = gpu_kernels(x.device, "nn.kernels.norm")
    # The fused gradient of batch norm is that of training; in evaluation, where it is rare, autograd computes it.
    wanted = torch.is_grad_enabled() and (x.requires_grad or bias.requires_grad)
    if kernels is None or (isinstance(norm, BatchNorm) and not norm.training and wanted):
        return relu_dropout(norm(x + bias.to(x.dtype)), probability, rng)
    weight, shift = (norm.weight, norm.bias) if isinstance(norm, Norm) else (None, None)
    kind, mean, rstd = "layer" if isinstance(norm, Norm) else "none", None, None
    if isinstance(norm, BatchNorm):
        kind, mean, var = "batch", norm.running_mean - bias.detach(), norm.running_var
        if norm.training:
            mean, var = kernels.batch_moments(x.detach())
            norm.track(mean + bias.detach(), var, x.shape[1])
        rstd = (var + EPSILON).rsqrt()
    call = rng.next_call() if probability else rng.seeds
    affine, random = (weight, shift, mean, rstd), (probability, rng.seeds, call)
    out: Tensor = kernels.norm_relu_dropout(x, bias, *affine, kind, EPSILON, *random)
    return out


def relu_dropout(x: Tensor, probability: float, rng: ReplicaRNG) -> Tensor:
    """dropout(relu(x)) for x [R, ...]; on a CPU in fewer passes, of which autograd keeps the result alone."""
    if probability == 0 or x.is_cuda:
        return dropout(torch.relu(x), probability, rng)
    out: Tensor = _ReluDropout.apply(x, *_factors(x, probability, rng))  # type: ignore[no-untyped-call]
    return out


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factors: Tensor, scale: float) -> Tensor:
        out = torch.relu(x).mul_(factors)
        ctx.scale = scale
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        # The gradient passes where the result is above 0: where x is, and the mask is 1.
        return torch.ops.aten.threshold_backward(grad, out, 0).mul_(ctx.scale), None, None


def dropout(x: Tensor, probability: float, rng: ReplicaRNG) -> Tensor:
    """Zero entries of x [R, ...] with `probability`, each replica from its own stream, and scale the others."""
    if probability == 0:
        return x
    if kernels := gpu_kernels(x.device, "nn.kernels.replica"):
        out: Tensor = kernels.fused_dropout(x, probability, rng.seeds, rng.next_call())
        return out
    return x * _factors(x, probability, rng)[0]


def _factors(x: Tensor, probability: float, rng: ReplicaRNG) -> tuple[Tensor, float]:
    """Factors of the entries of x, which are 0 or a scale, and the scale."""
    mask, kept = rng.bernoulli(x.shape[1:], 1 - probability)
    scale = 1 / kept if kept else 0.0
    return mask.to(x.dtype).mul_(scale), scale


def dropout_features(x: Features, probability: float, rng: ReplicaRNG) -> Features:
    """Dropout of features [N, F] that all replicas share, or of [R, N, F]; each replica drops its own entries."""
    if probability == 0:
        return x
    if isinstance(x, SparseFeatures):
        return SparseFeatures(x.layout, dropout(x.values.expand(len(rng), -1), probability, rng))
    return dropout(x if x.dim() == 3 else x.expand(len(rng), *x.shape), probability, rng)


def cross_entropy(logits: Tensor, y: Tensor, mask: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean cross-entropy, weighted on demand, over the nodes of each replica's mask: [R, N, C], [N], [R, N] → [R]."""
    labels = y.clamp(min=0).expand(logits.shape[:2])  # no mask contains an unlabelled node
    each = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    counted = mask if weight is None else mask * weight
    return total(each * counted) / total(counted)


def check_finite(model: nn.Module) -> None:
    """Raise a `UserError` if a parameter or a buffer of a model is not finite: its results would mean nothing."""
    for name, value in model.state_dict().items():
        if isinstance(value, Tensor) and value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise UserError(
                f"{name} of this model has values that are NaN or infinite, so that its results mean nothing: its"
                " training diverged, so train it again with a smaller learning rate"
            )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put `model` in evaluation mode, and restore the mode of each of its modules afterwards, also after an error."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
