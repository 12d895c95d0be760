"""Whether `torchrun` has started this process as one of several."""

from __future__ import annotations

import os


def is_launched() -> bool:
    """Whether this is one of several processes that `torchrun` has started."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def is_first() -> bool:
    """Whether this process is the only one, or the one that speaks for all."""
    return not is_launched() or os.environ.get("RANK") == "0"
