"""Whether there is room for the parameters of a model, before they are allocated."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import torch
from torch import nn

from gumbel_mpnn._util.errors import TooLargeError

BYTES_OF_A_PARAMETER = 4


def build_in_room(module: nn.Module, add: Callable[[], None]) -> None:
    """Call `add`, which adds submodules to `module`, unless their parameters exceed the whole memory of the device.

    They are added on the meta device first, where tensors have a shape and no memory. A submodule of the user that
    needs real tensors is not checked.
    """
    device = torch.get_default_device()
    if device.type != "meta":
        with torch.device("meta"):
            _try(add)
        count = sum(parameter.numel() for parameter in module.parameters())
        need, has = BYTES_OF_A_PARAMETER * count, total_bytes(device)
        if need > has:
            raise TooLargeError(
                f"a model of {count:,} parameters takes {need / 2**30:,.0f} GiB, but {device} has"
                f" {has / 2**30:,.0f} GiB of memory: {ADVICE}"
            )
    add()


def _try(add: Callable[[], None]) -> None:
    try:
        add()
    except RuntimeError as error:  # real tensors are needed, or a size has more than 64 bits
        if "overflow" in str(error):
            raise TooLargeError(f"64 bits cannot express the size of this model: {ADVICE}") from None


ADVICE = "try fewer channels or features"


def total_bytes(device: torch.device) -> int:
    """Memory of a device, free or not; on Windows, where it is not known for a CPU, no model is too large."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if not hasattr(os, "sysconf"):
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
