"""`gumbel-mpnn runs`: list, show, compare and export finished runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.cli.common import (
    FormatOption,
    OutputFormat,
    RunsOption,
    emit,
    in_one_sentence,
    note,
    reject_early_options,
)
from gumbel_mpnn.cli.finished_runs import open_index

if TYPE_CHECKING:
    from gumbel_mpnn.runs.query.filters import Filter

app = typer.Typer(help="List, show, compare and export finished runs.", invoke_without_command=True)
DatasetOption = Annotated[str | None, typer.Option("--dataset", help="Only these data sets, separated by commas.")]
ModelOption = Annotated[str | None, typer.Option("--model", help="Only these models, separated by commas.")]
ExperimentOption = Annotated[
    str | None, typer.Option("--experiment", help="Only these experiments, separated by commas.")
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="CONDITION", help="Such as 'test>=80' or 'train.lr=0.01'; can be repeated."),
]
RunArgument = Annotated[str, typer.Argument(help="Folder of a setting, or the beginning of its fingerprint.")]


@app.callback()
@in_one_sentence
def runs(
    context: typer.Context,
    dataset: DatasetOption = None,
    model: ModelOption = None,
    experiment: ExperimentOption = None,
    where: WhereOption = None,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """List finished runs, with one row for each setting."""
    if context.invoked_subcommand is not None:
        reject_early_options(context)
        return
    from gumbel_mpnn.report import Table

    with open_index(runs) as index:
        found = index.settings(_filters(dataset, model, experiment, where))
    rows: list[list[str | int | float | None]] = [
        [
            *(row.dataset, row.model, row.metric, row.n, _percent(row.test)),
            *(_percent(row.std) if row.n > 1 else None, _percent(row.val), str(row.path)),
        ]
        for row in found
    ]
    columns = ["dataset", "model", "metric", "n", "test", "std", "val", "folder"]
    emit(Table(columns, rows, headings={"dataset": "data set", "n": "runs"}), format)


@app.command()
@in_one_sentence
def show(run: RunArgument, runs: RunsOption = Path("runs"), format: FormatOption = OutputFormat.text) -> None:
    """Show a setting and the results of its runs, and the rungs among which `auto` chose it."""
    from gumbel_mpnn.report import Table, choice_table
    from gumbel_mpnn.runs.choice import read_choices
    from gumbel_mpnn.runs.query import Summary, find_records
    from gumbel_mpnn.runs.query.filters import flat

    with open_index(runs) as index:
        folder = index.find(run).path
    records, choices = list(find_records(folder)), read_choices(folder)
    settings, test = records[0].settings, Summary.of(record.test for record in records)
    columns = ["split", "seed", "val", "test", "best_epoch", "epochs", "seconds"]
    rows = [[r.split, r.seed, _percent(r.val), _percent(r.test), r.best_epoch, r.epochs, r.seconds] for r in records]
    payload: dict[str, Any] = {
        "folder": str(folder),
        "fingerprint": records[0].fingerprint,
        "metric": records[0].metric,
        "test": {**test.to_dict(), "n": test.n},
        "settings": settings,
        "runs": [record.to_dict() for record in records],
        **({"choices": [choice.to_dict() for choice in choices]} if choices else {}),
    }
    if format not in (OutputFormat.json, OutputFormat.csv):
        machines = {record.machine.get("device", "unknown") for record in records}
        facts = {"data set": settings["dataset"], **flat(settings), "device": ", ".join(sorted(machines))}
        emit(Table(["setting", "value"], [[name, str(value)] for name, value in facts.items()]), format)
        typer.echo("")
        for choice in choices:
            emit(choice_table(choice), format)
            typer.echo("")
    emit(Table(columns, rows, headings={"val": "val %", "test": "test %", "best_epoch": "best epoch"}), format, payload)
    note(f"{records[0].metric} {test if test.n else 'on no test nodes'}")
    for choice in choices:
        note(f"auto on {len(choice.runs)} run{'s' * (len(choice.runs) > 1)}: {choice.sentence()}")


@app.command()
@in_one_sentence
def compare(
    a: RunArgument,
    b: RunArgument,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show the settings that differ between A and B, and the paired difference of their test results."""
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.query import ENOUGH_SPLITS, find_records
    from gumbel_mpnn.runs.query import compare as compare_records

    with open_index(runs) as index:
        folders = [index.find(name).path for name in (a, b)]
    ours, theirs = (list(find_records(folder)) for folder in folders)
    if ours[0].data_hash != theirs[0].data_hash:
        raise UserError(f"{a} and {b} use different data: only runs on the same splits can be compared")
    if ours[0].metric != theirs[0].metric:
        raise UserError(
            f"{a} has the metric {ours[0].metric}, but {b} has {theirs[0].metric}: train one of them with the"
            " data.metric of the other"
        )
    paired = compare_records(ours, theirs)
    if len(ours) + len(theirs) > 2 * paired.n:
        note(f"left out, without a counterpart: {len(ours) - paired.n} runs of A, {len(theirs) - paired.n} of B")
    if paired.splits < ENOUGH_SPLITS:
        note(
            f"no difference can be significant with fewer than {ENOUGH_SPLITS} splits: these runs have {paired.splits}"
        )
    differing = _differing(ours[0].settings, theirs[0].settings)
    result: dict[str, str | int | float | None] = {
        "difference": 100 * paired.mean,
        "low": 100 * paired.low,
        "high": 100 * paired.high,
        "n": paired.n,
        "p": paired.p,
        "verdict": paired.verdict,
    }
    if format not in (OutputFormat.json, OutputFormat.csv):
        rows = [[name, *("–" if value is None else str(value) for value in pair)] for name, pair in differing.items()]
        emit(Table(["setting", "a", "b"], rows, headings={"a": "A", "b": "B"}), format)
        typer.echo("")
    headings = {"difference": f"A − B, {ours[0].metric} %", "low": "95 % from", "high": "to", "n": "runs"}
    table = Table(list(result), [list(result.values())], headings={**headings, "p": "p (Wilcoxon)"}, digits=3)
    emit(table, format, {"a": str(folders[0]), "b": str(folders[1]), "settings": differing, **result})


def _percent(value: float | None) -> float | None:
    """Return a value in percent; None for none and for NaN, which JSON does not have."""
    return None if value is None or math.isnan(value) else 100 * value


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the settings that differ, as `table.name` → [ours, theirs]; a missing setting is None."""
    from gumbel_mpnn.runs.query.filters import flat

    ours, theirs = flat(one), flat(other)
    pairs = {name: [ours.get(name), theirs.get(name)] for name in dict.fromkeys([*ours, *theirs])}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@app.command()
@in_one_sentence
def export(
    out: Annotated[Path, typer.Argument(help="File (csv) or folder (tensorboard, mlflow) to write.")],
    to: Annotated[str, typer.Option(help="csv, tensorboard or mlflow.")] = "csv",
    dataset: DatasetOption = None,
    model: ModelOption = None,
    experiment: ExperimentOption = None,
    where: WhereOption = None,
    runs: RunsOption = Path("runs"),
) -> None:
    """Export all runs, or those selected, to other formats."""
    from gumbel_mpnn.runs.query.export import export as write

    with open_index(runs) as index:
        count = write(index, index.settings(_filters(dataset, model, experiment, where)), to, out)
    note(f"{count} runs are in {out}")


@app.command()
@in_one_sentence
def reindex(runs: RunsOption = Path("runs")) -> None:
    """Read all records again; needed only if records were edited by hand."""
    with open_index(runs) as index:
        index.rebuild()
        found = index.settings()
    note(f"{sum(row.n for row in found)} runs of {len(found)} settings are in {runs}")


def _filters(dataset: str | None, model: str | None, experiment: str | None, where: list[str] | None) -> list[Filter]:
    from gumbel_mpnn.runs.query.filters import Filter

    named = {"dataset": dataset, "model": model, "experiment": experiment}
    chosen = [one for column, names in named.items() for one in Filter.named(column, names)]
    return chosen + [Filter.parse(condition) for condition in where or ()]
