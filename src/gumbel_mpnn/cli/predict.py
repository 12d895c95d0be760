"""`gumbel-mpnn predict`: apply trained models to a new or grown graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli.common import DataRootOption, FormatOption, OutputFormat, RunsOption, emit, in_one_sentence, note
from gumbel_mpnn.cli.finished_runs import RunsArgument, files_of, folder_of
from gumbel_mpnn.cli.outputs import (
    PREDICTIONS,
    PREDICTIONS_OF_OTHERS,
    ForceOption,
    check_output,
    check_table_file,
    is_table,
    rows_of,
    write_predictions,
)
from gumbel_mpnn.cli.own_data import EdgesOption, GraphOption, LabelOption, NodesOption, Source


@in_one_sentence
def predict(
    run: RunsArgument,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    out: Annotated[Path | None, typer.Option(help="File to write, .csv or .json; printed by default.")] = None,
    force: ForceOption = False,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    format: FormatOption = OutputFormat.text,
) -> None:
    """Predict the class of every node of a graph, with the probability of each class.

    The graph needs the features that the models were trained on, under the same names, but no labels. If its labels are
    known, --label names their column, and the metric of the runs is shown. Candidates are found in the new graph.
    Without a graph, it is the one of training, with the columns of train --predictions.
    """
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import load_run, predictions_of
    from gumbel_mpnn.runs.predictions import score_on

    check_table_file("--out", out, format)
    score = ""
    source = Source(None, nodes, edges, graph, label, None)
    folder = folder_of(run, runs)
    is_ours = is_table(PREDICTIONS, PREDICTIONS_OF_OTHERS)
    check_output("--out", out, is_ours, [*source.files, *files_of(folder)], force)
    trained = load_run(folder, root=data_root)
    if source.is_own:
        data = source.to_predict(trained.trained_on.facts.feature_columns, trained.settings.data.undirected)
        probability = trained.predict_proba(data)
        table = predictions_of(trained, data, probability, labelled=label is not None)
        if label is not None:
            score = score_on(trained, data, probability)
    else:
        table = trained.predictions()
    if out is not None:
        write_predictions(table, out, format)
    else:
        emit(Table(list(map(str, table.columns)), rows_of(table), digits=4), format)
    if score:
        note(score)
