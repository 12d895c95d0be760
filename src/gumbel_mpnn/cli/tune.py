"""`gumbel-mpnn tune`: random search for settings, based on validation results only."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.cli.common import (
    DataRootOption,
    DeviceOption,
    FormatOption,
    OutputFormat,
    QuietOption,
    RunsOption,
    emit,
    in_one_sentence,
    note,
    parse_range,
)
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source

if TYPE_CHECKING:
    from gumbel_mpnn.runs.tuning import Trial


@in_one_sentence
def tune(
    space: Annotated[Path, typer.Option(help="TOML file of settings, in which a list of values is searched.")],
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`), or demo.")] = None,
    model: Annotated[str, typer.Option(help="Name of a model.")] = "gcn",
    trials: Annotated[int, typer.Option(help="Number of settings to try.", min=1)] = 20,
    splits: Annotated[str | None, typer.Option(help="Splits to use, such as 0-9; all by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds for each split.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    preset: Annotated[
        str,
        typer.Option(help="Source of all other settings: tuned, paper, none, or a TOML file."),
    ] = "tuned",
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Try settings at random and list them by validation result. Test results are not used and not shown."""
    from gumbel_mpnn.config.files import merge, read_settings_file
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import Place, RunSpec
    from gumbel_mpnn.runs.progress import ProgressMonitor
    from gumbel_mpnn.runs.tuning import choices, search

    tables = merge(read_settings_file(space))
    if not choices(tables):
        raise UserError(f"{space} contains nothing to search: give at least one setting a list of values")
    tried = tables.get("data", {}).get("undirected", True)
    # Directions are read if any trial needs them; trials on undirected graphs ignore them.
    never_directed = all(tried) if isinstance(tried, list) else bool(tried)
    source = Source(dataset, nodes, edges, graph, label, features)
    spec = RunSpec.of(
        lambda undirected: source.to_train_on(undirected and never_directed),
        model,
        splits=None if splits is None else parse_range(splits),
        seeds=seeds,
        preset=None if preset == "none" else preset,
        root=data_root,
    )
    with closing(ProgressMonitor(show_test=False, quiet=quiet)) as monitor:
        found = search(spec, tables, trials=trials, seed=seed, place=Place(runs, device=device, monitor=monitor))
    rows = [[*_figures(trial), *map(_cell, trial.chosen.values())] for trial in found]
    chosen, headings = list(choices(tables)), {"val": "val %", "n": "runs"}
    table = Table(["val", "std", "n", *chosen], rows, headings=headings, exact=chosen, shares=("val", "std"))
    emit(table, format)
    if diverged := sum(trial.run is None for trial in found):
        note(f"training diverged for {diverged} of {counted(len(found), 'setting')}")
    note(f"runs are in {runs / 'tune'}")


def _figures(trial: Trial) -> list[float | int | None]:
    if trial.run is None:
        return [None, None, None]
    val = trial.run.val
    return [val.mean, val.std if val.n > 1 else None, val.n]


def _cell(value: object) -> str | int | float:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value)
