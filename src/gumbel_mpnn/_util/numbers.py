"""Numbers that are not defined."""

from __future__ import annotations

import math


def none_if_nan(value: float) -> float | None:
    """Return the value, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value
