"""`gumbel-mpnn measure`: measures of a graph, or of the graph of runs before and after rewiring."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source
from gumbel_mpnn.util.errors import UserError

if TYPE_CHECKING:
    from torch_geometric.data import Data


class EdgeConvention(StrEnum):
    """How edges are counted; see `gumbel_mpnn.measures.undirected_edges`."""

    coalesced = "coalesced"
    as_listed = "as_listed"


@common.in_one_sentence
def measure(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`).")] = None,
    run: Annotated[
        str | None,
        typer.Option(
            help="Folder of runs that rewire, or the beginning of their fingerprint: measure the graph before and "
            "after rewiring. The options of own data are needed only if its files have moved."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="With --run: leave out pairs with a lower probability (0.5 by default).", min=0, max=1),
    ] = None,
    convention: Annotated[
        EdgeConvention,
        typer.Option(
            help="Count each pair of different nodes once (coalesced), or every edge that the files list, including "
            "repeated edges, both directions, and self-loops, which count twice at their node. Not with --run."
        ),
    ] = EdgeConvention.coalesced,
    largest_component: Annotated[bool, typer.Option(help="Measure only the largest connected component.")] = False,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Show homophily, label informativeness, neighborhoods, degrees, components and spectral gap of a graph.

    Edge weights are ignored. With --run, homophily is also shown separately for pairs of training nodes, of other
    nodes, and of both: each run's graph is measured with its own split, and the values are averaged.
    """
    from gumbel_mpnn import measures
    from gumbel_mpnn.measures import MEASURES
    from gumbel_mpnn.report import Table

    source, as_listed = Source(dataset, nodes, edges, graph, label, features), convention is EdgeConvention.as_listed
    if run is None:
        if threshold is not None:
            raise UserError("--threshold applies to a learned graph: give its runs as --run")
        graphs, pairs = {"value": _given(source, data_root, as_listed)}, None
    else:
        if dataset is not None or as_listed:
            what = "the name of a data set" if dataset is not None else "--convention as_listed"
            raise UserError(f"--run measures the graph of these runs, each pair once: leave out {what}")
        trained, least = common.finished_run(run, runs, source, data_root), 0.5 if threshold is None else threshold
        graphs = {"before": trained.data, "after": trained.rewire(threshold=least)}
        learned = trained.settings.rewiring is not None and not largest_component
        pairs = trained.measure_pairs(least) if learned else None
    if largest_component:
        graphs = {name: measures.largest_component(each) for name, each in graphs.items()}
    values = {name: measures.measure(each, convention=convention.value) for name, each in graphs.items()}
    apart = {name for name, of in MEASURES.items() if as_listed and of.each_edge_once}
    words = {name: of.heading + " (each edge once)" * (name in apart) for name, of in MEASURES.items()}
    rows = [[name, *(of[name] for of in values.values())] for name in MEASURES]
    for kind, of in {} if pairs is None else pairs.kinds.items():
        for name in of.before:
            rows.append([f"{name}_{kind}", of.before[name], of.after[name]])
            words[f"{name}_{kind}"] = f"{MEASURES[name].heading}, {kind.replace('_', '-')}"
    payload: object = values["value"] if run is None else values
    if pairs is not None:
        payload = {**values, "pairs": pairs.to_dict()}
    if not format.is_for_programs:
        rows = [[words[str(row[0])], *row[1:]] for row in rows]
    common.emit(Table(["measure", *values], rows, digits=4, keep_small=True), format, payload)
    if pairs is not None and pairs.overfits:
        common.note(pairs.sentence())


def _given(source: Source, root: Path | None, as_listed: bool) -> Data:
    """The graph that the user names; edges have directions if they are counted as listed and the files have them."""
    from gumbel_mpnn.data import get_spec, load

    data = source.to_measure()
    if not isinstance(data, str):
        if as_listed:
            raise UserError("--convention as_listed applies to named data sets: leave it out")
        return data
    directed = as_listed and get_spec(data).has_directions
    return load(data, root=root, features=False, directed=directed, as_listed=as_listed)
