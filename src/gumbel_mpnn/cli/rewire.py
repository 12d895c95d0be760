"""`gumbel-mpnn rewire`: write the graph that runs have learned to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.files import is_standard_output, suffix_of, write_atomically


@common.in_one_sentence
def rewire(
    run: common.RunArgument,
    own: common.OwnData,
    out: Annotated[Path, typer.Option(help="File to write: .npz, .csv or .graphml; - for CSV on standard output.")],
    threshold: Annotated[float, typer.Option(help="Leave out pairs with a lower probability.", min=0, max=1)] = 0.5,
    force: common.ForceOption = False,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    quiet: common.QuietOption = False,
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Write the learned graph, with the weight, the probability and the origin of each edge, and show what changed.

    The weight is the probability times the given weight of the edge, which is 1 by default. A CSV file contains only
    edges and is used together with the file of nodes. Files in npz and GraphML format also contain labels and features
    if the files of the data set are present, or if own files are given with the options of train.
    """
    from gumbel_mpnn.data.export import graph_file, is_directed
    from gumbel_mpnn.report import Table

    trained = common.finished_run(run, runs, own, data_root)
    forms = (".npz", ".csv", ".graphml")
    common.check_output("--out", out, forms, inputs=own.files, run=trained, force=force)
    data, changes = trained.rewire(threshold=threshold), trained.changes()
    suffix, aside = suffix_of(out) or ".csv", is_standard_output(out)
    write_atomically(out, graph_file(data, suffix))
    given = data.edge_origin if is_directed(data) else data.edge_origin[data.edge_index[0] < data.edge_index[1]]
    counts = {"nodes": data.num_nodes, "edges": len(given), "given": int(given.sum()), "added": int((~given).sum())}
    common.emit(Table(list(counts), [list(counts.values())]), format, {**counts, "changes": changes.to_dict()}, aside)
    if not format.is_for_programs:
        typer.echo(f"\n{changes.sentence()}", err=aside)
        rows: list[list[str | int | float | None]] = [
            [each.change, str(each.source), str(each.target), each.probability] for each in changes.largest
        ]
        if rows:
            typer.echo("", err=aside)
            columns = ["change", "source", "target", "probability"]
            common.emit(Table(columns, rows, digits=4, keep_small=True), format, err=aside)
    common.note_of(out, "the graph is")
    if suffix != ".csv" and data.get("y") is None:
        common.note(
            "it has no labels or features: to add them, give the files that the runs were trained on"
            " (--nodes, --edges and --label, or --graph; --data-root for a named data set)"
        )
