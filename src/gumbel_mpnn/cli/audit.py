"""`gumbel-mpnn audit`: rank suspicious edges, and missing ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.cli.common import DataRootOption, FormatOption, OutputFormat, RunsOption, emit, in_one_sentence, note
from gumbel_mpnn.cli.finished_runs import RunsArgument, files_of, folder_of, given_data
from gumbel_mpnn.cli.outputs import ForceOption, check_output, check_table_file, is_table, note_of, write_table
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source

if TYPE_CHECKING:
    from pandas import DataFrame

    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.audit import Audit

COLUMNS = ("kind", "source", "target", "evidence")
"""Columns by which a table of this verb is known."""


@in_one_sentence
def audit(
    run: RunsArgument,
    top: Annotated[int, typer.Option(help="Number of edges and of missing pairs that are shown.", min=1)] = 20,
    out: Annotated[
        Path | None, typer.Option(help="File for all edges and candidates, .csv or .json, in place of the tables.")
    ] = None,
    force: ForceOption = False,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Rank the edges of the training graph by how suspicious they are, and other pairs by how likely edges are missing.

    The evidence is the logarithm of the odds that a pair is an edge of this graph and not a random pair, given the
    classes that the models believe in, the similarity of the features and the common neighbors. Edges with the least
    evidence come first, then missing pairs with the most. Every model will do; those that rewire add their learned
    probability. Labels of nodes that no run has trained on are not used.
    """
    import pandas as pd

    from gumbel_mpnn.runs import load_run

    check_table_file("--out", out, format)
    folder = folder_of(run, runs)
    source = Source(None, nodes, edges, graph, label, features)
    check_output("--out", out, is_table(COLUMNS), [*source.files, *files_of(folder)], force)
    found = load_run(folder, data=given_data(folder, source), root=data_root).audit()
    if out is not None:
        kinds = {"edge": found.edges, "missing": found.missing}
        both = pd.concat([table.assign(kind=kind) for kind, table in kinds.items()], ignore_index=True)
        write_table(both[["kind", *found.edges.columns]], out, format)
        note_of(out, f"{counted(len(found.edges), 'edge')} and {counted(len(found.missing), 'missing pair')} are")
        return
    emit(_table(found, top, format), format, found.to_dict(top))
    weights = ", ".join(f"{name.replace('_', ' ')} {weight:.2f}" for name, weight in found.weights.items())
    note(f"weights of the facts in this graph: {weights}")


def _table(found: Audit, top: int, format: OutputFormat) -> Table:
    """Return the first edges and missing pairs; only CSV has all columns, other tables mark predictions with "?"."""
    from gumbel_mpnn.report import Table

    tables = {"edge": found.edges.head(top), "missing": found.missing.head(top)}
    columns = list(map(str, found.edges.columns))
    if format is not OutputFormat.csv:
        tables = {kind: _with_marked_predictions(table) for kind, table in tables.items()}
        columns = [name for name in columns if name not in ("affinity", "source_known", "target_known")]
    rows = [
        [kind, *map(_cell, row)]
        for kind, table in tables.items()
        for row in table[columns].astype(object).itertuples(index=False, name=None)
    ]
    return Table(["kind", *columns], rows, headings={name: name.replace("_", " ") for name in columns})


def _with_marked_predictions(table: DataFrame) -> DataFrame:
    ends = {
        f"{end}_class": [
            str(name) if known else f"{name}?"
            for name, known in zip(table[f"{end}_class"], table[f"{end}_known"], strict=True)
        ]
        for end in ("source", "target")
    }
    return table.assign(**ends)


def _cell(value: object) -> str | int | float | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value != value:
        return None
    return value if isinstance(value, str | int | float) else str(value)
