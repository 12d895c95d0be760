"""`gumbel-mpnn tune`: a random search over settings, judged on validation alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli.common import (
    DataRootOption,
    DeviceOption,
    FormatOption,
    OutputFormat,
    RunsOption,
    emit,
    in_one_sentence,
    note,
    parse_range,
)


@in_one_sentence
def tune(
    dataset: Annotated[str, typer.Argument(help="Name of a data set.")],
    space: Annotated[Path, typer.Option(help="Settings file (TOML) in which a value may be a list of choices.")],
    model: Annotated[str, typer.Option(help="Name of a model.")] = "gcn",
    trials: Annotated[int, typer.Option(help="How many settings to try.", min=1)] = 20,
    splits: Annotated[str | None, typer.Option(help="Which splits, like 0-9; all by default.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds for each split.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search itself.")] = 0,
    preset: Annotated[str, typer.Option(help="Where what the space leaves out comes from: tuned or paper.")] = "tuned",
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = "auto",
    format: FormatOption = OutputFormat.text,
) -> None:
    """Try settings and list them, best validation first; the test set is not looked at."""
    from gumbel_mpnn.cli.progress import ProgressMonitor
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.settings_tables import read_settings_file
    from gumbel_mpnn.tuning import choices, search

    tables = read_settings_file(space)
    monitor = ProgressMonitor(show_test=False)
    try:
        found = search(
            dataset,
            model,
            tables,
            trials=trials,
            seed=seed,
            preset=preset,
            splits=None if splits is None else parse_range(splits),
            seeds=seeds,
            runs=runs,
            root=data_root,
            device=device,
            monitor=monitor,
        )
    finally:
        monitor.close()
    rows = [[100 * t.run.val.mean, 100 * t.run.val.std, t.run.n, *map(_cell, t.chosen.values())] for t in found]
    chosen, headings = list(choices(tables)), {"val": "val %", "n": "runs"}
    emit(Table(["val", "std", "n", *chosen], rows, headings=headings, exact=chosen), format)
    note(f"runs are in {runs / 'tune'}")


def _cell(value: object) -> str | int | float:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value)
