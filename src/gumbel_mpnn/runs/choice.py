"""The choice among the rungs of `auto`, made on validation values alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.config.replica import Replica

CHOICE = "choice.json"
"""File in the folder of the runs that `auto` chose, with the rungs that it tried."""

Values = Mapping[Replica, float]
"""Validation values of the runs of one rung."""


@dataclass(frozen=True)
class Candidate:
    """A rung in the table of the choice."""

    name: str
    about: str
    plain: bool
    """Whether it trains on the given edges alone, or on none."""
    val: float | None
    """Mean validation value; None if training diverged."""
    behind: float | None
    """How much lower this is than that of the best rung on the same runs."""
    error: float | None
    """Standard error of `behind`."""
    runs: int
    """Number of runs; fewer than those of the chosen rung if it was stopped early."""
    rank: int | None
    """1 for the best mean among the rungs with all runs; None for rungs that were stopped early."""


@dataclass(frozen=True)
class Choice:
    """Which rung `auto` chose, and all rungs that it tried, the plainest first."""

    chosen: str
    best_plain: str
    gain: float
    """Mean validation value of the chosen rung minus that of the best plain rung, on the same runs."""
    gain_error: float
    """Standard error of the gain."""
    rungs: tuple[Candidate, ...]

    def sentence(self) -> str:
        """One sentence for the user: which rung, how sure, and what it gained over the best plain model."""
        chosen = next(rung for rung in self.rungs if rung.name == self.chosen)
        best = min((rung for rung in self.rungs if rung.rank), key=lambda rung: rung.rank or 0)
        if chosen.plain and chosen is best:
            return f"no rewiring needed: {self.chosen} has the best validation value"
        if chosen.plain:
            behind = f"{100 * (chosen.behind or 0):.1f} ± {100 * (chosen.error or 0):.1f} points"
            return (
                f"no rewiring needed: {self.chosen} is behind the best rung, {best.name}, by {behind} on validation,"
                " which is within the error"
            )
        sure = "surely" if self.gain > 2 * self.gain_error else "probably" if self.gain > self.gain_error else "perhaps"
        return (
            f"{self.chosen} is {sure} better than the best plain model, {self.best_plain}: {100 * self.gain:+.1f} ±"
            f" {100 * self.gain_error:.1f} points on validation"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Choice:
        """Read what `to_dict` wrote."""
        return cls(**{**values, "rungs": tuple(Candidate(**rung) for rung in values["rungs"])})


def read_choice(folder: Path) -> Choice | None:
    """Read the choice of `auto` from the folder of the runs that it chose; None if these are other runs."""
    path = folder / CHOICE
    if not path.exists():
        return None
    try:
        return Choice.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"cannot read the choice {path}: {error}; delete it and train again to write it anew") from None


def difference(better: Values, worse: Values, val_nodes: int) -> tuple[float, float]:
    """Mean paired difference of two rungs on the runs that both have, and its standard error.

    Runs of one split share their validation nodes. With three splits or more, the error is therefore that of the means
    per split; with fewer, that of the runs. One run has the error of a share of `val_nodes` nodes.
    """
    pairs = [(replica, better[replica] - worse[replica]) for replica in better if replica in worse]
    by_split: dict[int, list[float]] = {}
    for replica, value in pairs:
        by_split.setdefault(replica.split, []).append(value)
    values = [value for _, value in pairs]
    if len(by_split) >= 3:
        values = [math.fsum(of) / len(of) for of in by_split.values()]
    mean = math.fsum(values) / len(values)
    if len(values) > 1:
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return mean, math.sqrt(variance / len(values))
    share = max(better.values())
    return mean, math.sqrt(share * (1 - share) / max(val_nodes, 1))


def best_of(values: Mapping[str, Values], among: Sequence[str]) -> str:
    """The rung with the highest mean; the plainer one, which comes first in `among`, if two are equal."""
    return max(among, key=lambda name: (_mean(values[name]), -among.index(name)))


def plainest(values: Mapping[str, Values], among: Sequence[str], val_nodes: int) -> str:
    """The first rung of `among` that is behind the best one by no more than the error of the difference."""
    best = best_of(values, among)
    for name in among:
        behind, error = difference(values[best], values[name], val_nodes)
        if behind <= error:
            return name
    return best


def upper_half(values: Mapping[str, Values], among: Sequence[str], plain: Sequence[str]) -> list[str]:
    """The better half of the rungs and the best plain one, the plainest first."""
    ordered = sorted(among, key=lambda name: (-_mean(values[name]), among.index(name)))
    kept = {*ordered[: -(-len(ordered) // 2)], *[name for name in ordered if name in plain][:1]}
    return [name for name in among if name in kept]


def _mean(values: Values) -> float:
    return math.fsum(values.values()) / len(values)
