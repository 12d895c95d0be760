"""The choice among the rungs of `auto`, made on validation values alone."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from gumbel_mpnn.settings import Replica
from gumbel_mpnn.settings.presets import AUTO
from gumbel_mpnn.util.errors import unreadable
from gumbel_mpnn.util.files import json_with_checksum, read_json, write_atomically

FILES = "choice-*.json"
"""Files in the folder of runs that `auto` chose, with the rungs that it tried."""
LEARNED = "gumbel-mpnn"
"""Model of the rungs that learn which edges to keep, drop and add."""
DOUBT = 0.5
"""Share of the standard error of a difference up to which a plain rung is preferred to a better one that rewires, found
by `benchmarks/choice_rule.py`: with less, a choice is sometimes worse than the best plain rung; with more, gains are
lost."""

FEW_SPLITS = 3
"""With fewer splits, their validation nodes are the larger part of the error."""

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
    best_plain: str | None
    """None if training of all plain rungs diverged."""
    gain: float | None
    """Mean validation value of the chosen rung minus that of the best plain rung, on the same runs."""
    gain_error: float | None
    """Standard error of the gain."""
    rungs: tuple[Candidate, ...]
    learned: str
    """Model of the rungs that learn edges: `gumbel-mpnn`, or that of a control."""
    runs: tuple[str, ...]
    """Names of the runs, such as `split0-seed0`."""
    wary: bool = False
    """Whether the rungs were compared on a graph with hostile edges at validation nodes."""

    @property
    def title(self) -> str:
        """What chose: `auto`, and how it differs from the default."""
        differs = ["wary"] * self.wary + [self.learned] * (self.learned != LEARNED)
        return AUTO + f" ({', '.join(differs)})" * bool(differs)

    def sentence(self) -> str:
        """One sentence for the user: which rung, how sure, and what it gained over the best plain model."""
        where = ", with hostile edges at validation nodes" * self.wary
        chosen = next(rung for rung in self.rungs if rung.name == self.chosen)
        best = min((rung for rung in self.rungs if rung.rank), key=lambda rung: rung.rank or 0)
        if chosen.plain and chosen is best:
            return f"no rewiring needed: {self.chosen} has the best validation value{where}"
        if chosen.plain:
            behind = f"{100 * (chosen.behind or 0):.1f} ± {100 * (chosen.error or 0):.1f} points"
            return (
                f"no rewiring needed: {self.chosen} is behind the best rung, {best.name}, by {behind} on validation,"
                f" which may be chance{where}"
            )
        if self.gain is None or self.gain_error is None:
            return f"{self.chosen} was chosen; training of all plain models diverged{where}"
        certain = self.gain > 2 * self.gain_error and chosen.runs >= FEW_SPLITS
        sure = "surely" if certain else "probably" if self.gain > self.gain_error else "perhaps"
        return (
            f"{self.chosen} is {sure} better than the best plain model, {self.best_plain}: {100 * self.gain:+.1f} ±"
            f" {100 * self.gain_error:.1f} points on validation{where}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Choice:
        """Read what `to_dict` wrote."""
        rungs = tuple(Candidate(**rung) for rung in values["rungs"])
        return cls(**{**values, "rungs": rungs, "runs": tuple(values["runs"])})


def write_choice(folder: Path, choice: Choice) -> None:
    """Write a choice to the folder of the runs that were chosen; it replaces an earlier one of the same runs."""
    what = [choice.learned, *choice.runs, *(["wary"] if choice.wary else [])]
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
    write_atomically(folder / FILES.replace("*", digest), json_with_checksum(choice.to_dict()))


def read_choices(folder: Path) -> list[Choice]:
    """Read all choices that chose the runs in a folder: that of most runs first, and `auto` before all others."""
    found = []
    for path in sorted(folder.glob(FILES)):
        try:
            found.append(Choice.from_dict(read_json(path.read_bytes())))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise unreadable(f"the choice {path}", error, "delete it and train again") from None
    return sorted(found, key=lambda choice: (choice.wary, -len(choice.runs), choice.learned != LEARNED))


def difference(better: Values, worse: Values, val_nodes: int) -> tuple[float, float]:
    """Mean paired difference of two rungs on the runs that both have, and its standard error.

    Runs of one split share their validation nodes. With three splits or more, the error is therefore that of the means
    per split. With fewer, the variance is that of a share of `val_nodes` nodes, plus that of the runs.
    """
    pairs = [(replica, better[replica] - worse[replica]) for replica in better if replica in worse]
    by_split: dict[int, list[float]] = {}
    for replica, value in pairs:
        by_split.setdefault(replica.split, []).append(value)
    values = [value for _, value in pairs]
    if len(by_split) >= FEW_SPLITS:
        values = list(map(fmean, by_split.values()))
    mean = fmean(values)
    variance = 0.0
    if len(values) > 1:
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
    if len(by_split) < FEW_SPLITS:
        share = fmean(better.values())
        variance += share * (1 - share) / max(val_nodes, 1)
    return mean, math.sqrt(variance)


def best_of(values: Mapping[str, Values], among: Sequence[str]) -> str:
    """The rung with the highest mean; the plainer one, which comes first in `among`, if two are equal."""
    return max(among, key=lambda name: (fmean(values[name].values()), -among.index(name)))


def choose(values: Mapping[str, Values], among: Sequence[str], plain: Sequence[str], val_nodes: int) -> str:
    """The best of the plain rungs, unless the best of all is ahead of it by more than a share of the error, `DOUBT`."""
    best, of_plain = best_of(values, among), [name for name in among if name in plain]
    if not of_plain:
        return best
    best_plain = best_of(values, of_plain)
    ahead, error = difference(values[best], values[best_plain], val_nodes)
    return best_plain if ahead <= DOUBT * error else best


def upper_half(values: Mapping[str, Values], among: Sequence[str], plain: Sequence[str]) -> list[str]:
    """The better half of the rungs and the best plain one, the plainest first."""
    ordered = sorted(among, key=lambda name: (-fmean(values[name].values()), among.index(name)))
    kept = {*ordered[: -(-len(ordered) // 2)], *[name for name in ordered if name in plain][:1]}
    return [name for name in among if name in kept]
