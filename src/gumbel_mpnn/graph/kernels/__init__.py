"""Triton kernels of the sparse products, imported only where there is a GPU that runs them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

import torch


def gpu_kernels(device: torch.device, module: str) -> ModuleType | None:
    """A module of kernels, as `graph.kernels.products`, or None unless `device` is a GPU and Triton is installed."""
    return _imported(f"gumbel_mpnn.{module}") if device.type == "cuda" else None


@cache
def _imported(module: str) -> ModuleType | None:
    try:
        return import_module(module)
    except ImportError:
        return None
