"""`gumbel-mpnn reproduce`: a table of results, ours beside the paper's, or all of them."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import suffix_of
from gumbel_mpnn.cli.common import (
    DataRootOption,
    DeviceOption,
    FormatOption,
    OutputFormat,
    OverrideOption,
    RunsOption,
    emit,
    in_one_sentence,
    note,
)

if TYPE_CHECKING:
    from gumbel_mpnn.paper.reproduction import Request

ALL = "all"
SEEDS, QUICK_SEEDS = 3, 1


@in_one_sentence
def reproduce(
    name: Annotated[str, typer.Argument(help="Name of the table, like accuracy or measures; summary or all.")],
    only: Annotated[str | None, typer.Option(help="Data sets, models or presets to do, separated by commas.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Another data set, for tables of a single one, like components.")
    ] = None,
    splits: Annotated[str | None, typer.Option(help="Which splits, like 0-9; all by default.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help=f"How many seeds for each split; {SEEDS} by default.", min=1)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the result as a Markdown page to this file; the folder of the pages for all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="In small, to see that it works: few epochs, two splits, small data sets.")
    ] = False,
    overrides: OverrideOption = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = "auto",
    workers: Annotated[
        int,
        typer.Option(
            help="How many processes train at once; no more than cores.",
            min=1,
        ),
    ] = 1,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Run a table, doing only what is missing, and print our numbers beside the paper's.

    The summary has every number of the paper and trains nothing; all makes every table and the summary, but for budget,
    the search for settings that the tables rest on.
    """
    from gumbel_mpnn.paper import experiments
    from gumbel_mpnn.paper.document import rows_table
    from gumbel_mpnn.paper.reproduction import Request, reproduction, tell_absent
    from gumbel_mpnn.paper.workers import workers_beside

    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    request = Request(only, dataset, splits, seeds, quick, overrides or (), data_root, runs, device, workers)
    if name == ALL:
        if only is not None or dataset is not None or format is not OutputFormat.text:
            raise UserError("all writes every table to a page of its own: leave out --only, --dataset and --format")
        folder = Path("results") if out is None else out
        _check_folder(folder)
        with workers_beside(_tables_of_all(), request) as request:
            _reproduce_all(request, folder)
        return
    if out is not None and (suffix_of(out) != ".md" or out.is_dir()):
        raise UserError(f"--out {out} is no name of a Markdown page: give it one that ends in .md")
    if out is not None:
        _check_folder(out.parent)
    with workers_beside([name] if name in experiments else [], request) as request:
        done = reproduction(name, request)
    if out is not None:
        done.write(out, request)
    emit(rows_table(done.experiment, done.rows), format, done.rows)
    tell_absent(done.absent(data_root), data_root)


def _check_folder(folder: Path) -> None:
    """Raise an error, before anything is trained, where a file has the name of the folder of pages or of one above."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise UserError(f"--out names a page in the folder {folder}, but {there} is a file")


def _tables_of_all() -> list[str]:
    """The experiments that `all` makes: those that search for settings are done before."""
    from gumbel_mpnn.paper import experiments

    return [name for name, experiment in experiments.items() if not experiment.searches]


def _reproduce_all(request: Request, folder: Path) -> None:
    """A page for every table; one that fails is named at the end and does not keep the others from being made."""
    from gumbel_mpnn.paper import Collected, analyses
    from gumbel_mpnn.paper.reproduction import SUMMARY, reproduction, summarize, tell_absent

    tables = (*_tables_of_all(), *analyses, SUMMARY)
    failed, collected, absent = dict[str, str](), dict[str, Collected](), set[str]()
    for name in tables:
        note(f"== {name}")
        mine = request.without_training() if name in analyses else request
        try:
            done = summarize(collected) if name == SUMMARY else reproduction(name, mine)
            collected[name] = done.collected()
            absent |= done.absent(request.data_root)
            done.write(folder / f"{name}.md", mine)
        except (UserError, OSError) as error:
            failed[name] = str(error)
        except Exception as error:
            note(traceback.format_exc())
            failed[name] = f"{type(error).__name__}: {error}"
    tell_absent(absent, request.data_root)
    for name, reason in failed.items():
        note(f"failed: {name}: {reason}")
    typer.echo(f"{len(tables) - len(failed)} tables are in {folder}")
    if failed:
        raise typer.Exit(1)
