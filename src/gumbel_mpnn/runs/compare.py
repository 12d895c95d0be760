"""Paired comparison of two settings on the same splits and seeds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from gumbel_mpnn.runs.store import Record
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.util.errors import UserError

if TYPE_CHECKING:
    from gumbel_mpnn.runs.run import Run

K = TypeVar("K", bound=Hashable)
Over = Literal["splits", "seeds"]
"""What results are independent over."""

RESAMPLES = 10_000
FEWEST_SPLITS = 3
"""With fewer splits, there is no interval."""
LEVEL = 0.05
ENOUGH = 6
"""With fewer splits, or seeds of a single split, the p-value cannot be smaller than `LEVEL`."""
ONE_SPLIT = " (one split)"
"""End of a verdict that holds for one split alone."""
DIGITS = 12
"""Differences are rounded to this number of digits, so that rounding errors do not break ties."""
EXACT = 13
"""Largest number of differences for which the test is exact, over all 2^13 combinations of signs."""


@dataclass(frozen=True)
class Paired:
    """Mean difference of paired runs, its 95 % confidence interval, and the p-value of a Wilcoxon test."""

    mean: float
    low: float | None
    high: float | None
    n: int
    """Number of pairs of runs."""
    units: int
    """Number of splits, or of seeds of a single split, that were tested."""
    p: float
    over: Over = "splits"

    @property
    def outcome(self) -> Literal["better", "worse", "same", "too few splits"]:
        """`better` or `worse` if the interval excludes 0 and the test is significant, `same`, or `too few splits`."""
        if self.units < ENOUGH or self.low is None or self.high is None:
            return "too few splits"
        if self.p >= LEVEL:
            return "same"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "same"

    @property
    def verdict(self) -> str:
        """The outcome; it is marked if it holds for one split alone, such as `better (one split)`."""
        return self.outcome + ONE_SPLIT if self.over == "seeds" else self.outcome


def compare(
    ours: Run | Iterable[Record], theirs: Run | Iterable[Record], figure: Literal["test", "val"] = "test"
) -> Paired:
    """Difference of the test metric, `ours` minus `theirs`, on the splits and seeds that both have.

    Both are the result of `gm.fit` or `gm.load_run`, or records. With the figure `val`, it is the difference of the
    validation metric.

    Runs of one split have the same test nodes and are not independent. So the interval is a bootstrap over splits and,
    within each split, over seeds. The test is the two-sided Wilcoxon signed-rank test of the mean differences per
    split. If the runs have one split only, both are over its seeds: they measure the chance of training, not that of
    the split, and the verdict says so.
    """
    first, second = _by_replica(ours, figure), _by_replica(theirs, figure)
    by_split: dict[int, list[float]] = {}
    for replica, one in first.items():
        other = second.get(replica)
        if one is not None and other is not None:
            by_split.setdefault(replica.split, []).append(one - other)
    if not by_split and first.keys() & second.keys():
        part = "validation" if figure == "val" else "test"
        raise UserError(f"these runs have no {part} results to compare: train both on splits with {part} nodes")
    if not by_split:
        raise UserError("the two settings have no split and seed in common: train both on the same ones")
    over, groups = _units(by_split)
    low, high = _interval(groups) or (None, None)
    values, p = np.concatenate(groups), signed_rank_p([float(group.mean()) for group in groups])
    return Paired(float(values.mean()), low, high, n=len(values), units=len(groups), p=p, over=over)


def _by_replica(runs: Run | Iterable[Record], figure: str) -> dict[Replica, float | None]:
    records: Any = getattr(runs, "records", runs)
    return {record.replica: getattr(record, figure) for record in records}


def mean_interval(records: Iterable[Record]) -> tuple[tuple[float, float] | None, Over]:
    """95 % confidence interval of the mean test metric and what it is over, as in `compare`; None with few splits."""
    by_split: dict[int, list[float]] = {}
    for record in records:
        if record.test is not None:
            by_split.setdefault(record.split, []).append(record.test)
    over, groups = _units(by_split)
    return _interval(groups), over


def signed_rank_p(differences: Sequence[float]) -> float:
    """Two-sided p-value of the Wilcoxon signed-rank test; differences of 0 are left out.

    It is exact for up to 13 differences, even with ties; for more, SciPy chooses the method.
    """
    from scipy.stats import PermutationMethod, wilcoxon

    rounded = np.round(np.asarray(differences, dtype=float), DIGITS)
    rounded = rounded[rounded != 0]
    if len(rounded) < 2:
        return 1.0
    method = PermutationMethod(n_resamples=2**EXACT) if len(rounded) <= EXACT else "auto"
    return float(wilcoxon(rounded, method=method).pvalue)


def corrected(comparisons: Mapping[K, Paired]) -> dict[K, Paired]:
    """Correct the p-values of several comparisons, and so their verdicts, by Holm's method."""
    p = np.array([paired.p for paired in comparisons.values()], dtype=float)
    order = p.argsort(kind="stable")
    p[order] = np.maximum.accumulate(np.minimum(1.0, (len(p) - np.arange(len(p))) * p[order]))
    return {key: replace(paired, p=float(each)) for (key, paired), each in zip(comparisons.items(), p, strict=True)}


def _units(by_split: Mapping[int, Sequence[float]]) -> tuple[Over, list[np.ndarray]]:
    """Return what is tested, and its values: splits, or the seeds of a single split if there are enough of them."""
    groups = [np.array(values) for values in by_split.values()]
    if len(groups) == 1 and len(groups[0]) >= ENOUGH:
        return "seeds", [np.array([value]) for value in groups[0]]
    return "splits", groups


def _interval(groups: list[np.ndarray]) -> tuple[float, float] | None:
    if len(groups) < FEWEST_SPLITS:
        return None
    low, high = np.quantile(_resampled_means(groups), [0.025, 0.975])
    return float(low), float(high)


def _resampled_means(groups: list[np.ndarray]) -> np.ndarray:
    """Means of `RESAMPLES` bootstrap samples: groups are drawn with replacement, and values within each group."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(groups), size=(RESAMPLES, len(groups)))
    total, count = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for index, values in enumerate(groups):
        times = (chosen == index).sum(1)
        for draw in range(int(times.max(initial=0))):
            rows = np.flatnonzero(times > draw)
            picked = rng.integers(len(values), size=(len(rows), len(values)))
            total[rows] += values[picked].sum(1)
            count[rows] += len(values)
    return total / count
