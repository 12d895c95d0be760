"""Runs that train on every labelled node, once settings and number of epochs were found by other runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import Settings
from gumbel_mpnn.config.files import merge, parse_overrides
from gumbel_mpnn.data.splits import ALL
from gumbel_mpnn.runs.query import Record
from gumbel_mpnn.runs.reader import Transform
from gumbel_mpnn.runs.spec import RunSpec


def final_spec(
    dataset: str | Data | Callable[[bool], str | Data],
    records: Sequence[Record],
    *,
    seeds: int | Iterable[int] = 1,
    overrides: Iterable[str] = (),
    transform: Transform | None = None,
    root: str | Path | None = None,
) -> RunSpec:
    """Describe runs on all labelled nodes that are like finished runs, to be trained by `fit_any`.

    They have the settings of these runs, but no validation and no test nodes (`data.protocol` is `all`). They train as
    many epochs as the median of the best epochs of these runs, and keep the model of the last.

    Args:
        dataset: Name of a data set, a graph, or a function that reads one, as in `RunSpec.of`.
        records: Records of finished runs of one setting, such as `run.records`.
        seeds: Number of models, or their seeds.
        overrides: Other settings, such as `["model.dropout=0.7", ...]`.
        transform: Applied to the data after reading and splitting.
        root: Folder with the files of the data sets.
    """
    if len({record.fingerprint for record in records}) != 1:
        raise UserError("the number of epochs is taken from finished runs of one setting: give the folder of one")
    settings = Settings.from_dict(records[0].settings)
    tables = settings.to_dict()
    given: dict[str, Any] = {name: table for name, table in tables.items() if name in ("data", "train", "rewiring")}
    given["model"] = dict(settings.options)
    epochs = max(1, round(median(record.best_epoch for record in records)))
    last: dict[str, dict[str, Any]] = {
        "data": {"protocol": ALL},
        "train": {"select": "last", "patience": 0, "epochs": epochs},
    }
    changed = parse_overrides(overrides)
    for table, values in last.items():
        for name in values.keys() & changed.get(table, {}).keys():
            raise UserError(f"{table}.{name} follows from the finished runs: leave it out")
    return RunSpec.of(
        dataset,
        settings.model,
        seeds=seeds,
        preset=None,
        settings=merge(given, changed, last),
        transform=transform,
        root=root,
    )
