"""Exports runs to CSV, JSON, TensorBoard and MLflow."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from gumbel_mpnn.runs.query.index import RunIndex, SettingRow
from gumbel_mpnn.runs.record import HISTORY, read_curve
from gumbel_mpnn.settings.replica import Replica
from gumbel_mpnn.util import files
from gumbel_mpnn.util.errors import DataError, UserError, unknown_name, unreadable
from gumbel_mpnn.util.files import is_stream, suffix_of, write_atomically

CURVES = ("train_loss", "val", "val_loss")
_FIGURES = ("val", "test", "best_epoch", "epochs", "seconds")
_MLFLOW_BATCH = 100
"""Largest number of parameters that MLflow accepts at once; the limit of metrics is higher."""


def export(index: RunIndex, rows: Sequence[SettingRow], to: str | None, out: Path, test: bool = True) -> int:
    """Export all runs of the settings to a file or folder; returns their number.

    The form `to` is by default CSV or JSON, by the end of the name of the file. Test results of trials of `tune` are
    included on request.
    """
    if to is None:
        to = suffix_of(out).removeprefix(".") or ("csv" if is_stream(out) else "")
        if to not in ("csv", "json"):
            raise UserError(f"cannot tell the form of {out} by its name: let it end in .csv or .json, or give --to")
    if to not in EXPORTERS:
        raise unknown_name("form of export", to, EXPORTERS)
    runs = list(index.runs(rows, test))
    if not runs:
        raise UserError(f"there is no such run in {index.root}, so nothing is written to {out}")
    return EXPORTERS[to](runs, out)


def to_csv(runs: Sequence[Mapping[str, Any]], out: Path) -> int:
    """Write a CSV file with one line per run and a column for every setting of any run."""
    _check_file(out, "CSV")
    columns = list(dict.fromkeys(name for run in runs for name in run))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(runs)
    write_atomically(out, text.getvalue().encode())
    return len(runs)


def to_json(runs: Sequence[Mapping[str, Any]], out: Path) -> int:
    """Write a JSON file with a list of the runs; metrics are shares between 0 and 1."""
    _check_file(out, "JSON")
    write_atomically(out, (files.to_json([{**run, "unit": "share"} for run in runs], indent=1) + "\n").encode())
    return len(runs)


def to_tensorboard(runs: Sequence[Mapping[str, Any]], out: Path) -> int:
    """Write a folder of event files per run, with its curves, its settings and its final metrics."""
    _need("tensorboard")
    _check_new(out)
    writer_of = import_module("torch.utils.tensorboard").SummaryWriter
    for run in runs:
        with writer_of(log_dir=str(out / _name(run))) as writer:
            for epoch, curve, value in _curves(run):
                writer.add_scalar(curve, value, epoch)
            results = {f"final_{name}": run[name] for name in ("val", "test") if run[name] is not None}
            writer.add_hparams(_settings(run), results, run_name=".", global_step=run["best_epoch"])
    return len(runs)


def to_mlflow(runs: Sequence[Mapping[str, Any]], out: Path) -> int:
    """Write a tracking folder of MLflow, whose experiments are called `<experiment>/<data set>`.

    `MLFLOW_ALLOW_FILE_STORE=true` is set, since newer versions of MLflow need it to open such a folder.
    """
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow, entities = _need("mlflow"), import_module("mlflow.entities")
    _check_new(out)
    client = mlflow.MlflowClient(tracking_uri=out.absolute().as_uri())
    experiments: dict[str, str] = {}
    for run in runs:
        experiment = f"{run['experiment']}/{run['dataset']}"
        if experiment not in experiments:
            experiments[experiment] = client.create_experiment(experiment)
        identity = client.create_run(experiments[experiment], run_name=_name(run)).info.run_id
        metrics = [entities.Metric(curve, value, 0, epoch) for epoch, curve, value in _curves(run)]
        metrics += [
            entities.Metric(f"final_{name}", float(run[name]), 0, 0) for name in _FIGURES if run[name] is not None
        ]
        parameters = {name: run[name] for name in ("dataset", "fingerprint", "split", "seed")} | _settings(run)
        for part in _parts(metrics):
            client.log_batch(identity, metrics=part)
        for part in _parts([entities.Param(name, str(value)) for name, value in parameters.items()]):
            client.log_batch(identity, params=part)
        client.set_terminated(identity)
    return len(runs)


EXPORTERS: dict[str, Callable[[Sequence[Mapping[str, Any]], Path], int]] = {
    "csv": to_csv,
    "json": to_json,
    "tensorboard": to_tensorboard,
    "mlflow": to_mlflow,
}


def _need(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f"the package {package} is not installed: pip install {package}") from None


def _check_file(path: Path, kind: str) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a {kind} file in it")


def _check_new(folder: Path) -> None:
    """Raise a `UserError` if the folder is not empty, since both programs would mix its content with the runs."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: give the name of a new folder")


def _name(run: Mapping[str, Any]) -> str:
    parts = (run["experiment"], run["dataset"], run["model"], run["fingerprint"])
    return "/".join([*parts, _replica(run)])


def _replica(run: Mapping[str, Any]) -> str:
    return str(Replica(run["split"], run["seed"]))


def _settings(run: Mapping[str, Any]) -> dict[str, Any]:
    plain = bool | int | float | str
    return {name: value if isinstance(value, plain) else str(value) for name, value in run.items() if "." in name}


def _curves(run: Mapping[str, Any]) -> Iterator[tuple[int, str, float]]:
    """Epoch, name and value of all curves in the history of a run."""
    path = Path(run["folder"]) / _replica(run) / HISTORY
    try:
        yield from [
            (int(row["epoch"]), curve, float(row[curve]))
            for row in read_curve(path)
            for curve in CURVES
            if row[curve] is not None  # without validation nodes
        ]
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(f"the curve {path}", error, "delete its folder to do the run again") from None


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _MLFLOW_BATCH):
        yield items[start : start + _MLFLOW_BATCH]
