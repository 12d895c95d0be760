"""A result as a Markdown page: the command that made it, the machine, figure and table, what to make of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from gumbel_mpnn._util.files import write_atomically
from gumbel_mpnn.paper import Page
from gumbel_mpnn.paper.base import Row
from gumbel_mpnn.report.chart import draw_charts
from gumbel_mpnn.report.grid import grid_table
from gumbel_mpnn.report.names import MODEL_COLUMN, MODEL_NAMES
from gumbel_mpnn.report.table import Table
from gumbel_mpnn.runs import Run

OTHER_ROWS = (
    "What follows was written of the whole table, made without `--quick`, `--set` and `--dataset`: what it says of"
    " figures, of splits and of seeds is not said of the rows above."
)


def rows_table(experiment: Page, rows: Sequence[Row]) -> Table:
    """The rows of an experiment as a table, models by the names that people know."""
    return Table(
        list(rows[0]) if rows else [],
        [list(row.values()) for row in rows],
        experiment.headings,
        digits=experiment.digits,
        words={MODEL_COLUMN: MODEL_NAMES},
    )


def document(
    experiment: Page,
    rows: Sequence[Row],
    runs: Sequence[Run],
    command: str,
    *,
    lead: str = "",
    remarks: str = "",
    figure: str = "",
    whole: bool = True,
) -> str:
    """The page of an experiment, Markdown.

    Args:
        experiment: What was done.
        rows: Its result.
        runs: Those it was made of, if it trained any.
        command: What makes it again.
        lead: What is to be read first, Markdown.
        remarks: What the experiment says of its runs, Markdown.
        figure: The file name of its figure, if it has one.
        whole: Whether the rows are those of the table as the package plans it, which its notes are about.
    """
    machines = sorted({record.machine["device"] for run in runs for record in run.records})
    versions = sorted({f"torch {record.machine['torch']}" for run in runs for record in run.records})
    parts = [
        f"# {experiment.title}",
        f"Made by\n\n```\n{command}\n```"
        + (f"\n\non {', '.join(machines)} with {', '.join(versions)}." if runs else ""),
    ]
    parts += [lead] if lead else []
    if figure:
        parts.append(f"![{experiment.title}]({figure})")
    grid = experiment.grid
    if grid is not None and rows:
        parts += [grid.caption, grid_table(grid, rows, experiment.headings).render("markdown")]
    parts.append(rows_table(experiment, rows).render("markdown"))
    parts += [remarks] if remarks else []
    notes = resources.files(__package__) / "notes" / f"{experiment.name}.md"
    if notes.is_file():
        parts += [] if whole else [OTHER_ROWS]
        parts.append(notes.read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def write_page(
    path: Path,
    experiment: Page,
    rows: Sequence[Row],
    runs: Sequence[Run],
    command: str,
    remarks: str = "",
    lead: str = "",
    whole: bool = True,
) -> list[Path]:
    """Write the page of an experiment, its rows as CSV and its figure as PNG and PDF beside it; what was written."""
    written = [path.with_suffix(".csv")]
    write_atomically(written[0], (rows_table(experiment, rows).render("csv") + "\n").encode())
    pictures = [path.with_suffix(".png"), path.with_suffix(".pdf")]
    drawn = draw_charts(experiment.charts, rows, pictures)
    figure = pictures[0].name if drawn else ""
    page = document(experiment, rows, runs, command, lead=lead, remarks=remarks, figure=figure, whole=whole)
    write_atomically(path, page.encode())
    return [path, *written, *(pictures if drawn else [])]
