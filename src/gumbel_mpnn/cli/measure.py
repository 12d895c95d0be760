"""`gumbel-mpnn measure`: measures of a graph, of all data sets, or of a graph before and after rewiring."""

from __future__ import annotations

import warnings
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import DataWarning, UserError
from gumbel_mpnn.cli.common import (
    DataRootOption,
    FormatOption,
    OutputFormat,
    RunsOption,
    emit,
    in_one_sentence,
    note,
)
from gumbel_mpnn.cli.finished_runs import folder_of, training_data
from gumbel_mpnn.cli.own_data import (
    EdgesOption,
    FeaturesOption,
    GraphOption,
    LabelOption,
    NodesOption,
    Source,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gumbel_mpnn.config import Settings
    from gumbel_mpnn.runs.pair_measures import PairMeasures

Values = dict[str, int | float | None]


class EdgeConvention(StrEnum):
    """How edges are counted; see `gumbel_mpnn.measures.undirected_edges`."""

    coalesced = "coalesced"
    as_listed = "as_listed"


@in_one_sentence
def measure(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`).")] = None,
    every: Annotated[bool, typer.Option("--all", help="Measure all data sets whose files are present.")] = False,
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
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show homophily, label informativeness, neighborhoods, degrees, components and spectral gap of a graph.

    Edge weights are ignored. With --run, homophily is also shown separately for pairs of training nodes, of other
    nodes, and of both: each run's graph is measured with its own split, and the values are averaged.
    """
    source = Source(dataset, nodes, edges, graph, label, features)
    if every and (source.is_own or dataset is not None or run is not None):
        raise UserError("--all measures all data sets that are present: leave out the name, --run and own data")
    if threshold is not None and run is None:
        raise UserError("--threshold applies to a learned graph: give its runs as --run")
    if run is not None and convention is EdgeConvention.as_listed:
        raise UserError(
            "--convention as_listed applies to files: a learned graph lists every pair once, so leave it out"
        )
    if every:
        _measure_all(data_root, convention, largest_component, format)
        return
    folder = None if run is None else _only_setting(folder_of(run, runs))
    sdrf = None if folder is None else _settings_of_sdrf(folder)
    data: str | Data | None = None
    if sdrf is not None and source.is_own:  # SDRF sees features
        data = source.to_train_on(sdrf.data.undirected)
    elif dataset is not None or source.is_own or run is None:
        data = source.to_measure(as_listed=convention is EdgeConvention.as_listed)
    if isinstance(data, str):
        data = _load(data, data_root, convention, features=sdrf is not None)
    if folder is not None:
        _compare(folder, sdrf, data, threshold, data_root, largest_component, format, source)
    elif data is not None:
        values = _measured(data, convention, largest_component)
        _emit_columns({"value": values}, format, values, convention)


def _measure_all(root: Path | None, convention: EdgeConvention, largest: bool, format: OutputFormat) -> None:
    """Print one row for each data set whose files are present; features are not needed."""
    from gumbel_mpnn.data import GeneratedSpec, locate, specs
    from gumbel_mpnn.measures import MEASURES
    from gumbel_mpnn.report import Table

    here: list[str] = []
    missing: list[str] = []
    for name, spec in specs.items():
        if isinstance(spec, GeneratedSpec):
            continue
        presence = locate(spec, root)
        (here if presence.complete or presence.without_features else missing).append(name)
    rows = []
    for name in here:
        note(f"measuring {name}")
        rows.append([name, *_measured(_load(name, root, convention), convention, largest).values()])
    if missing:
        note(f"files not found: {', '.join(missing)}")
    headings = {"dataset": "data set"} | {name: _heading(name, convention) for name in MEASURES}
    emit(Table(["dataset", *MEASURES], rows, headings, digits=4, keep_small=True), format)


def _compare(
    run: Path,
    sdrf: Settings | None,
    given: Data | None,
    threshold: float | None,
    root: Path | None,
    largest: bool,
    format: OutputFormat,
    source: Source,
) -> None:
    """Compare the graph that runs were trained on with the graph that they learned, or that SDRF made."""
    pairs: PairMeasures | None = None
    if sdrf is None:
        before, after = _learned(run, given, 0.5 if threshold is None else threshold, root)
        pairs = None if largest else _pairs(run, source, root, 0.5 if threshold is None else threshold)
    elif threshold is not None:
        raise UserError("--threshold applies to a learned graph, and the graph of sdrf is not learned: leave it out")
    else:
        from gumbel_mpnn._util.live_line import StepLine
        from gumbel_mpnn.training import prepare

        before = _training_graph(run, given, root, features=True)
        with closing(StepLine("SDRF")) as line:
            after = prepare(before, sdrf, line)
    graphs = {"before": before, "after": after}
    compared = {name: _measured(graph, EdgeConvention.coalesced, largest) for name, graph in graphs.items()}
    payload = compared if pairs is None else {**compared, "pairs": pairs.to_dict()}
    _emit_columns(compared, format, payload, pairs=pairs)
    if pairs is not None and pairs.overfits:
        note(pairs.sentence())


def _only_setting(folder: Path) -> Path:
    """Return the folder of the setting under `folder` if there is only one, else `folder`."""
    from gumbel_mpnn.runs.query import RECORD

    settings = {record.parent.parent for record in folder.glob(f"*/**/{RECORD}")}
    return settings.pop() if len(settings) == 1 else folder


def _pairs(run: Path, source: Source, root: Path | None, threshold: float) -> PairMeasures | None:
    """Measure the pairs of training nodes and of others; None if the data with its splits cannot be read."""
    from gumbel_mpnn.runs.graph_file import find_learned
    from gumbel_mpnn.runs.pair_measures import measure_pairs
    from gumbel_mpnn.runs.query import RECORD, read_record

    own = replace(source, dataset=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # these were shown before, when the graph was read
        try:
            data = training_data(run, own, root)
            if data is not None:
                learned, folders = find_learned(run)
                splits = [read_record(folder / RECORD).split for folder in folders]
                return measure_pairs(learned, data, splits, threshold)
            reason = "its files are not complete, or differ from those that the runs were trained on"
        except UserError as error:
            reason = str(error)
    note(f"pairs of training nodes are not measured separately, which needs the data of training: {reason}")
    return None


def _settings_of_sdrf(run: Path) -> Settings | None:
    """Return the settings of the runs in `run` if their model is `sdrf`, whose graph is not stored, else None."""
    from gumbel_mpnn.config import Settings
    from gumbel_mpnn.runs.query import find_records

    found = [record.settings for record in find_records(run)]
    if not found or any(settings["model"]["name"] != "sdrf" for settings in found):
        return None
    if any(settings != found[0] for settings in found):
        raise UserError(f"the runs in {run} have different settings: give the folder of one setting")
    return Settings.from_dict(found[0])


def _learned(run: Path, given: Data | None, threshold: float, root: Path | None) -> tuple[Data, Data]:
    """Return the graph that the runs in `run` were trained on and the graph that they learned, with labels."""
    import torch
    from torch_geometric.data import Data

    from gumbel_mpnn.measures import undirected_edges
    from gumbel_mpnn.runs import learned_graph

    pairs = learned_graph(run, threshold=0.0)  # all pairs
    given = _training_graph(run, given, root)
    before, after = (
        Data(edge_index=pairs.edge_index[:, chosen], y=given.get("y"), num_nodes=pairs.num_nodes)
        for chosen in (pairs.edge_origin, pairs.edge_probability >= threshold)
    )
    if given.num_nodes != pairs.num_nodes or not torch.equal(undirected_edges(given), undirected_edges(before)):
        raise UserError(f"the runs in {run} were trained on another graph than the one given")
    return before, after


def _training_graph(run: Path, given: Data | None, root: Path | None, features: bool = False) -> Data:
    """Return the graph that the runs in `run` were trained on: `given`, or the data set or own files, read again."""
    from gumbel_mpnn.runs.loading import dataset_of
    from gumbel_mpnn.runs.query import find_records

    hashes = {
        (record.settings["dataset"], record.settings["data"].get("attack", "")): record.data_hash
        for record in find_records(run)
    }
    if len(hashes) != 1:
        raise UserError(f"the runs in {run} use {len(hashes)} data sets: give the folder of one setting")
    if given is not None:
        return given
    (((name, attack), digest),) = hashes.items()
    dataset = dataset_of(name, digest)
    if dataset is not None:
        return _load(dataset, root, EdgeConvention.coalesced, features, attack)
    data = training_data(run, Source(None, None, None, None, None, None), root)
    if data is not None:
        return data
    raise UserError(
        f"the files that the runs in {run} were trained on are not there any more, or have changed: give them too"
        " (--nodes, --edges and --label, or --graph)"
    )


def _load(name: str, root: Path | None, convention: EdgeConvention, features: bool = False, attack: str = "") -> Data:
    """Load a data set; edges have directions if they are counted as listed and the files have them."""
    from gumbel_mpnn.data import get_spec, load

    as_listed = convention is EdgeConvention.as_listed
    directed = as_listed and get_spec(name).has_directions
    return load(name, root=root, features=features, directed=directed, as_listed=as_listed, attack=attack)


def _measured(data: Data, convention: EdgeConvention, largest: bool) -> Values:
    from gumbel_mpnn import measures

    data = measures.largest_component(data) if largest else data
    return measures.measure(data, convention=convention.value)


def _heading(name: str, convention: EdgeConvention) -> str:
    """Return the heading of a measure, with a remark if the measure does not follow the convention."""
    from gumbel_mpnn.measures import MEASURES

    measure = MEASURES[name]
    apart = convention is EdgeConvention.as_listed and measure.each_edge_once
    return f"{measure.heading} (each edge once)" if apart else measure.heading


def _emit_columns(
    columns: dict[str, Values],
    format: OutputFormat,
    payload: object,
    convention: EdgeConvention = EdgeConvention.coalesced,
    pairs: PairMeasures | None = None,
) -> None:
    """Print one row for each measure, also of each kind of pairs, and one column for each graph."""
    from gumbel_mpnn.measures import MEASURES
    from gumbel_mpnn.report import Table

    readable = not format.is_for_programs
    rows = [
        [_heading(name, convention) if readable else name, *(values[name] for values in columns.values())]
        for name in MEASURES
    ]
    for kind, values in {} if pairs is None else pairs.kinds.items():
        for name in values.before:
            words = f"{MEASURES[name].heading}, {kind.replace('_', '-')}"
            rows.append([words if readable else f"{name}_{kind}", values.before[name], values.after[name]])
    emit(Table(["measure", *columns], rows, digits=4, keep_small=True), format, payload)
