"""`gumbel-mpnn predict`: apply trained models to a new or grown graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.errors import counted


@common.in_one_sentence
def predict(
    run: common.RunArgument,
    own: common.OwnData,
    out: Annotated[Path | None, typer.Option(help="File to write, .csv or .json; printed by default.")] = None,
    force: common.ForceOption = False,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Predict the class of every node of a graph, with the probability of each class.

    The graph needs the features that the models were trained on, under the same names, but no labels. If its labels are
    known, --label names their column, and the metric of the runs is shown. Candidates are found in the new graph.
    Without a graph, it is the one of training, with the columns of train --predictions.
    """
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.predict import predictions_of, score_on

    trained = common.finished_run(run, runs, root=data_root)
    common.check_output("--out", out, common.TABLES, inputs=own.files, run=trained, force=force)
    score = ""
    if own.is_given:
        data = own.to_predict(trained.feature_columns, trained.settings.data.undirected)
        probability = trained.predict_proba(data)
        table = predictions_of(trained, data, probability, labelled=own.label is not None)
        score = "" if own.label is None else score_on(trained, data, probability)
    else:
        table = trained.predictions()
    if out is not None:
        common.write_table(table, out, f"predictions of {counted(len(table), 'node')} are", format)
    else:
        common.emit(Table.of(table, digits=4), format)
    if score:
        common.note(score)
