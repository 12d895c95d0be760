"""`gumbel-mpnn audit`: rank suspicious edges, and missing ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.errors import counted


@common.in_one_sentence
def audit(
    run: common.RunArgument,
    own: common.OwnData,
    top: Annotated[int, typer.Option(help="Number of edges and of missing pairs that are shown.", min=1)] = 20,
    out: Annotated[
        Path | None, typer.Option(help="File for all edges and candidates, .csv or .json, in place of the tables.")
    ] = None,
    force: common.ForceOption = False,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Rank the edges of the training graph by how suspicious they are, and other pairs by how likely edges are missing.

    The evidence is the logarithm of the odds that a pair is an edge of this graph and not a random pair, given the
    classes that the models believe in, the similarity of the features and the common neighbors. Edges with the least
    evidence come first, then missing pairs with the most. Every model will do; those that rewire add their learned
    probability. Labels of nodes that no run has trained on are not used.
    """
    import pandas as pd

    from gumbel_mpnn.report import Table

    trained = common.finished_run(run, runs, own, data_root)
    common.check_output("--out", out, common.TABLES, inputs=own.files, run=trained, force=force)
    found = trained.audit()
    most = None if out is not None else top
    kinds = {"edge": found.edges[:most], "missing": found.missing[:most]}
    table = pd.concat(kinds, names=["kind"]).reset_index("kind").reset_index(drop=True)
    if out is not None:
        counts = f"{counted(len(found.edges), 'edge')} and {counted(len(found.missing), 'missing pair')} are"
        common.write_table(table, out, counts, format)
        return
    if format is not common.OutputFormat.csv:  # the others mark predicted classes with a question mark
        for end in ("source", "target"):
            mark = table.pop(f"{end}_known").map({True: "", False: "?"})
            table[f"{end}_class"] = table[f"{end}_class"].astype(str) + mark
        table = table.drop(columns="affinity")
    headings = {name: name.replace("_", " ") for name in table.columns}
    common.emit(Table.of(table, headings=headings), format, found.to_dict(top))
