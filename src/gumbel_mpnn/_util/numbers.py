"""Numbers for JSON and for readers."""

from __future__ import annotations

import math


def none_if_nan(value: float) -> float | None:
    """Return the value, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as "1 run" or "2 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(count: float) -> str:
    """Bytes in words, such as 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if count < 1024 or unit == "PiB":
            break
        count /= 1024
    return f"{count:,.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"


def duration(seconds: float) -> str:
    """Seconds in words, such as 12 ms or 3.5 h."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= length * (2 if unit != "s" else 1):
            return f"{seconds / length:,.3g} {unit}" if seconds < 1000 * length else f"{seconds / length:,.0f} {unit}"
    return f"{1000 * seconds:.3g} ms"
