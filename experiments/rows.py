"""Columns of rows, and tables and sentences made from rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from experiments.published import Fixed
from gumbel_mpnn import compare
from gumbel_mpnn.report import MODEL_NAMES as NAMES
from gumbel_mpnn.report import Cell, Markdown, Row, Table
from gumbel_mpnn.runs import ONE_SPLIT, Paired, Run, RunSpec, Summary, corrected, flat
from gumbel_mpnn.util import counted

Columns = dict[str, str | int | float | None]
K = TypeVar("K", bound=Hashable)
MODEL_NAMES: Mapping[str, str] = {
    **NAMES,
    "jaccard": "GCN-Jaccard",
    "gnn-guard": "GNNGuard",
    "soft-median": "Soft-Median",
    "knn": "kNN-GCN",
    "auto-frozen": "Auto-frozen",
    "auto-random": "Auto-random",
    "auto-wary": "Auto-wary",
    "auto-wary-frozen": "Auto-wary-frozen",
}
"""Display names of models, with those of the experiments."""
PAIRED = ("difference", "low", "high", "p", "over", "verdict")
"""Columns of a paired difference."""
NO_DATA, DASH = "no data", "–"


def figures(run: Run, with_std: bool = True) -> Columns:
    """Return the mean test result in percent, its standard deviation and standard error, and the number of runs."""
    std, stderr = spread(run.test)
    return {"test": 100 * run.test.mean, **({"std": std} if with_std else {}), "stderr": stderr, "n": run.n}


def spread(summary: Summary) -> tuple[float | None, float | None]:
    """Return standard deviation and standard error in percent; both are None for a single run."""
    return (100 * summary.std, 100 * summary.stderr) if summary.n > 1 else (None, None)


def percent(run: Run | None) -> float | None:
    """Return the mean test result in percent."""
    return None if run is None else 100 * run.test.mean


def difference(run: Run, other: Run | None) -> Columns:
    """Return the paired difference of two runs in percent, with interval, p-value and verdict.

    All columns are None if there is no `other` run.
    """
    return _columns(None if other is None else compare(run.records, other.records))


def differences(pairs: Mapping[K, tuple[Run | None, Run | None]]) -> dict[K, Columns]:
    """Return the paired difference for each key, such as a data set; p-values and verdicts are corrected."""
    compared = corrected(
        {
            key: compare(run.records, other.records)
            for key, (run, other) in pairs.items()
            if run is not None and other is not None
        }
    )
    return {key: _columns(compared.get(key)) for key in pairs}


def _columns(paired: Paired | None) -> Columns:
    if paired is None:
        return dict.fromkeys(PAIRED)
    shares = {"difference": paired.mean, "low": paired.low, "high": paired.high}
    in_percent = {name: None if share is None else 100 * share for name, share in shares.items()}
    return {**in_percent, "p": paired.p, "over": paired.over, "verdict": paired.verdict}


def over_runs(measured: Sequence[Mapping[str, float | None]], counts: Collection[str] = ()) -> Columns:
    """Return the mean of each measure over runs and, as `<measure>_std`, its standard deviation.

    Runs without a value are left out. A single run has no standard deviation. Means of `counts` are shown with one
    decimal.
    """
    row: Columns = {}
    for name in measured[0]:
        values = [float(value) for run in measured if (value := run[name]) is not None]
        found = Summary.of(values) if values else None
        shown = {
            name: None if found is None else found.mean,
            f"{name}_std": None if found is None or found.n == 1 else found.std,
        }
        row |= {key: Fixed(value, 1) if value is not None and name in counts else value for key, value in shown.items()}
    return row


def override(name: str, value: object) -> str:
    """Format an entry of `Job.overrides` from the name of a setting, such as `model.num_layers`, and its value."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def settings_of_rewired(dataset: str, preset: str = "paper", model: str = "gcn") -> tuple[str, ...]:
    """Return overrides for a GCN, or another `model`, with the settings of Gumbel-MPNN of the same preset.

    Settings of rewiring, and options that only the other model has, are left as they are.
    """
    plain, rewired = (
        flat(RunSpec.of(dataset, name, preset=preset).settings.to_dict()) for name in (model, "gumbel-mpnn")
    )
    different = (name for name, value in plain.items() if rewired.get(name, value) != value and name != "model.name")
    return tuple(override(name, rewired[name]) for name in different)


def score(row: Row, value: str = "test", error: str = "stderr", bold: bool = False) -> str:
    """Return a result with its standard error as the text of a cell; a dash if there is none."""
    number = row.get(value)
    if number is None or isinstance(number, str):
        return DASH
    text = f"**{number:.2f}**" if bold else f"{number:.2f}"
    return Markdown(text if row.get(error) is None else f"{text}±{float(row[error] or 0):.2f}")


def grid(
    rows: Iterable[Row],
    down: Sequence[str],
    across: str,
    cell: Callable[[Row], str],
    headings: Mapping[str, str] | None = None,
) -> str:
    """Return a table, as Markdown, with a line for each value of the columns `down` and a column for each of `across`.

    Lines without any number are left out.
    """
    lines: dict[tuple[Cell, ...], dict[Cell, str]] = {}
    for row in rows:
        lines.setdefault(tuple("" if row[name] is None else row[name] for name in down), {})[row[across]] = cell(row)
    columns = list(dict.fromkeys(name for line in lines.values() for name in line))
    cells = [
        [*(MODEL_NAMES.get(str(name), name) for name in names), *(line.get(column, DASH) for column in columns)]
        for names, line in lines.items()
        if set(line.values()) != {DASH}
    ]
    names = {"dataset": "data set", **MODEL_NAMES, **(headings or {})}
    return Table([*down, *map(str, columns)], cells, names).render("markdown") if cells else ""


def lines_of(sentences: Iterable[str]) -> str:
    """Return a list of sentences, of which some may be empty, as Markdown."""
    return "\n".join(f"- {sentence}" for sentence in sentences if sentence)


def paragraphs(*parts: str) -> str:
    """Join the parts of a page that are not empty."""
    return "\n\n".join(filter(None, parts))


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
