"""The result of reproducing a table: its rows, its runs, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from gumbel_mpnn._util.files import is_stream, write_atomically
from gumbel_mpnn.data import locate, specs
from gumbel_mpnn.paper.page import Analysis, Page
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.summary import Collected
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.report.grid import grid_table
from gumbel_mpnn.report.style import MODEL_COLUMN, MODEL_NAMES
from gumbel_mpnn.runs import Run

TABLE = "<!-- table -->"
"""Separates the notes that are shown above a table from those below it."""
NOTES_OF_FULL_TABLE = (
    "The notes below describe the full table, made without `--only`, `--quick`, `--set` and `--dataset`. What they"
    " say about results, splits and seeds does not apply to the rows above."
)


@dataclass(frozen=True)
class Reproduction:
    """A reproduced table."""

    page: Page
    rows: list[Row]
    runs: Sequence[Run] = ()
    """Runs from which the rows were computed; empty for tables without training."""
    request: Request = field(default_factory=Request)
    missing: frozenset[str] = frozenset()
    """Data sets without results. For an analysis, all data sets that were requested."""
    lead: str = ""
    """Markdown shown above the table."""
    remarks: str = ""
    """Markdown shown below the table."""
    pages: tuple[Path, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """With `all`, the tables that failed, as name → reason."""

    @property
    def trains(self) -> bool:
        """Whether the table is made from trained models."""
        return not isinstance(self.page, Analysis)

    def table(self) -> Table:
        """Return the rows as a table that shows the display names of models."""
        return Table(
            list(self.rows[0]) if self.rows else [],
            [list(row.values()) for row in self.rows],
            self.page.all_headings(),
            digits=self.page.digits,
            words={MODEL_COLUMN: MODEL_NAMES},
        )

    def shares(self) -> list[Row]:
        """Return the rows with shares between 0 and 1 in place of per cent."""
        return [self.page.shares(row) for row in self.rows]

    def collected(self) -> Collected:
        """Return what the summary needs of the table."""
        return Collected(self.rows, self.missing)

    def absent_datasets(self) -> set[str]:
        """Return the requested data sets whose files were not found."""
        presence = {name: locate(specs[name], self.request.root) for name in self.missing & specs.keys()}
        enough = {name: here.complete or (here.without_features and not self.trains) for name, here in presence.items()}
        return {name for name, is_enough in enough.items() if not is_enough}

    def markdown(self, out: Path, figure: str = "") -> str:
        """Return the page as Markdown, with the command that writes it to `out`.

        `figure` is the file name of the figure; empty if there is none.
        """
        machines = sorted({record.machine["device"] for run in self.runs for record in run.records})
        versions = sorted({f"torch {record.machine['torch']}" for run in self.runs for record in run.records})
        origin = f"Made by\n\n```\n{self.request.command(self.page.name, out, self.trains)}\n```"
        if self.runs:
            origin += f"\n\non {', '.join(machines)} with {', '.join(versions)}."
        notes = resources.files(__package__) / "notes" / f"{self.page.name}.md"
        above, _, below = (notes.read_text(encoding="utf-8") if notes.is_file() else "").rpartition(TABLE)
        parts = [f"# {self.page.title}", origin, above.strip(), self.lead]
        if figure:
            parts.append(f"![{self.page.title}]({figure})")
        if self.page.grid is not None and self.rows:
            grid = grid_table(self.page.grid, self.rows, self.page.all_headings())
            parts += [self.page.grid.caption, grid.render("markdown")]
        parts += [self.table().render("markdown"), self.remarks]
        if below:
            parts += ["" if self.request.is_standard else NOTES_OF_FULL_TABLE, below.strip()]
        return "\n\n".join(filter(None, parts)) + "\n"

    def write(self, path: str | Path) -> list[Path]:
        """Write the page, and beside it the rows as CSV and the figure, if there is one, as PNG and PDF.

        The page alone is written to a pipe, or to standard output if the path is `-`. Returns the files that were
        written; the page is the first.
        """
        path = Path(path)
        if is_stream(path):
            write_atomically(path, self.markdown(path).encode())
            return [path]
        rows = path.with_suffix(".csv")
        write_atomically(rows, (self.table().render("csv") + "\n").encode())
        pictures = [path.with_suffix(".png"), path.with_suffix(".pdf")]
        drawn = self.page.draw(self.rows, self.runs, self.request.root, pictures)
        write_atomically(path, self.markdown(path, pictures[0].name if drawn else "").encode())
        return [path, rows, *(pictures if drawn else [])]
