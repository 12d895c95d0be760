"""Training curves of finished runs, read from their folders."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.runs.query import HISTORY, Record
from gumbel_mpnn.runs.store import SettingFolder

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("split", "seed", "epoch", "train_loss", "val", "val_loss")


def read_history(folder: SettingFolder, records: Sequence[Record]) -> DataFrame:
    """Read the curves of all runs, one row for each run and evaluated epoch.

    Runs without a file are left out with a `DataWarning`; if no run has one, a `DataError` is raised.
    """
    from pandas import DataFrame

    rows, missing = list[dict[str, Any]](), list[Record]()
    for record in records:
        curve = folder.history(record.replica)
        if curve is None:
            missing.append(record)
        else:
            rows += [{"split": record.split, "seed": record.seed, **row} for row in curve]
    if missing:
        path = folder.folder(missing[0].replica) / HISTORY
        what = f"the training curves of {len(missing)} of {len(records)} runs are missing: there is no {path}"
        if len(missing) == len(records):
            raise DataError(f"{what}; give fit a folder with runs=, and delete the folders of runs to train them again")
        warnings.warn(f"{what}; delete such folders to train the runs again", DataWarning, stacklevel=3)
    return DataFrame(rows, columns=list(COLUMNS))
