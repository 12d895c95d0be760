"""What the name of a file ends in, where that chooses its format."""

from __future__ import annotations

from pathlib import Path


def suffix_of(path: str | Path) -> str:
    """The suffix in lower case: `.npz` of `graph.NPZ`."""
    return Path(path).suffix.lower()
