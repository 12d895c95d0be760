"""Adam, by torch's functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

STATE = ("step", "exp_avg", "exp_avg_sq")


class Adam:
    """Compute the same as `torch.optim.Adam`, whose class imports torch's compiler: a second before the first step."""

    def __init__(self, groups: Sequence[Mapping[str, Any]]) -> None:
        self.groups = groups
        self.params: list[Tensor] = [param for group in groups for param in group["params"]]
        self.on_gpu = self.params[0].is_cuda
        device = self.params[0].device  # that of the steps too, since a captured step counts on the GPU
        self.state = {
            param: {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(param, requires_grad=False),
                "exp_avg_sq": torch.zeros_like(param, requires_grad=False),
            }
            for param in self.params
        }

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for param in self.params:
            param.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change all parameters that have gradients."""
        for group in self.groups:
            params = [param for param in group["params"] if param.grad is not None]
            steps, means, squares = ([self.state[param][name] for param in params] for name in STATE)
            adam(
                params,
                [param.grad for param in params if param.grad is not None],
                means,
                squares,
                [],
                steps,
                fused=self.on_gpu,
                foreach=not self.on_gpu,
                capturable=self.on_gpu,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=1e-8,
                maximize=False,
            )

    def tensors(self) -> dict[str, Tensor]:
        """State by the number of the parameter and by name, such as `0/exp_avg`."""
        return {f"{k}/{name}": self.state[param][name] for k, param in enumerate(self.params) for name in STATE}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from `tensors` of an optimizer with the same parameters."""
        for key, value in self.tensors().items():
            if key in tensors:  # torch's own class stores no state for a parameter without a gradient
                value.copy_(tensors[key])
