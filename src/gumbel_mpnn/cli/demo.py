"""`gumbel-mpnn demo`: train and compare models on a generated graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli import common


@common.in_one_sentence
def demo(
    out: Annotated[Path, typer.Option(help="Folder for runs, table, figure and page.")] = Path("gumbel-mpnn-demo"),
    device: common.DeviceOption = "auto",
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Train and compare models on a generated graph that has many random edges among the useful ones."""
    from gumbel_mpnn.report import run_table
    from gumbel_mpnn.report.demo import demo_figure, run_demo
    from gumbel_mpnn.report.page import write_page
    from gumbel_mpnn.util.files import write_atomically

    runs = run_demo(out / "runs", device)
    table = run_table(runs)
    write_atomically(out / "demo.md", (table.render("markdown") + "\n").encode())
    demo_figure(runs[0].data, runs, out / "demo.png")
    write_page([run for run in runs if run.rewires or run.choice is not None], out / "demo.html")
    common.emit(table, format, [run.to_dict() for run in runs])
    common.note(f"the table is in {out / 'demo.md'}, the figure in {out / 'demo.png'}, the runs in {out / 'runs'}")
    common.note(f"open {out / 'demo.html'} in a browser: how good the models are, what they changed, and the graph")
