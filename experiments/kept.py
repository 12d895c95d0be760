"""Results taken from trained models, kept beside the runs so that models can be deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from gumbel_mpnn.runs import Run
from gumbel_mpnn.util import write_atomically


def kept(run: Run, name: str, make: Callable[[], Any]) -> Any:
    """Return the result of `make`, plain JSON values, which is computed once for these runs and kept under `name`."""
    path = _file(run, name)
    if (found := _read(path)) is not None:
        return found
    text = json.dumps(make())
    write_atomically(path, text.encode())
    return json.loads(text)


def _file(run: Run, name: str) -> Path:
    of_these = sha256(repr(run.records).encode()).hexdigest()[:16]
    return Path(run.folders[0]).parent / f"{name}-{of_these}.json"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):  # missing or damaged
        return None
