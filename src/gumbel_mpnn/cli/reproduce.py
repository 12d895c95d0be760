"""`gumbel-mpnn reproduce`: tables of the paper, with our numbers next to the published ones."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import is_standard_output, is_stream
from gumbel_mpnn.cli.common import (
    DataRootOption,
    DeviceOption,
    FormatOption,
    OutputFormat,
    OverrideOption,
    QuietOption,
    RunsOption,
    emit,
    in_one_sentence,
    parse_range,
)
from gumbel_mpnn.cli.machines import (
    CpusOption,
    GpusOption,
    OnOption,
    StoreOption,
    WorkersOption,
    machines_of,
    refuse_torchrun,
)
from gumbel_mpnn.cli.outputs import ForceOption, check_page


@in_one_sentence
def reproduce(
    name: Annotated[str, typer.Argument(help="Name of the table, such as accuracy or measures; summary; or all.")],
    only: Annotated[
        str | None,
        typer.Option(help="Data sets, models, presets or settings of the data to select, separated by commas."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Another data set, for tables of a single one, such as components.")
    ] = None,
    splits: Annotated[str | None, typer.Option(help="Splits to use, such as 0-9; all by default.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds for each split; 3 by default, 1 with --quick.", min=1)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Markdown file to write the page to, - for standard output; for all, the folder of the pages."
        ),
    ] = None,
    force: ForceOption = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Small version, to test the setup: few epochs, two splits, small data sets."),
    ] = False,
    overrides: OverrideOption = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = "auto",
    on: OnOption = "local",
    workers: WorkersOption = 1,
    cpus_per_task: CpusOption = None,
    gpus_per_task: GpusOption = None,
    store: StoreOption = None,
    quiet: QuietOption = False,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Reproduce a table of the paper and print our numbers next to the published ones.

    Finished runs are not trained again. The summary compares every published number with ours and trains nothing. With
    all, the pages of all tables of the paper and the summary are written, except budget and the readings, the searches
    for the settings that the other tables use.
    """
    from gumbel_mpnn import paper
    from gumbel_mpnn.runs.progress import ProgressMonitor

    refuse_torchrun()
    if name == "all" and format is not OutputFormat.text:
        raise UserError("all writes each table to a page: leave out --format")
    for page in _pages(name, out):
        check_page("--out", page, force)
    searches = name in paper.experiments and paper.experiments[name].searches
    with closing(ProgressMonitor(show_test=not searches, quiet=quiet)) as monitor:
        done = paper.reproduce(
            name,
            only=only,
            dataset=dataset,
            splits=None if splits is None else parse_range(splits),
            seeds=seeds,
            quick=quick,
            overrides=overrides or (),
            root=data_root,
            runs=runs,
            device=device,
            on=machines_of(on, workers, cpus_per_task, gpus_per_task, store),
            out=out,
            monitor=monitor,
            note=monitor.say,
        )
    if name == "all":
        typer.echo(f"{len(done.pages)} tables are in {done.pages[0].parent}")
    elif not is_standard_output(out):
        emit(done.table(), format, done.shares())
    if quiet:  # otherwise they are among the notes
        for table, reason in done.failed.items():
            typer.echo(f"failed: {table}: {reason}", err=True)
    if done.failed:
        raise typer.Exit(1)


def _pages(name: str, out: Path | None) -> list[Path]:
    from gumbel_mpnn import paper

    if name != "all":
        return [] if out is None else [out]
    folder = Path("results") if out is None else out
    if is_stream(folder):
        raise UserError("all writes many pages: give --out the name of a folder")
    return [folder / f"{each}.md" for each in (*paper.experiments, *paper.analyses, "summary")]
