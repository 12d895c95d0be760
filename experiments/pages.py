"""Pages of results: a table for people, its figure, how it was made, and what it says; all rows are beside as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import join

from experiments.experiment import Page, Results
from experiments.rows import paragraphs
from gumbel_mpnn.report import Row
from gumbel_mpnn.util import UserError, write_atomically

NOTES = Path(__file__).parent / "notes"
NOTES_OF_FULL_TABLE = (
    "The notes below describe the full table, made without `--only`, `--quick` and `--set`. What they say about"
    " results, splits and seeds does not apply to the rows above."
)
MADE_BY = re.compile(r"Made by\n\n```\n.*?\n```(?:\n\non [^\n]+)?", re.DOTALL)
"""How a page was made: the command and, where models were trained, the machines."""


def check_page(page: Page, out: Path) -> None:
    """Raise a `UserError` if `out` cannot be the file of a page; called before training."""
    if out.suffix.lower() != ".md" or out.is_dir():
        raise UserError(f"{out} is not a Markdown file: give the page a name that ends in .md")
    if out.exists() and not out.read_text(encoding="utf-8").startswith("# "):
        raise UserError(f"{out} is not a page of results: give the page of {page.name} another name")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"nothing can be written to the folder {out.parent}: {error.strerror}") from None


def made_by(arguments: Sequence[str], results: Results) -> str:
    """Return how a page was made: the command, and the machines and versions of its runs."""
    records = [record for run in results.values() if run is not None for record in run.records]
    machines = sorted({record.machine["device"] for record in records})
    versions = sorted({f"torch {record.machine['torch']}" for record in records})
    origin = f"on {', '.join(machines)} with {', '.join(versions)}." if records else ""
    return paragraphs(f"Made by\n\n```\n{join(['python', '-m', 'experiments', *arguments])}\n```", origin)


def write_page(
    page: Page,
    rows: Sequence[Row],
    out: Path,
    made: str = "",
    results: Results | None = None,
    is_full: bool = True,
) -> list[Path]:
    """Write the rows as CSV, the figure, if there is one, as PNG and PDF, and then the page; returns the files.

    Args:
        page: The experiment or analysis.
        rows: Its rows.
        out: File of the page; the others have its name.
        made: How it was made; as the page says that is there already, if empty.
        results: Runs from which the rows were computed; None if they were read from the CSV, and then the figure stays
            if it cannot be drawn from the rows.
        is_full: Whether the table has all of its rows, so that the notes are about them.
    """
    if results is not None:
        write_atomically(out.with_suffix(".csv"), (page.table(rows).render("csv") + "\n").encode())
    pictures = [out.with_suffix(".png"), out.with_suffix(".pdf")]
    drawn = page.draw(rows, results or {}, pictures) or (results is None and all(map(Path.is_file, pictures)))
    note = NOTES / f"{page.name}.md"
    notes = note.read_text(encoding="utf-8").strip() if note.is_file() else ""
    text = paragraphs(
        f"# {page.title}",
        made or _origin_of(out),
        f"![{page.title}]({pictures[0].name})" if drawn else "",
        page.shown(rows),
        f"All rows and columns are in [{out.stem}.csv]({out.stem}.csv).",
        NOTES_OF_FULL_TABLE if notes and not is_full else "",
        notes,
    )
    write_atomically(out, (text + "\n").encode())
    return [out, out.with_suffix(".csv"), *(pictures if drawn else [])]


def _origin_of(out: Path) -> str:
    found = MADE_BY.search(out.read_text(encoding="utf-8")) if out.is_file() else None
    return found[0] if found else ""


def read_rows(path: Path) -> list[Row]:
    """Read the rows beside a page."""
    if not path.is_file():
        raise UserError(f"there is no file {path}: make the table first, without --from-csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> str | int | float | None:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text or None
