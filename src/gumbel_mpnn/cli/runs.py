"""`gumbel-mpnn runs`: list, show, compare and export finished runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.numbers import counted, none_if_nan
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
from gumbel_mpnn.cli.outputs import ForceOption, check_output, is_table, note_of

if TYPE_CHECKING:
    from gumbel_mpnn.runs.query.filters import Filter
    from gumbel_mpnn.runs.query.index import RunIndex, SettingRow

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
TestOption = Annotated[
    bool,
    typer.Option("--test", help="Show test results of the trials of tune too; settings are chosen on validation."),
]
HIDDEN = "test results of trials of tune are hidden, since settings are chosen on validation: --test shows them"
OF_TEST = ("test", "std", "stderr")
"""Figures that are computed from test results."""
EXPORTED = ("folder", "experiment", "fingerprint", "split", "seed")
"""Columns by which a table of exported runs is known."""
RunArgument = Annotated[str, typer.Argument(help="Folder of a setting, or the beginning of its fingerprint.")]


@app.callback()
@in_one_sentence
def runs(
    context: typer.Context,
    dataset: DatasetOption = None,
    model: ModelOption = None,
    experiment: ExperimentOption = None,
    where: WhereOption = None,
    test: TestOption = False,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """List finished runs, with one row for each setting.

    Where several data sets have the same name, the first six digits of the hash of their data are shown beside it. Data
    of the same files with other splits are one data set.
    """
    if context.invoked_subcommand is not None:
        reject_early_options(context)
        return
    from gumbel_mpnn.report import Table

    with open_index(runs) as index:
        found = _select(index, _filters(dataset, model, experiment, where), test)
        ambiguous = index.ambiguous_hashes()
    readable = not format.is_for_programs
    rows: list[list[str | int | float | None]] = []
    for row in found:
        shown = test or not row.is_trial
        digits = ambiguous.get(row.data_hash, "")[:6]
        name = f"{row.dataset} ({digits})" if readable and digits else row.dataset
        rows.append(
            [
                name,
                row.model,
                row.metric,
                row.n,
                none_if_nan(row.test) if shown else None,
                none_if_nan(row.std) if shown and row.n > 1 else None,
                none_if_nan(row.val),
                str(row.path),
                *([] if readable else [row.data_hash]),
            ]
        )
    columns = ["dataset", "model", "metric", "n", "test", "std", "val", "folder", *([] if readable else ["data_hash"])]
    headings = {"dataset": "data set", "n": "runs"}
    emit(Table(columns, rows, headings=headings, shares=("test", "std", "val")), format)
    if not test and any(row.is_trial for row in found):
        note(HIDDEN)


@app.command()
@in_one_sentence
def show(
    run: RunArgument,
    test: TestOption = False,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show a setting and the results of its runs, and the rungs among which `auto` chose it."""
    from gumbel_mpnn.report import Table, choice_table
    from gumbel_mpnn.runs.choice import read_choices
    from gumbel_mpnn.runs.query import Summary, find_records
    from gumbel_mpnn.runs.query.filters import flat

    with open_index(runs) as index:
        found = index.find(run)
    folder, hidden = found.path, found.is_trial and not test
    records, choices = list(find_records(folder)), read_choices(folder)
    settings, result = records[0].settings, Summary.of(record.test for record in records)
    columns = ["split", "seed", "val", "test", "best_epoch", "epochs", "seconds"]
    rows = [[r.split, r.seed, r.val, None if hidden else r.test, r.best_epoch, r.epochs, r.seconds] for r in records]
    payload: dict[str, Any] = {
        "folder": str(folder),
        "fingerprint": records[0].fingerprint,
        "metric": records[0].metric,
        "unit": "share",
        "data_hash": found.data_hash,
        "test": None if hidden else {**result.to_dict(), "n": result.n},
        "settings": settings,
        "runs": [record.to_dict() | ({"test": None} if hidden else {}) for record in records],
        **({"choices": [choice.to_dict() for choice in choices]} if choices else {}),
    }
    if not format.is_for_programs:
        machines = {record.machine.get("device", "unknown") for record in records}
        facts = {"data set": settings["dataset"], **flat(settings), "device": ", ".join(sorted(machines))}
        emit(Table(["setting", "value"], [[name, str(value)] for name, value in facts.items()]), format)
        typer.echo("")
        for choice in choices:
            emit(choice_table(choice), format)
            typer.echo("")
    headings = {"val": "val %", "test": "test %", "best_epoch": "best epoch"}
    emit(Table(columns, rows, headings=headings, shares=("val", "test")), format, payload)
    note(HIDDEN if hidden else f"{records[0].metric} {result if result.n else 'on no test nodes'}")
    for choice in choices:
        note(f"{choice.ladder} on {len(choice.runs)} run{'s' * (len(choice.runs) > 1)}: {choice.sentence()}")


@app.command()
@in_one_sentence
def compare(
    a: RunArgument,
    b: RunArgument,
    test: TestOption = False,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show the settings that differ between A and B, and the paired difference of their test results.

    If A or B is a trial of tune, validation results are compared, unless --test is given.
    """
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.query import ENOUGH, find_records
    from gumbel_mpnn.runs.query import compare as compare_records

    with open_index(runs) as index:
        found = [index.find(name) for name in (a, b)]
    folders, hidden = [row.path for row in found], any(row.is_trial for row in found) and not test
    ours, theirs = (list(find_records(folder)) for folder in folders)
    if ours[0].data_hash != theirs[0].data_hash:
        raise UserError(f"{a} and {b} use different data: only runs on the same splits can be compared")
    if ours[0].metric != theirs[0].metric:
        raise UserError(
            f"{a} has the metric {ours[0].metric}, but {b} has {theirs[0].metric}: train one of them with the"
            " data.metric of the other"
        )
    paired = compare_records(ours, theirs, "val" if hidden else "test")
    if len(ours) + len(theirs) > 2 * paired.n:
        alone = counted(len(ours) - paired.n, "run")
        note(f"left out, without a counterpart: {alone} of A, {len(theirs) - paired.n} of B")
    if paired.units < ENOUGH:
        also = f", or {ENOUGH} seeds of one split" * (paired.units == 1)
        note(f"no difference can be significant with fewer than {ENOUGH} splits{also}: these runs have {paired.units}")
    if paired.over == "seeds":
        note("these runs have one split: the test is over its seeds, and says nothing about other splits")
    differing = _differing(ours[0].settings, theirs[0].settings)
    result: dict[str, str | int | float | None] = {
        "difference": paired.mean,
        "low": paired.low,
        "high": paired.high,
        "n": paired.n,
        "p": paired.p,
        "over": paired.over,
        "verdict": paired.verdict,
    }
    if not format.is_for_programs:
        rows = [[name, *("–" if value is None else str(value) for value in pair)] for name, pair in differing.items()]
        emit(Table(["setting", "a", "b"], rows, headings={"a": "A", "b": "B"}), format)
        typer.echo("")
    what = f"validation {ours[0].metric}" if hidden else ours[0].metric
    headings = {"difference": f"A − B, {what} %", "low": "95 % from", "high": "to", "n": "runs"}
    headings |= {"p": "p (Wilcoxon)", "over": "tested over"}
    shares = ("difference", "low", "high")
    table = Table(list(result), [list(result.values())], headings=headings, digits=3, shares=shares)
    about = {"a": str(folders[0]), "b": str(folders[1]), "settings": differing}
    emit(table, format, {**about, "figure": "val" if hidden else "test", "unit": "share", **result})
    if hidden:
        note(HIDDEN)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the settings that differ, as `table.name` → [ours, theirs]; a missing setting is None."""
    from gumbel_mpnn.runs.query.filters import flat

    ours, theirs = flat(one), flat(other)
    pairs = {name: [ours.get(name), theirs.get(name)] for name in dict.fromkeys([*ours, *theirs])}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@app.command()
@in_one_sentence
def export(
    out: Annotated[
        Path, typer.Argument(help="File (csv, json; - for standard output) or folder (tensorboard, mlflow) to write.")
    ],
    to: Annotated[
        str | None,
        typer.Option(help="csv, json, tensorboard or mlflow; by default csv for *.csv, json for *.json."),
    ] = None,
    dataset: DatasetOption = None,
    model: ModelOption = None,
    experiment: ExperimentOption = None,
    where: WhereOption = None,
    test: TestOption = False,
    force: ForceOption = False,
    runs: RunsOption = Path("runs"),
) -> None:
    """Export all runs, or those selected, to other formats."""
    from gumbel_mpnn.runs.query.export import export as write

    with open_index(runs) as index:
        found = _select(index, _filters(dataset, model, experiment, where), test)
        if found:
            check_output("the file", out, is_table(EXPORTED), force=force)
        count = write(index, found, to, out, test)
    note_of(out, _runs_are(count))
    if not test and any(row.is_trial for row in found):
        note(HIDDEN)


@app.command()
@in_one_sentence
def reindex(runs: RunsOption = Path("runs")) -> None:
    """Read all records again; needed only if records were edited by hand."""
    with open_index(runs) as index:
        index.rebuild()
        found = index.settings()
    of = f" of {counted(len(found), 'setting')}"
    note(f"{_runs_are(sum(row.n for row in found), of)} in {runs}")


def _runs_are(count: int, of: str = "") -> str:
    return f"{counted(count, 'run')}{of} {'is' if count == 1 else 'are'}"


def _select(index: RunIndex, filters: list[Filter], test: bool) -> list[SettingRow]:
    """Return the settings that pass all filters; conditions on test results do not select trials of tune."""
    if test or not any(one.name in OF_TEST for one in filters):
        return index.settings(filters)
    if any(row.is_trial for row in index.settings(one for one in filters if one.name not in OF_TEST)):
        note(f"trials of tune are left out: {HIDDEN}")
    return [row for row in index.settings(filters) if not row.is_trial]


def _filters(dataset: str | None, model: str | None, experiment: str | None, where: list[str] | None) -> list[Filter]:
    from gumbel_mpnn.runs.query.filters import Filter

    named = {"dataset": dataset, "model": model, "experiment": experiment}
    chosen = [one for column, names in named.items() for one in Filter.named(column, names)]
    return chosen + [Filter.parse(condition) for condition in where or ()]
