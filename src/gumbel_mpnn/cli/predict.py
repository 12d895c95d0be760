"""`gumbel-mpnn predict`: apply trained models to a new or grown graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.cli.common import DataRootOption, FormatOption, OutputFormat, RunsOption, emit, in_one_sentence, note
from gumbel_mpnn.cli.finished_runs import folder_of
from gumbel_mpnn.cli.own_data import EdgesOption, GraphOption, LabelOption, NodesOption, Source

if TYPE_CHECKING:
    import pandas as pd


@in_one_sentence
def predict(
    run: Annotated[
        str,
        typer.Argument(
            help="Folder of a run, folder of a setting, or the beginning of its fingerprint. Several runs are averaged."
        ),
    ],
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write; printed by default.")] = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Predict the class of every node of a graph, with the probability of each class.

    The graph needs the features that the models were trained on, under the same names, but no labels. Candidates are
    found in the new graph. Without a graph, it is the one of training, with the columns of train --predictions.
    """
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import load_run, predictions_of

    check_no_folder("--out", out)
    source = Source(None, nodes, edges, graph, label, None)
    trained = load_run(folder_of(run, runs), root=data_root)
    if source.is_own:
        data = source.to_predict(trained.trained_on.facts.feature_columns, trained.settings.data.undirected)
        table = predictions_of(trained, data)
    else:
        table = trained.predictions()
    if out is not None:
        write_predictions(table, out)
        return
    rows = [[None if value != value else value for value in row] for row in table.itertuples(index=False, name=None)]
    emit(Table(list(map(str, table.columns)), rows, digits=4), format)


def check_no_folder(option: str, path: Path | None) -> None:
    """Raise a `UserError` if the file of an option is a folder, before any work is done."""
    if path is not None and path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")


def write_predictions(table: pd.DataFrame, path: Path) -> None:
    """Write predictions to a CSV file and say so."""
    write_table(table, path)
    note(f"predictions of {counted(len(table), 'node')} are in {path}")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table to a CSV file; probabilities have four decimals."""
    from gumbel_mpnn._util.files import write_atomically

    write_atomically(path, table.to_csv(index=False, float_format="%.4f", lineterminator="\n").encode())
