"""`gumbel-mpnn measure`: measures of a graph, or of the graph of runs before and after rewiring."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.errors import UserError


@common.in_one_sentence
def measure(
    dataset: common.DatasetArgument = None,
    *,
    run: Annotated[
        str | None,
        typer.Option(
            help="Folder of runs that rewire, or the beginning of their fingerprint: measure the graph before and "
            "after rewiring. The options of own data are needed only if its files have moved."
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="With --run: leave out pairs with a lower probability.", min=0, max=1)
    ] = 0.5,
    own: common.OwnData,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Show homophily, label informativeness, neighborhoods, degrees, components and spectral gap of a graph.

    Edge weights are ignored. With --run, homophily is also shown separately for pairs of training nodes, of other
    nodes, and of both: each run's graph is measured with its own split, and the values are averaged.
    """
    from gumbel_mpnn import measures
    from gumbel_mpnn.report import Table

    pairs = None
    if run is None:
        graphs = {"value": own.to_measure(dataset, data_root)}
    elif dataset is not None:
        raise UserError("--run measures the graph of these runs: leave out the name of a data set")
    else:
        trained = common.finished_run(run, runs, own, data_root)
        graphs = {"before": trained.data, "after": trained.rewire(threshold=threshold)}
        pairs = None if trained.settings.rewiring is None else trained.measure_pairs(threshold)
    values = {name: measures.measure(graph) for name, graph in graphs.items()}
    headings = {name: of.heading for name, of in measures.MEASURES.items()}
    rows = [[name, *(of[name] for of in values.values())] for name in headings]
    for kind, of in {} if pairs is None else pairs.kinds.items():
        rows += [[f"{name}_{kind}", of.before[name], of.after[name]] for name in of.before]
        headings |= {f"{name}_{kind}": f"{headings[name]}, {kind.replace('_', '-')}" for name in of.before}
    if not format.is_for_programs:
        rows = [[headings[str(row[0])], *row[1:]] for row in rows]
    payload: Any = values["value"] if run is None else values
    payload = payload if pairs is None else {**values, "pairs": pairs.to_dict()}
    common.emit(Table(["measure", *values], rows, digits=4, keep_small=True), format, payload)
    if pairs is not None and pairs.overfits:
        common.note(pairs.sentence())
