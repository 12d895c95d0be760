"""All that a page shows of runs, as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from gumbel_mpnn._version import __version__
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.report.page.explorer import AUDITED, check_nodes, explorers
from gumbel_mpnn.report.page.structure import MOST_CLASSES, structure_of
from gumbel_mpnn.report.pairs import pairs_of
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.report.table import METRIC_NAMES
from gumbel_mpnn.runs.audit import Audit
from gumbel_mpnn.runs.choice import read_choices
from gumbel_mpnn.runs.compare import compare, mean_interval
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import TRIALS, Record, Summary, find_records
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import none_if_nan

CONTROL = "frozen"
MOST_CURVES = 20
MOST_POINTS = 150
AUDIT_COLUMNS = (
    *("source", "target", "source_class", "target_class", "source_known", "target_known"),
    *("evidence", "probability", "agreement", "similarity", "common_neighbors"),
)
Records = list[Record]
Setting = tuple[Path, Records]
"""The folder of a setting and its runs."""


def page_content(runs: Sequence[Run], around: Sequence[str] = ()) -> dict[str, Any]:
    """Content of the page of runs; a part that cannot be made has the reason in place of its values."""
    check_nodes(runs, around)
    audits = [_attempt(Run.audit, run) for run in runs]
    pairs = [_attempt(pairs_of, run) for run in runs]
    graphs, explored = explorers(runs, pairs, [None if isinstance(each, dict) else each for each in audits], around)
    parts = [
        {
            "name": name,
            "about": _about(run),
            "table": _attempt(_comparison, run),
            "curves": _attempt(_curves, run),
            "confusion": _attempt(_confusion, run),
            "choice": None if run.choice is None else {**run.choice.to_dict(), "sentence": run.choice.sentence()},
            "structure": known if isinstance(known, dict) else _attempt(partial(structure_of, pairs=known), run),
            "audit": audit if isinstance(audit, dict) else _audited(audit),
            "explorer": shown,
        }
        for run, name, known, audit, shown in zip(runs, _names(runs), pairs, audits, explored, strict=True)
    ]
    data = list(dict.fromkeys(run.settings.dataset for run in runs))
    return {"title": f"Rewiring report: {', '.join(data)}", "version": __version__, "runs": parts, "graphs": graphs}


def _attempt(make: Callable[[Run], Any], run: Run) -> Any:
    """What `make` returns or, if data or models are missing, the sentence that says so."""
    try:
        return make(run)
    except UserError as error:
        return {"missing": str(error)}


def _name(run: Run) -> str:
    """Name of the model, or `auto` with the rung that it chose."""
    if run.choice is not None:
        return f"{run.choice.title.capitalize()}: {run.choice.chosen}"
    return MODEL_NAMES.get(run.settings.model, run.settings.model)


def _names(runs: Sequence[Run]) -> list[str]:
    """Names of the runs, with their data set or fingerprint where they would be the same without."""
    several = len({run.settings.dataset for run in runs}) > 1
    names = [f"{_name(run)} on {run.settings.dataset}" if several else _name(run) for run in runs]
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


def _comparison(run: Run) -> dict[str, Any]:
    """The run, its backbone, the best plain model and the control whose edges are not learned.

    Those are taken from the same folder of runs, if they have the data, splits and seeds of the run: of several
    settings of a model, the one with the best validation value. `absent` are the others.
    """
    settings = list(_settings_beside(run))
    wanted = {}
    if run.rewires and "backbone" in run.settings.options:
        wanted["its backbone"] = _best(settings, [run.settings.options["backbone"]])
    plain = _best(settings, backbones)
    if plain is None or plain[0].fingerprint != run.records[0].fingerprint:
        wanted["best plain model"] = plain
    learned = run.settings.model if run.choice is None else run.choice.learned
    if learned != CONTROL and (run.choice is not None or run.settings.rewiring is not None):
        wanted["control, edges not learned"] = _control(run, settings)
    roles: dict[str, tuple[str, Records]] = {}
    for role, found in wanted.items():
        if found is not None:  # the backbone may be the best plain model too
            key = found[0].fingerprint
            roles[key] = (f"{roles[key][0]}, {role}" if key in roles else role, found)
    rows = [_row("this run", _name(run), run.records, None)]
    for role, found in roles.values():
        model = found[0].settings["model"]["name"]
        rows.append(_row(role, MODEL_NAMES.get(model, model), found, run.records))
    return {"rows": rows, "absent": [role for role, found in wanted.items() if found is None]}


def _settings_beside(run: Run) -> Iterator[Setting]:
    """Settings in the same folder of runs that have the data, splits and seeds of a run."""
    path, first = run.folder.path, run.records[0]
    if (path.parents[1].name, path.parent.name) != (run.settings.dataset, run.settings.model):
        return  # the folder was moved
    for other in sorted(path.parents[3].glob(f"*/{escape(run.settings.dataset)}/*/*")):
        if other.parents[2].name != TRIALS:
            records = {record.replica: record for record in find_records(other) if record.data_hash == first.data_hash}
            if all(record.replica in records for record in run.records):
                yield other, [records[record.replica] for record in run.records]


def _best(settings: Sequence[Setting], models: Iterable[str]) -> Records | None:
    names = set(models)
    found = [records for _, records in settings if records[0].settings["model"]["name"] in names]
    return max(found, key=lambda records: Summary.of(record.val for record in records).mean, default=None)


def _control(run: Run, settings: Sequence[Setting]) -> Records | None:
    """Runs whose edges are not learned: of a ladder like that of the run, or of the model with the same settings."""

    def without_name(record: Record) -> dict[str, Any]:
        return {**record.settings, "model": {**record.settings["model"], "name": None}}

    for path, records in settings:
        first = records[0]
        if run.choice is None:
            if first.settings["model"]["name"] == CONTROL and without_name(first) == without_name(run.records[0]):
                return records
        elif first.settings["data"]["features"] == run.settings.data.features:
            names = {str(record.replica) for record in records}
            for choice in read_choices(path):
                if (choice.learned, choice.wary) == (CONTROL, run.choice.wary) and names <= set(choice.runs):
                    return records
    return None


def _row(role: str, name: str, records: Sequence[Record], reference: Sequence[Record] | None) -> dict[str, Any]:
    """Test and validation metric with a 95 % interval, and the difference of the run to this row."""
    interval, over = mean_interval(records)
    row: dict[str, Any] = {
        "role": role,
        "name": name,
        "runs": len(records),
        "test": Summary.of(record.test for record in records).to_dict()["mean"],
        "interval": interval,
        "over": over,
        "values": [record.test for record in records if record.test is not None],
        "val": Summary.of(record.val for record in records).to_dict()["mean"],
        "gain": None,
    }
    if reference is not None and row["values"]:
        paired = compare(reference, records)
        row["gain"] = {
            "mean": paired.mean,
            "interval": None if paired.low is None else [paired.low, paired.high],
            "over": paired.over,
            "outcome": paired.outcome,
            "verdict": paired.verdict,
        }
    return row


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
    names = run.data.get("class_names") or range(len(counts))
    return {"classes": [str(name) for name in names][: len(counts)], "counts": counts.tolist()}


def _audited(audit: Audit) -> dict[str, Any]:
    """The first edges and missing pairs; ends are the names of nodes, as the explorer finds them."""
    tables = audit.to_dict(AUDITED)
    suspicious, absent = (
        [{name: _plain(row[name]) for name in AUDIT_COLUMNS} for row in tables[kind]] for kind in ("edges", "missing")
    )
    return {"suspicious": suspicious, "absent": absent, "weights": audit.weights, "pairs": len(audit.edges)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return value if value is None or isinstance(value, bool | int) else str(value)


def _rounded(values: Any, digits: int) -> list[float | None]:
    return [none_if_nan(round(float(value), digits)) for value in values]
