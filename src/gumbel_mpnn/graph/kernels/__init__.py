"""Which kernels run: our own on a GPU that Triton serves, else torch's."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor


def gpu_kernels(x: Tensor) -> ModuleType | None:
    """Our own sparse products where `x` lies on a GPU that Triton serves; None where torch's must do."""
    return import_kernels("gumbel_mpnn.graph.kernels.products") if x.is_cuda else None


def attention_kernels(x: Tensor) -> ModuleType | None:
    """The same for attention, in plain 32 bits alone."""
    wanted = x.is_cuda and x.dtype == torch.float32
    return import_kernels("gumbel_mpnn.graph.kernels.attention") if wanted else None


@cache
def import_kernels(module: str) -> ModuleType | None:
    """A module of kernels, or None where Triton is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None
