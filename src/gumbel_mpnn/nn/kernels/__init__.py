"""Triton kernels of the layers, imported only where there is a GPU that runs them."""

from __future__ import annotations

from types import ModuleType
from typing import Literal

import torch

from gumbel_mpnn.graph.kernels import import_kernels


def gpu_kernels(device: torch.device, module: Literal["norm", "replica"]) -> ModuleType | None:
    """A module of this package if `device` is a GPU and Triton is installed, else None."""
    return import_kernels(f"gumbel_mpnn.nn.kernels.{module}") if device.type == "cuda" else None
