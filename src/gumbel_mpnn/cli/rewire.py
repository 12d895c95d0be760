"""`gumbel-mpnn rewire`: the graph that runs have learned, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli.common import FormatOption, OutputFormat, emit, in_one_sentence, note


@in_one_sentence
def rewire(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or of all runs of a setting: they are averaged.")],
    out: Annotated[Path, typer.Option(help="File to write: .npz, .csv or .graphml.")],
    threshold: Annotated[float, typer.Option(help="Leave out pairs less likely than this.", min=0, max=1)] = 0.5,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Write the learned graph: of every edge its weight, its probability, and whether it was given.

    The weight is the probability times the weight that the edge was given with, 1 where it had none.
    """
    from gumbel_mpnn.data.export import check_suffix, is_directed, save_graph
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import learned_graph

    check_suffix(out.suffix)
    data = learned_graph(run, threshold)
    save_graph(data, out)
    given = data.edge_origin if is_directed(data) else data.edge_origin[data.edge_index[0] < data.edge_index[1]]
    counts = {"nodes": data.num_nodes, "edges": len(given), "given": int(given.sum()), "added": int((~given).sum())}
    emit(Table(list(counts), [list(counts.values())]), format, counts)
    note(f"the graph is in {out}")
