"""Sentences and small tables that pages compute from their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.paper.compared import CONTROL_OF
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.report.table import Cell
from gumbel_mpnn.runs.query import ONE_SPLIT

NO_DATA = "no data"


def remarks_of(lines: Iterable[str], table: str = "") -> str:
    """Return a list of sentences, of which some may be empty, and a table below it, as Markdown."""
    return "\n\n".join(filter(None, ["\n".join(f"- {line}" for line in lines if line), table]))


def verdicts(who: str, whom: str, rows: Iterable[Row], column: str = "verdict", noun: str = "case") -> str:
    """Return a sentence that counts the verdicts in a column; empty if there are none.

    Args:
        who: Name of what is compared.
        whom: Name of what it is compared with.
        rows: Rows of a table.
        column: Column of verdicts.
        noun: What a row is.
    """
    found = [str(row[column]) for row in rows if row[column] not in (None, NO_DATA)]
    if not found:
        return ""
    counts = Counter(verdict.removesuffix(ONE_SPLIT) for verdict in found)
    few, parts = counts.pop("too few splits", 0), []
    if counts:
        parts.append(f"better on {counts['better']}, the same on {counts['same']}, worse on {counts['worse']}")
    if few:
        parts.append(f"too few splits for a test on {few}")
    text = f"{who} against {whom}, {counted(len(found), noun)}: {', '.join(parts)}"
    if of_seeds := sum(verdict.endswith(ONE_SPLIT) for verdict in found):
        text += f"; {of_seeds} of the tests {'is' if of_seeds == 1 else 'are'} over the seeds of one split"
    return f"{text}."


def gains(rows: Sequence[Row], noun: str = "case") -> list[str]:
    """Return how often our models are better than the best plain model and than their controls, for `compared` rows."""
    lines = []
    for model, control in CONTROL_OF.items():
        mine = [row for row in rows if row["model"] == model]
        name, other = (MODEL_NAMES.get(each, each) for each in (model, control))
        lines.append(verdicts(name, "the best plain model", mine, noun=noun))
        lines.append(verdicts(name, f"its control {other} (what is learned)", mine, "learned_verdict", noun))
    return lines


def tests_of(rows: Iterable[Row], *columns: str) -> dict[tuple[str, str], dict[tuple[Cell, ...], float]]:
    """Return test results in per cent: data set and model → values of these columns → result."""
    found: dict[tuple[str, str], dict[tuple[Cell, ...], float]] = {}
    for row in rows:
        if isinstance(test := row["test"], float):
            key = tuple(row[column] for column in columns)
            found.setdefault((str(row["dataset"]), str(row["model"])), {})[key] = test
    return found


def table_of(names: Sequence[str], figures: Mapping[tuple[str, str], Sequence[Cell]]) -> str:
    """Return a table of figures of each data set and model, as Markdown; those without any are left out.

    Args:
        names: Headings of the figures.
        figures: Data set and model → figures.
    """
    lines = [
        [dataset, MODEL_NAMES.get(model, model), *cells]
        for (dataset, model), cells in figures.items()
        if any(cell is not None for cell in cells)
    ]
    return Table(["data set", "model", *names], lines).render("markdown") if lines else ""
