"""Which kernels the layers run on."""

from __future__ import annotations

from types import ModuleType

import torch

from gumbel_mpnn.graph.kernels import import_kernels


def gpu_kernels(device: torch.device) -> ModuleType | None:
    """The kernels of this room where `device` is a GPU that Triton serves; None where torch must do."""
    return import_kernels("gumbel_mpnn.nn.kernels.gpu") if device.type == "cuda" else None
