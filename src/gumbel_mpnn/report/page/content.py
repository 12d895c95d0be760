"""All that a page shows of runs, as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.numbers import counted, none_if_nan
from gumbel_mpnn._version import __version__
from gumbel_mpnn.data.names import class_names_of
from gumbel_mpnn.report.page.comparison import compared, name_of
from gumbel_mpnn.report.page.explorer import AUDITED, check_nodes, explorers
from gumbel_mpnn.report.page.pairs import Pairs, pairs_of
from gumbel_mpnn.report.page.structure import MOST_CLASSES, structure_of
from gumbel_mpnn.report.table import METRIC_NAMES
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.audit import Audit

MOST_CURVES = 20
MOST_POINTS = 150
AUDIT_COLUMNS = ("evidence", "probability", "agreement", "similarity", "common_neighbors")


def page_content(runs: Sequence[Run], around: Sequence[str] = ()) -> dict[str, Any]:
    """Content of the page of runs; a part that cannot be made has the reason in place of its values."""
    check_nodes(runs, around)
    found = [_attempt(Run.audit, run) for run in runs]
    audits = [None if isinstance(each, dict) else each for each in found]
    pairs = [_attempt(_pairs, run) for run in runs]
    graphs, explored = explorers(runs, pairs, audits, around)
    parts = []
    for run, name, known, audit, shown in zip(runs, _names(runs), pairs, found, explored, strict=True):
        parts.append(
            {
                "name": name,
                "about": _about(run),
                "table": _attempt(compared, run),
                "curves": _attempt(_curves, run),
                "confusion": _attempt(_confusion, run),
                "choice": None if run.choice is None else {**run.choice.to_dict(), "sentence": run.choice.sentence()},
                "structure": known if isinstance(known, dict) else _attempt(partial(structure_of, pairs=known), run),
                "audit": audit if isinstance(audit, dict) else _audited(audit),
                "explorer": shown,
            }
        )
    data = list(dict.fromkeys(run.settings.dataset for run in runs))
    return {"title": f"Rewiring report: {', '.join(data)}", "version": __version__, "runs": parts, "graphs": graphs}


def _attempt(make: Callable[[Run], Any], run: Run) -> Any:
    """What `make` returns or, if data or models are missing, the sentence that says so."""
    try:
        return make(run)
    except UserError as error:
        return {"missing": str(error)}


def _pairs(run: Run) -> Pairs:
    _ = run.data  # pairs can be read without it, labels and features not
    return pairs_of(run)


def _names(runs: Sequence[Run]) -> list[str]:
    """Names of the runs, with their data set or fingerprint where they would be the same without."""
    several = len({run.settings.dataset for run in runs}) > 1
    names = [f"{name_of(run)} on {run.settings.dataset}" if several else name_of(run) for run in runs]
    return [
        f"{name} {run.records[0].fingerprint[:6]}" if names.count(name) > 1 else name
        for name, run in zip(names, runs, strict=True)
    ]


def _about(run: Run) -> dict[str, Any]:
    splits, seeds = {record.split for record in run.records}, {record.seed for record in run.records}
    return {
        "dataset": run.settings.dataset,
        "model": run.settings.model,
        "fingerprint": run.records[0].fingerprint,
        "metric": METRIC_NAMES.get(run.metric, run.metric).removesuffix(" %"),
        "runs": f"{counted(run.n, 'run')} ({counted(len(splits), 'split')}, {counted(len(seeds), 'seed')})",
        "rewires": run.rewires,
    }


def _curves(run: Run) -> dict[str, Any]:
    """Validation metric of each run with its chosen epoch, and mean losses; thinned out."""
    history = run.history
    curves = []
    for record in run.records[:MOST_CURVES]:
        own = history[(history["split"] == record.split) & (history["seed"] == record.seed)]
        rows = own.iloc[_thinned(len(own))]
        if len(rows) and rows["val"].notna().all():
            curves.append(
                {
                    "name": f"split {record.split}, seed {record.seed}",
                    "epoch": rows["epoch"].tolist(),
                    "val": _rounded(rows["val"], 5),
                    "chosen": [record.best_epoch, record.val],
                }
            )
    by_epoch = history.pivot_table(index="epoch", columns=["split", "seed"], values=["train_loss", "val_loss"]).dropna()
    rows = by_epoch.iloc[_thinned(len(by_epoch))]
    losses = {name: _rounded(rows[name].mean(axis=1), 5) for name in ("train_loss", "val_loss") if name in rows.columns}
    return {"curves": curves, "loss_epoch": rows.index.tolist(), "losses": losses, "runs": run.n}


def _thinned(length: int) -> list[int]:
    """At most `MOST_POINTS` places, with the first and the last."""
    return sorted(set(np.linspace(0, max(length - 1, 0), min(length, MOST_POINTS)).round().astype(int).tolist()))


def _confusion(run: Run) -> dict[str, Any]:
    counts = run.confusion_matrix()
    if len(counts) > MOST_CLASSES:
        raise UserError(f"there are {len(counts)} classes, and only up to {MOST_CLASSES} are shown as a matrix")
    if not bool(counts.any()):
        raise UserError("these runs have no test nodes")
    names = class_names_of(run.data) or range(len(counts))
    return {"classes": [str(name) for name in names][: len(counts)], "counts": counts.tolist()}


def _audited(audit: Audit) -> dict[str, Any]:
    """The first edges and missing pairs; ends are the names of nodes, as the explorer finds them."""
    columns = ("source", "target", "source_class", "target_class", "source_known", "target_known", *AUDIT_COLUMNS)
    tables = audit.to_dict(AUDITED)
    suspicious, absent = (
        [{name: _plain(row[name]) for name in columns} for row in tables[kind]] for kind in ("edges", "missing")
    )
    return {"suspicious": suspicious, "absent": absent, "weights": audit.weights, "pairs": len(audit.edges)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return value if value is None or isinstance(value, bool | int) else str(value)


def _rounded(values: Any, digits: int) -> list[float | None]:
    return [none_if_nan(round(float(value), digits)) for value in values]
