"""How a `Run` looks when it is printed and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from gumbel_mpnn.runs.record import Summary

if TYPE_CHECKING:
    from gumbel_mpnn.runs.choice import Choice
    from gumbel_mpnn.runs.run import Run

NOTHING = "–"


def as_text(run: Run) -> str:
    """Three lines: what was trained, how good it is, and what to do next or what `auto` chose."""
    note = " (mean ± standard error)" if run.n > 1 else ""
    return "\n".join(
        (
            _title(run),
            f"test {_percent(run.test)}, validation {_percent(run.val)}{note}",
            _next(run) if run.choice is None else f"{run.choice.ladder}: {run.choice.sentence()}",
        )
    )


def as_html(run: Run) -> str:
    """The same as a table in HTML, with the rungs if `auto` made the runs; names of the user are escaped."""
    rows = [
        [part, *_numbers(summary)]
        for part, summary in (("test", run.test), ("validation", run.val))
        if math.isfinite(summary.mean)
    ]
    parts = [
        f"<p><b>{escape(_title(run))}</b></p>",
        _table(["%", "mean", "std", "standard error", "runs"], rows),
    ]
    if run.choice is not None:
        parts += [f"<p>{escape(run.choice.sentence())}</p>", _rungs(run.choice)]
    return "\n".join([*parts, f"<p>{escape(_next(run))}</p>"])


def _title(run: Run) -> str:
    model = run.settings.model if run.choice is None else f"{run.choice.ladder} ({run.choice.chosen})"
    return f"{model} on {run.settings.dataset}: {run.n} run{'s' * (run.n > 1)}, metric {run.metric}"


def _next(run: Run) -> str:
    return f"next: run.predict(), {'run.rewire(), ' * run.rewires}run.plot(), run.history"


def _percent(summary: Summary) -> str:
    """Mean and standard error; a dash if there was nothing to measure."""
    if not math.isfinite(summary.mean):
        return NOTHING
    error = f" ± {100 * summary.stderr:.2f}" if summary.n > 1 else ""
    return f"{100 * summary.mean:.2f}{error} %"


def _numbers(summary: Summary) -> list[str]:
    spread = [f"{100 * value:.2f}" if summary.n > 1 else NOTHING for value in (summary.std, summary.stderr)]
    return [f"{100 * summary.mean:.2f}", *spread, str(summary.n)]


def _rungs(choice: Choice) -> str:
    """Table of all rungs that `auto` tried, the plainest first."""
    rows = []
    for rung in choice.rungs:
        val = "diverged" if rung.val is None else f"{100 * rung.val:.2f}"
        behind = NOTHING if rung.behind is None else f"{100 * rung.behind:.2f} ± {100 * (rung.error or 0):.2f}"
        name = f"{rung.name} (chosen)" if rung.name == choice.chosen else rung.name
        rows.append([name, val, behind, str(rung.runs), rung.about])
    return _table(["rung", "validation %", "behind the best", "runs", "what it is"], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_line("th", heads), *(_line("td", row) for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
