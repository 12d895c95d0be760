"""A result as a Markdown page: the command that made it, the machine, the table, what to make of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from gumbel_mpnn.experiments import Analysis, Experiment
from gumbel_mpnn.experiments.base import Row
from gumbel_mpnn.report.table import Table
from gumbel_mpnn.runs import Run


def rows_table(experiment: Experiment | Analysis, rows: Sequence[Row]) -> Table:
    """The rows of an experiment as a table."""
    columns = list(rows[0]) if rows else []
    digits = getattr(experiment, "digits", 2)
    return Table(columns, [list(row.values()) for row in rows], experiment.headings, digits)


def document(experiment: Experiment | Analysis, rows: Sequence[Row], runs: Sequence[Run], command: str) -> str:
    """The page of an experiment, Markdown; `runs` are those it was made of, if it trained any."""
    machines = sorted({record.machine["device"] for run in runs for record in run.records})
    versions = sorted({f"torch {record.machine['torch']}" for run in runs for record in run.records})
    parts = [
        f"# {experiment.title}",
        f"Made by\n\n```\n{command}\n```"
        + (f"\n\non {', '.join(machines)} with {', '.join(versions)}." if runs else ""),
        rows_table(experiment, rows).render("markdown"),
    ]
    notes = resources.files("gumbel_mpnn") / "experiments" / "notes" / f"{experiment.name}.md"
    if notes.is_file():
        parts.append(notes.read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"
