"""Two settings compared run by run: the same splits and seeds, and how sure the difference is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gumbel_mpnn.errors import UserError
from gumbel_mpnn.runs.record import Record

RESAMPLES = 10_000
FEWEST_SPLITS = 3
"""With fewer splits nothing is said: the interval is all that a difference of shares can be."""


@dataclass(frozen=True)
class Paired:
    """The mean difference of paired runs and its 95 % interval, as shares of 1."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> str:
        """`better` or `worse` where the interval leaves out 0, else `same`."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "same"


def compare(ours: Iterable[Record], theirs: Iterable[Record]) -> Paired:
    """Test figures of `ours` less those of `theirs`, for the splits and seeds that both have.

    The interval is a bootstrap over splits and, within each, over seeds: runs of one split share their test nodes and
    are not independent of each other.
    """
    other = {(record.split, record.seed): record.test for record in theirs}
    by_split: dict[int, list[float]] = {}
    for record in ours:
        if (record.split, record.seed) in other:
            by_split.setdefault(record.split, []).append(record.test - other[record.split, record.seed])
    if not by_split:
        raise UserError("the two settings have no split and seed in common: train both on the same ones")
    values = [value for values in by_split.values() for value in values]
    low, high = -1.0, 1.0
    if len(by_split) >= FEWEST_SPLITS:
        low, high = np.quantile(_resampled_means([np.array(values) for values in by_split.values()]), [0.025, 0.975])
    return Paired(mean=float(np.mean(values)), low=float(low), high=float(high), n=len(values))


def _resampled_means(groups: list[np.ndarray]) -> np.ndarray:
    """Means of `RESAMPLES` samples: groups drawn with replacement, and values within each."""
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
