"""`gumbel-mpnn report`: one HTML file on finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli import common


@common.in_one_sentence
def report(
    run: Annotated[
        list[str],
        typer.Argument(
            help="Folder of a setting or of one run, or the beginning of its fingerprint; several are shown side by"
            " side."
        ),
    ],
    own: common.OwnData,
    out: Annotated[Path, typer.Option(help="File to write, .html.")] = Path("report.html"),
    force: common.ForceOption = False,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Node whose surroundings the explorer must show; may be repeated. For large graphs."),
    ] = None,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    quiet: common.QuietOption = False,
) -> None:
    """Write one HTML page on runs, which opens offline.

    It shows how good the runs are (beside the backbone, the best plain model and the control, if these are in the
    runs folder), what they changed in the graph, suspicious edges, and an explorer of the graph. Nothing is trained.
    """
    from gumbel_mpnn.report.page import write_page

    common.check_output("--out", out, (".html", ".htm"), inputs=own.files, force=force)
    write_page([common.finished_run(each, runs, own, data_root) for each in run], out, around=node or ())
    common.note_of(out, "the page is")
