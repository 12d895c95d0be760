"""Which kernels the sparse products run on."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from torch import Tensor


def gpu_kernels(x: Tensor) -> ModuleType | None:
    """Our own kernels where `x` lies on a GPU that Triton serves; None where torch's products must do."""
    return _import_kernels() if x.is_cuda else None


@cache
def _import_kernels() -> ModuleType | None:
    try:
        from gumbel_mpnn.graph import triton_kernels
    except ImportError:
        return None
    return triton_kernels
