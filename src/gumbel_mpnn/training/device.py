"""Which device to train on."""

from __future__ import annotations

import torch

from gumbel_mpnn._util.errors import UserError


def pick_device(name: str) -> torch.device:
    """The device called `name`; `auto` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"there is no device {name!r}: use 'auto', 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"the device {name!r} is not supported: use 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError("there is no CUDA device here: use device 'cpu' or 'auto'")
    return device
