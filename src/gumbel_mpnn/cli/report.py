"""`gumbel-mpnn report`: one HTML file on finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli.common import DataRootOption, QuietOption, RunsOption, in_one_sentence
from gumbel_mpnn.cli.finished_runs import folder_of, given_data
from gumbel_mpnn.cli.outputs import ForceOption, check_output, is_report, note_of
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source


@in_one_sentence
def report(
    run: Annotated[
        list[str],
        typer.Argument(
            help="Folder of a run, folder of a setting, or the beginning of its fingerprint; several are shown side by"
            " side."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write, .html.")] = Path("report.html"),
    force: ForceOption = False,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Node whose surroundings the explorer must show; may be repeated. For large graphs."),
    ] = None,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    quiet: QuietOption = False,
) -> None:
    """Write one HTML page on runs, which opens offline.

    It shows how good the runs are (beside the backbone, the best plain model and the control, if these are in the
    runs folder), what they changed in the graph, suspicious edges, and an explorer of the graph. Nothing is trained.
    """
    from gumbel_mpnn.report.page.write import check_page_file, write_page
    from gumbel_mpnn.runs import load_run

    check_page_file(out)
    source = Source(None, nodes, edges, graph, label, features)
    check_output("--out", out, is_report, source.files, force)
    folders = [folder_of(each, runs) for each in run]
    found = [load_run(folder, data=given_data(folder, source), root=data_root) for folder in folders]
    write_page(found, out, around=node or ())
    note_of(out, "the page is")
