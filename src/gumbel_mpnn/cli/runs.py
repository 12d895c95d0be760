"""`gumbel-mpnn runs`: list, show, compare and export finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.errors import UserError, counted, reason

if TYPE_CHECKING:
    import pandas as pd

    from gumbel_mpnn.runs.store import Record

app = typer.Typer(help="List, show, compare and export finished runs.", invoke_without_command=True)
WhereOption = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Condition that pandas reads, such as \"dataset == 'cora' and val > 0.8 and `train.lr` == 0.01\";"
        " metrics are shares.",
    ),
]
TestOption = Annotated[
    bool,
    typer.Option("--test", help="Show test results of the trials of tune too; settings are chosen on validation."),
]
HIDDEN = "test results of trials of tune are hidden, since settings are chosen on validation: --test shows them"


def _listed(runs: Path, by: Any, where: str | None, test: bool) -> pd.DataFrame:
    """The table of `gm.runs` of the runs that fulfil a condition."""
    from gumbel_mpnn.runs import list_runs
    from gumbel_mpnn.runs.store import TRIALS

    if not runs.exists():
        common.note(f"the folder {runs} does not exist yet")
    table = list_runs(runs, by, tests_of_trials=test)
    if where is not None:
        try:
            table = table.query(where)
        except Exception as error:  # pandas raises errors of many kinds
            raise UserError(f"cannot read the condition {where!r}: {reason(error)}") from None
    if not test and (table["experiment"] == TRIALS).any():
        common.note(HIDDEN)
    return table


@app.callback()
@common.in_one_sentence
def runs(
    context: typer.Context,
    where: WhereOption = None,
    test: TestOption = False,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """List finished runs, with one row for each setting.

    Where several data sets have the same name, the first six digits of the hash of their data are shown beside it.
    """
    if context.invoked_subcommand is not None:
        for name in context.params:  # options here have no effect on the subcommand
            if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE":
                raise UserError(f"write --{name} after {context.invoked_subcommand!r}")
        return
    from gumbel_mpnn.report import Table

    table = _listed(runs, "setting", where, test)
    columns = ["dataset", "model", "metric", "n", "test", "std", "val", "folder"]
    if format.is_for_programs:
        columns.append("data_hash")
    else:
        several = table.groupby("dataset")["data_hash"].transform("nunique") > 1
        table.loc[several, "dataset"] += " (" + table["data_hash"].str[:6] + ")"
    headings = {"dataset": "data set", "n": "runs"}
    common.emit(Table.of(table[columns], headings=headings, shares=("test", "std", "val")), format)


@app.command()
@common.in_one_sentence
def show(
    run: common.RunArgument,
    test: TestOption = False,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Show a setting and the results of its runs, and the rungs among which `auto` chose it."""
    from gumbel_mpnn.report import Table, choice_table
    from gumbel_mpnn.runs.choice import read_choices
    from gumbel_mpnn.runs.store import Summary, flat

    folder, records, is_trial = _records(run, runs)
    hidden, choices = is_trial and not test, read_choices(folder)
    first, result = records[0], Summary.of(record.test for record in records)
    rows = [record.to_dict() | ({"test": None} if hidden else {}) for record in records]
    payload: dict[str, Any] = {
        "folder": str(folder),
        "fingerprint": first.fingerprint,
        "metric": first.metric,
        "unit": "share",
        "data_hash": first.data_hash,
        "test": None if hidden else {**result.to_dict(), "n": result.n},
        "settings": first.settings,
        "runs": rows,
        **({"choices": [choice.to_dict() for choice in choices]} if choices else {}),
    }
    if not format.is_for_programs:
        machines = {record.machine.get("device", "unknown") for record in records}
        facts = {"data set": first.settings["dataset"], **flat(first.settings), "device": ", ".join(sorted(machines))}
        settings = Table(["setting", "value"], [[name, str(value)] for name, value in facts.items()])
        for table in [settings, *map(choice_table, choices)]:
            common.emit(table, format)
            typer.echo("")
    columns = ["split", "seed", "val", "test", "best_epoch", "epochs", "seconds"]
    headings = {"val": "val %", "test": "test %", "best_epoch": "best epoch"}
    cells = [[row[name] for name in columns] for row in rows]
    common.emit(Table(columns, cells, headings, shares=("val", "test")), format, payload)
    common.note(HIDDEN if hidden else f"{first.metric} {result if result.n else 'on no test nodes'}")
    for choice in choices:
        common.note(f"{choice.title} on {counted(len(choice.runs), 'run')}: {choice.sentence()}")


@app.command()
@common.in_one_sentence
def compare(
    a: common.RunArgument,
    b: common.RunArgument,
    test: TestOption = False,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Show the settings that differ between A and B, and the paired difference of their test results.

    If A or B is a trial of tune, validation results are compared, unless --test is given.
    """
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.compare import compare as compare_runs
    from gumbel_mpnn.runs.store import flat

    (one, ours, trial), (other, theirs, another) = _records(a, runs), _records(b, runs)
    hidden, metric = (trial or another) and not test, ours[0].metric
    if ours[0].data_hash != theirs[0].data_hash:
        raise UserError(f"{a} and {b} use different data: only runs on the same splits can be compared")
    if metric != theirs[0].metric:
        raise UserError(f"{a} has the metric {metric}, but {b} has {theirs[0].metric}: train both with one data.metric")
    paired = compare_runs(ours, theirs, "val" if hidden else "test")
    if len(ours) + len(theirs) > 2 * paired.n:
        alone = counted(len(ours) - paired.n, "run")
        common.note(f"left out, without a counterpart: {alone} of A, {len(theirs) - paired.n} of B")
    settings = flat(ours[0].settings), flat(theirs[0].settings)
    pairs = {name: [each.get(name) for each in settings] for name in {**settings[0], **settings[1]}}
    differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if not format.is_for_programs:
        rows = [[name, *(None if value is None else str(value) for value in pair)] for name, pair in differing.items()]
        common.emit(Table(["setting", "a", "b"], rows, {"a": "A", "b": "B"}), format)
        typer.echo("")
    result: dict[str, str | int | float | None] = {
        **{"difference": paired.mean, "low": paired.low, "high": paired.high, "n": paired.n, "p": paired.p},
        **{"over": paired.over, "verdict": paired.verdict},
    }
    headings = {"difference": f"A − B, {'validation ' * hidden}{metric} %", "low": "95 % from", "high": "to"}
    headings |= {"n": "runs", "p": "p (Wilcoxon)", "over": "tested over"}
    table = Table(list(result), [list(result.values())], headings, digits=3, shares=("difference", "low", "high"))
    about = {"a": str(one), "b": str(other), "settings": differing, "figure": "val" if hidden else "test"}
    common.emit(table, format, {**about, "unit": "share", **result})
    if hidden:
        common.note(HIDDEN)


def _records(run: str, runs: Path) -> tuple[Path, list[Record], bool]:
    """Folder of a setting, its finished runs, and whether it is a trial of `tune`."""
    from gumbel_mpnn.runs.store import TRIALS, find_records, find_setting

    folder = find_setting(run, runs)
    records = list(find_records(folder))
    if len({record.fingerprint for record in records}) != 1:
        raise UserError(f"{folder} is not the folder of one setting with finished runs: `gumbel-mpnn runs` lists them")
    return folder, records, TRIALS in folder.absolute().parts[-5:]


@app.command()
@common.in_one_sentence
def export(
    out: Annotated[Path, typer.Argument(help="File to write, .csv or .json; - for CSV on standard output.")],
    where: WhereOption = None,
    test: TestOption = False,
    force: common.ForceOption = False,
    runs: common.RunsOption = Path("runs"),
) -> None:
    """Write all runs, or those that fulfil a condition, to a file: one row for each run, with all settings."""
    common.check_output("the file", out, common.TABLES, force=force)
    table = _listed(runs, "run", where, test)
    common.write_table(table, out, f"{counted(len(table), 'run')} {'is' if len(table) == 1 else 'are'}", digits=None)
