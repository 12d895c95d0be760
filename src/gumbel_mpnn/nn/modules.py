"""Linear layers, norms and the loss with a leading replica axis; every parameter is [R, ...]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gumbel_mpnn._util.errors import UserError, unknown_name
from gumbel_mpnn._util.no_double_backward import first_order
from gumbel_mpnn.nn.each_replica import add_bias, total
from gumbel_mpnn.nn.fused_linear import Inputs, linear_sum
from gumbel_mpnn.nn.replica_rng import ReplicaRNG


class ReplicaModule(nn.Module):
    """A module whose parameters have a leading replica axis; each replica is initialized from its own random stream."""

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Initialize the parameters of this module, without those of its submodules."""

    def init_parameters(self, rng: ReplicaRNG) -> None:
        """Initialize the parameters of this module and of all submodules, in order."""
        for module in self.modules():
            if isinstance(module, ReplicaModule):
                module.init_own_parameters(rng)


class Linear(ReplicaModule):
    """x W + b for every replica; the input is [R, N, in], or [N, in] if all replicas share it."""

    def __init__(
        self, replicas: int, in_channels: int, out_channels: int, *, bias: bool = True, glorot: bool = False
    ) -> None:
        super().__init__()
        self.glorot = glorot
        self.weight = nn.Parameter(torch.empty(replicas, in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(replicas, 1, out_channels)) if bias else None

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

    def forward(self, x: Inputs) -> Tensor:
        """[R, N, in], [N, in] or sparse features → [R, N, out]."""
        product = linear_sum([(x, self.weight)])
        return product if self.bias is None else add_bias(product, self.bias.to(product.dtype))


class LayerNorm(ReplicaModule):
    """Normalization over the channels of each node."""

    def __init__(self, replicas: int, channels: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(replicas, 1, channels))
        self.bias = nn.Parameter(torch.empty(replicas, 1, channels))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set scale to 1 and shift to 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[R, N, D] → [R, N, D]."""
        return torch.addcmul(self.bias, F.layer_norm(x, x.shape[-1:], eps=self.eps), self.weight)


class BatchNorm(ReplicaModule):
    """Normalization over the nodes for each channel, with running statistics for evaluation."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, replicas: int, channels: int, *, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.empty(replicas, 1, channels))
        self.bias = nn.Parameter(torch.empty(replicas, 1, channels))
        self.register_buffer("running_mean", torch.empty(replicas, 1, channels))
        self.register_buffer("running_var", torch.empty(replicas, 1, channels))

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set scale to 1 and shift to 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        self.running_mean.zero_()
        self.running_var.fill_(1)

    def forward(self, x: Tensor) -> Tensor:
        """[R, N, D] → [R, N, D]."""
        x = x.to(self.weight.dtype)  # under autocast x has 16 bits, too few for sums over all nodes
        if not self.training:
            scale = self.weight * (self.running_var + self.eps).rsqrt()
            return torch.addcmul(self.bias - self.running_mean * scale, x, scale)
        var, mean = torch.var_mean(x.detach(), dim=1, keepdim=True, correction=0)
        self.track(mean, var, x.shape[1])
        normal: Tensor = _Standardize.apply(x, mean, (var + self.eps).rsqrt())  # type: ignore[no-untyped-call]
        return torch.addcmul(self.bias, normal, self.weight)

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, nodes: int) -> None:
        """Update the running statistics with the mean and the biased variance of one pass."""
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(var * (nodes / max(nodes - 1, 1)), self.momentum)


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


class Identity(ReplicaModule):
    """No normalization."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x."""
        return x


def make_norm(name: str, replicas: int, channels: int) -> ReplicaModule:
    """Create the norm called `layer`, `batch` or `none`."""
    match name:
        case "layer":
            return LayerNorm(replicas, channels)
        case "batch":
            return BatchNorm(replicas, channels)
        case "none":
            return Identity()
    raise unknown_name("norm", name, ["layer", "batch", "none"])


def cross_entropy(logits: Tensor, y: Tensor, mask: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean cross-entropy over the nodes in each replica's mask: [R, N, C], [N], [R, N] → [R].

    With a `weight` of every node, [R, N], it is the weighted mean.
    """
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
