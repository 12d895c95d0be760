"""Triton kernels of the sparse products, imported only where there is a GPU that runs them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor


def gpu_kernels(x: Tensor) -> ModuleType | None:
    """The module of sparse products if `x` is on a GPU and Triton is installed, else None."""
    return import_kernels("gumbel_mpnn.graph.kernels.products") if x.is_cuda else None


def attention_kernels(x: Tensor) -> ModuleType | None:
    """The module of attention kernels if `x` is a float32 tensor on a GPU and Triton is installed, else None."""
    wanted = x.is_cuda and x.dtype == torch.float32
    return import_kernels("gumbel_mpnn.graph.kernels.attention") if wanted else None


@cache
def import_kernels(module: str) -> ModuleType | None:
    """Import a module of kernels; None if Triton is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None
