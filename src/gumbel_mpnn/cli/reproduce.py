"""`gumbel-mpnn reproduce`: a table of results, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    parse_range,
)
from gumbel_mpnn.errors import UserError, unknown_name

if TYPE_CHECKING:
    from gumbel_mpnn.experiments import Analysis, Job


@in_one_sentence
def reproduce(
    name: Annotated[str, typer.Argument(help="Name of the table, like backbones or measures.")],
    only: Annotated[str | None, typer.Option(help="Data sets, models or presets to do, separated by commas.")] = None,
    splits: Annotated[str | None, typer.Option(help="Which splits, like 0-9; all by default.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds for each split.", min=1)] = 3,
    out: Annotated[Path | None, typer.Option(help="Write the result as a Markdown page to this file.")] = None,
    overrides: OverrideOption = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = "auto",
    format: FormatOption = OutputFormat.text,
) -> None:
    """Run one table, doing only what is missing, and print our numbers beside the paper's."""
    from gumbel_mpnn.cli.progress import ProgressMonitor
    from gumbel_mpnn.data.atomic import write_atomically
    from gumbel_mpnn.experiments import analyses, experiments, run_jobs
    from gumbel_mpnn.report import document, rows_table

    if name in analyses:
        if splits is not None or overrides:
            raise UserError(f"{name} trains no model: leave out --splits and --set")
        _analyse(analyses[name], only, out, data_root, format)
        return
    if name not in experiments:
        raise unknown_name("experiment", name, [*experiments, *analyses])
    experiment = experiments[name]
    jobs = _select(experiment.plan(), only)
    monitor = ProgressMonitor()
    try:
        results = run_jobs(
            jobs,
            seeds=seeds,
            runs=runs,
            experiment=name,
            splits=None if splits is None else parse_range(splits),
            root=data_root,
            device=device,
            overrides=overrides or (),
            monitor=monitor,
        )
    finally:
        monitor.close()
    rows = experiment.collect(results)
    if out is not None:
        options = "".join(f" {flag} {value}" for flag, value in (("--only", only), ("--splits", splits)) if value)
        options += "".join(f" --set {override}" for override in overrides or ())
        command = f"gumbel-mpnn reproduce {name}{options} --seeds {seeds} --out {out}"
        page = document(experiment, rows, [run for run in results.values() if run is not None], command)
        write_atomically(out, page.encode())
        note(f"the page is in {out}")
    emit(rows_table(experiment, rows), format, rows)


def _analyse(analysis: Analysis, only: str | None, out: Path | None, root: Path | None, format: OutputFormat) -> None:
    """The table of an analysis, data set by data set."""
    from gumbel_mpnn.data.atomic import write_atomically
    from gumbel_mpnn.report import document, rows_table

    datasets = analysis.datasets()
    words = datasets if only is None else [word.strip() for word in only.split(",")]
    for word in words:
        if word not in datasets:
            raise unknown_name("data set here", word, datasets)
    rows = []
    for dataset in (dataset for dataset in datasets if dataset in words):
        note(f"{analysis.name}: {dataset}")
        rows += analysis.rows(dataset, root)
    if out is not None:
        command = f"gumbel-mpnn reproduce {analysis.name}{f' --only {only}' if only else ''} --out {out}"
        write_atomically(out, document(analysis, rows, [], command).encode())
        note(f"the page is in {out}")
    emit(rows_table(analysis, rows), format, rows)


def _select(jobs: list[Job], only: str | None) -> list[Job]:
    """The jobs whose data set, model and preset are named, where each that is not named at all is left open."""
    if only is None:
        return jobs
    words = {word.strip() for word in only.split(",")}
    known = [{getattr(job, kind) for job in jobs} for kind in ("dataset", "model", "preset")]
    for word in sorted(words.difference(*known)):
        raise unknown_name("data set, model or preset here", word, set().union(*known))
    datasets, models, presets = (words & names or names for names in known)
    return [job for job in jobs if job.dataset in datasets and job.model in models and job.preset in presets]
