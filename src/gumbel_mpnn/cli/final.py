"""What `train --final` checks and reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.cli.finished_runs import folder_of

if TYPE_CHECKING:
    from gumbel_mpnn.runs.query import Record


def check_final(overrides: Iterable[str] | None) -> None:
    """Raise a `UserError` if the split protocol is set, too."""
    from gumbel_mpnn.config.files import parse_overrides

    if "protocol" in parse_overrides(overrides or ()).get("data", {}):
        raise UserError("--final chooses the split protocol: leave out data.protocol")


def check_like_runs(final: bool, splits: str | None, preset: str) -> None:
    """Raise a `UserError` for options that have no effect with --epochs-from."""
    if not final:
        raise UserError("--epochs-from is for --final: add --final")
    if splits is not None:
        raise UserError("--epochs-from trains on every labelled node, in a single split: leave out --splits")
    if preset != "tuned":
        raise UserError("--epochs-from takes all settings from finished runs: leave out --preset")


def records_of(run: str, runs: Path, model: str | None) -> list[Record]:
    """Read the finished runs called `run`, which must be of the model that the user names, if any."""
    from gumbel_mpnn.nn import models
    from gumbel_mpnn.runs.query import find_records

    folder = folder_of(run, runs)
    records = list(find_records(folder))
    if not records:
        raise UserError(f"there are no finished runs in {folder}: give a folder that `gumbel-mpnn runs` lists")
    found = records[0].settings["model"]["name"]
    if model is not None and (model not in models or models.canonical(model) != found):
        raise UserError(f"the runs in {folder} are of model {found!r}, not {model!r}: leave out --model")
    return records
