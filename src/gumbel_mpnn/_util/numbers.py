"""Numbers that are not defined."""

from __future__ import annotations

import math


def none_if_nan(value: float) -> float | None:
    """Return the value, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as "1 run" or "2 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
