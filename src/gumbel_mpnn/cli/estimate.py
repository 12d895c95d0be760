"""`gumbel-mpnn estimate`: memory and time of training, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.numbers import duration, size
from gumbel_mpnn.cli.common import (
    DataRootOption,
    FormatOption,
    OutputFormat,
    OverrideOption,
    emit,
    in_one_sentence,
    note,
)
from gumbel_mpnn.cli.own_data import GraphOption, LabelOption, Source

if TYPE_CHECKING:
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import Estimate


@in_one_sentence
def estimate(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`), or demo.")] = None,
    nodes: Annotated[str | None, typer.Option(help="Number of nodes, or CSV or Parquet file of nodes.")] = None,
    edges: Annotated[
        str | None, typer.Option(help="Number of undirected edges, or CSV or Parquet file of edges.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Number of features, or names of columns separated by commas.")
    ] = None,
    classes: Annotated[int, typer.Option(help="With numbers: number of classes.", min=1)] = 2,
    model: Annotated[str, typer.Option(help="Name of a model.")] = "gumbel-mpnn",
    preset: Annotated[
        str, typer.Option(help="tuned, paper or another family of presets, none, or a TOML file.")
    ] = "tuned",
    overrides: OverrideOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    device: Annotated[str, typer.Option(help="h200, cuda, cpu, or auto (a GPU if there is one).")] = "auto",
    memory: Annotated[float | None, typer.Option(help="GiB of memory of the device.")] = None,
    data_root: DataRootOption = None,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Estimate memory and time of a training step and of the search for candidates, from measured coefficients.

    The graph need not exist: give the numbers of its nodes, edges and features, such as --nodes 1e9. Nothing is
    trained, and no candidates are searched.
    """
    from gumbel_mpnn import runs

    shared: dict[str, Any] = {
        "preset": None if preset == "none" else preset,
        "overrides": overrides or (),
        "device": device,
        "memory": memory,
        "root": data_root,
    }
    counts: dict[str, Any] = {"nodes": _count(nodes), "edges": _count(edges), "features": _count(features)}
    if dataset is None and graph is None and any(count is not None for count in counts.values()):
        for name, given in (("nodes", nodes), ("edges", edges), ("features", features)):
            if counts[name] is None:
                raise UserError(f"--{name} must be a number beside other numbers, not {given!r}" if given else _NUMBERS)
        found = runs.estimate(None, model, **counts, classes=classes, **shared)
    else:
        own_nodes, own_edges = (None if path is None else Path(path) for path in (nodes, edges))
        source = Source(dataset, own_nodes, own_edges, graph, label, features)
        found = runs.estimate(source.to_train_on, model, **shared)
    emit(_table(found), format, found.to_dict())
    note(_verdict(found))
    note(f"coefficients: {found.measured_on}; errors of a quarter are usual")


_NUMBERS = "give all three numbers, --nodes, --edges and --features"


def _count(text: str | None) -> int | None:
    """The number that `text` is, such as 1000, 1_000 or 1e9; None if it is no number."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    if not number.is_integer():
        raise UserError(f"{text} is not a whole number")
    return int(number)


def _table(found: Estimate) -> Table:
    from gumbel_mpnn.report import Table

    search = found.candidate_seconds
    rows: list[list[str | int | float | None]] = [
        ["nodes", f"{found.nodes:,}"],
        ["edges", f"{found.edges:,}"],
        ["candidates, at most", f"{found.candidates:,}"],
        ["parameters", f"{found.parameters:,}"],
        ["memory of a step" if found.partitions == 1 else "memory of a part, at least", size(found.memory)],
        ["time of a step", duration(found.step_seconds)],
        ["search for candidates", "not known" if search is None else duration(search) if search else "none"],
        [f"memory of {found.device}", size(found.device_memory)],
        ["parts, at least", "does not fit" if found.parts is None else f"{found.parts:,}"],
    ]
    return Table(["what", "estimate"], rows, {"what": found.model, "estimate": "estimate"})


def _verdict(found: Estimate) -> str:
    if found.parts is None:
        return "the parameters alone do not fit: try a smaller model.hidden_channels or model.num_layers"
    if found.parts == 1:
        return "the whole graph fits"
    if found.fits:
        return "each part fits, without the nodes around it"
    what = "the whole graph does not fit" if found.partitions == 1 else f"{found.partitions:,} parts do not fit"
    needed = f"at least {found.parts:,} parts: train --partitions {found.parts} or more"
    return f"{what}: the graph needs {needed}, since a part also holds the nodes around it"
