"""`gumbel-mpnn rewire`: write the graph that runs have learned to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn._util.files import is_standard_output, write_atomically
from gumbel_mpnn.cli.common import (
    DataRootOption,
    FormatOption,
    OutputFormat,
    QuietOption,
    RunsOption,
    emit,
    in_one_sentence,
    note,
)
from gumbel_mpnn.cli.finished_runs import RunsArgument, files_of, folder_of, training_data
from gumbel_mpnn.cli.outputs import ForceOption, check_output, is_learned_graph, note_of, suffix_to_write
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source


@in_one_sentence
def rewire(
    run: RunsArgument,
    out: Annotated[Path, typer.Option(help="File to write: .npz, .csv or .graphml; - for CSV on standard output.")],
    threshold: Annotated[float, typer.Option(help="Leave out pairs with a lower probability.", min=0, max=1)] = 0.5,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    force: ForceOption = False,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    quiet: QuietOption = False,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Write the learned graph, with the weight, the probability and the origin of each edge, and show what changed.

    The weight is the probability times the given weight of the edge, which is 1 by default. A CSV file contains only
    edges and is used together with the file of nodes. Files in npz and GraphML format also contain labels and features
    if the files of the data set are present, or if own files are given with the options of train.
    """
    from gumbel_mpnn.data.export import check_suffix, graph_file, is_directed
    from gumbel_mpnn.graph import without_pairs
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.rewiring import changes
    from gumbel_mpnn.runs.graph_file import find_learned

    suffix, aside = suffix_to_write(out), is_standard_output(out)
    check_suffix(suffix)
    source = Source(None, nodes, edges, graph, label, features)
    folder = folder_of(run, runs)
    check_output("--out", out, is_learned_graph, [*source.files, *files_of(folder)], force)
    learned, _ = find_learned(folder)
    data = learned.to_data(threshold)
    alone = suffix == ".csv"
    trained_on = None if alone and not source.is_own else training_data(folder, source, data_root)
    if trained_on is not None:
        for name, value in without_pairs(trained_on, int(data.num_nodes or 0)).to_dict().items():
            data[name] = value
    write_atomically(out, graph_file(data, suffix))
    given = data.edge_origin if is_directed(data) else data.edge_origin[data.edge_index[0] < data.edge_index[1]]
    counts = {"nodes": data.num_nodes, "edges": len(given), "given": int(given.sum()), "added": int((~given).sum())}
    changed = changes(learned.graph, learned.mean, node_ids=learned.node_ids)
    emit(Table(list(counts), [list(counts.values())]), format, {**counts, "changes": changed.to_dict()}, aside)
    if not format.is_for_programs:
        typer.echo(f"\n{changed.sentence()}", err=aside)
        if changed.largest:
            rows: list[list[str | int | float | None]] = [
                [each.change, str(each.source), str(each.target), each.probability] for each in changed.largest
            ]
            typer.echo("", err=aside)
            table = Table(["change", "source", "target", "probability"], rows, digits=4, keep_small=True)
            emit(table, format, err=aside)
    note_of(out, "the graph is")
    if trained_on is None and not alone:
        note(
            "it has no labels or features: to add them, give the files that the runs were trained on"
            " (--nodes, --edges and --label, or --graph; --data-root for a named data set)"
        )
