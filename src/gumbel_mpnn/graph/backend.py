"""Which kernels the sparse products run on."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor


def gpu_kernels(x: Tensor) -> ModuleType | None:
    """Our own sparse products where `x` lies on a GPU that Triton serves; None where torch's must do."""
    return _import("triton_kernels") if x.is_cuda else None


def attention_kernels(x: Tensor) -> ModuleType | None:
    """The same for attention, in plain 32 bits alone."""
    return _import("triton_attention") if x.is_cuda and x.dtype == torch.float32 else None


@cache
def _import(name: str) -> ModuleType | None:
    try:
        return import_module(f"gumbel_mpnn.graph.{name}")
    except ImportError:
        return None
