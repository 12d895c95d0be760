"""The Gaussian mixture with the lowest BIC: grown component by component, then shrunk again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.measures.expectation import Fit, FloatArray, IntArray, Points, expectation_maximization, moments

SMALLEST_REGULARIZATION = 1e-8
"""Below this, products of float64 no longer resolve a log density."""
SKETCHES_PER_START = 8
SKETCH_ITERATIONS = 3
MAX_ITERATIONS = 100
LAST_TOLERANCE = 1e-6
LAST_ITERATIONS = 1000
LARGEST_BATCH = 4_000_000
"""Entries of a membership array at once: 32 MB."""
RESOLUTION = 1e-9
"""A point this near to the mean of its component is at it."""
TRACE = 1e-12
"""What every component has of every point when another one is dropped."""


@dataclass(frozen=True)
class SearchOptions:
    """How the number of components is searched.

    Args:
        max_components: The largest number of components that is tried.
        starts: EM runs that are followed to their end for each number of components.
        reg_covar: Added to the diagonal of every covariance: a component is never narrower than its root.
        tol: EM ends when the mean log likelihood gains less than this.
        patience: Growing ends when this many further components have not lowered BIC.
    """

    max_components: int = 25
    starts: int = 5
    reg_covar: float = 1e-4
    tol: float = 1e-3
    patience: int = 8

    def __post_init__(self) -> None:
        check_at_least(1, max_components=self.max_components, starts=self.starts, patience=self.patience)
        if not SMALLEST_REGULARIZATION <= self.reg_covar < np.inf:
            raise UserError(f"reg_covar must be finite, {SMALLEST_REGULARIZATION} or more, but is {self.reg_covar}")
        if not 0 < self.tol < np.inf:
            raise UserError(f"tol must be finite and above 0, but is {self.tol}")


@dataclass(frozen=True)
class Mixture:
    """A Gaussian mixture over rows [n, D]; components are ordered by their weight, the heaviest first."""

    weights: FloatArray
    """Share of each component, [k]."""
    means: FloatArray
    """[k, D]."""
    covariances: FloatArray
    """With `reg_covar` on their diagonals, [k, D, D]."""
    component: IntArray
    """The likeliest component of each row, [n]."""
    bic: float
    """Bayesian information criterion, lower is better."""
    bic_by_components: dict[int, float]
    """The lowest BIC found for each number of components that was tried."""


def best_mixture(rows: FloatArray, seed: int, options: SearchOptions) -> Mixture:
    """The mixture of 1 to `max_components` Gaussians over `rows` [n, D] that has the lowest BIC.

    k + 1 components start from the best k with one of them split in two around a point; of many such sketches the
    best few are followed. When BIC keeps rising, the way is walked back: k components start from k + 1 without one of
    them. Splits find what k-means starts miss, and dropping repairs splits made too early.
    """
    points = Points.of(rows, options.reg_covar)
    best = _grow(points, np.random.default_rng(seed), options)
    _shrink(points, best, options)
    scores = {k: points.bic(fit.log_likelihood, k) for k, fit in sorted(best.items())}
    chosen = min(scores, key=lambda k: scores[k])
    last = expectation_maximization(points, best[chosen].membership[None], LAST_TOLERANCE, LAST_ITERATIONS)[0]
    fit = max(last, best[chosen], key=lambda fit: fit.log_likelihood)
    scores[chosen] = points.bic(fit.log_likelihood, chosen)
    return _describe(points, fit, scores)


def _grow(points: Points, rng: np.random.Generator, options: SearchOptions) -> dict[int, Fit]:
    """The best fit found for 1, 2, ... components, until BIC keeps rising."""
    fit = _follow(points, points.count[None, None], options)
    best = {1: fit}
    lowest, lowest_at = points.bic(fit.log_likelihood, 1), 1
    for k in range(2, options.max_components + 1):
        sketches = _split(points, fit.membership, SKETCHES_PER_START * options.starts, rng)
        if not len(sketches):
            break
        fit = best[k] = _follow(points, sketches, options)
        score = points.bic(fit.log_likelihood, k)
        if score < lowest:
            lowest, lowest_at = score, k
        elif k - lowest_at >= options.patience:
            break
    return best


def _shrink(points: Points, best: dict[int, Fit], options: SearchOptions) -> None:
    """Replace fits that are worse than the next larger one with a component left out."""
    for k in range(max(best) - 1, 1, -1):
        fit = _follow(points, _drop(points, best[k + 1].membership), options)
        if fit.log_likelihood > best[k].log_likelihood:
            best[k] = fit


def _follow(points: Points, sketches: FloatArray, options: SearchOptions) -> Fit:
    """The best end of EM from the most promising of these memberships [B, k, U]."""
    if len(sketches) > options.starts:
        tried = [
            fit
            for part in _parts(sketches)
            for fit in expectation_maximization(points, part, options.tol, SKETCH_ITERATIONS)
        ]
        tried.sort(key=lambda fit: -fit.log_likelihood)
        sketches = np.stack([fit.membership for fit in tried[: options.starts]])
    fits = expectation_maximization(points, sketches, options.tol, MAX_ITERATIONS)
    return max(fits, key=lambda fit: fit.log_likelihood)


def _parts(sketches: FloatArray) -> Iterator[FloatArray]:
    size = max(1, LARGEST_BATCH // sketches[0].size)
    for start in range(0, len(sketches), size):
        yield sketches[start : start + size]


def _split(points: Points, membership: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Up to `count` memberships [B, k + 1, U] with a component of [k, U] split in two.

    A row is drawn; of its component, all that is nearer to it than to the component's mean goes to the new one.
    """
    owner = membership.argmax(axis=0)
    mean = moments(points, membership)[1][owner]
    apart = np.abs(points.x - mean).sum(axis=1) > RESOLUTION
    if not apart.any():
        return np.empty((0, len(membership) + 1, len(owner)))
    weight = points.count * apart
    chosen = rng.choice(len(weight), min(count, int(apart.sum())), replace=False, p=weight / weight.sum())
    nearer = _distance(points.x[chosen], points.x) < _distance(mean[chosen], points.x)
    sketches = np.repeat(np.pad(membership, ((0, 1), (0, 0)))[None], len(chosen), axis=0)
    sketches[:, -1] = membership[owner[chosen]] * nearer
    sketches[np.arange(len(chosen)), owner[chosen]] -= sketches[:, -1]
    return sketches


def _drop(points: Points, membership: FloatArray) -> FloatArray:
    """All memberships [k, k - 1, U] with one component of [k, U] left out and its rows given to the others."""
    k = len(membership)
    rows = membership.sum(axis=1, keepdims=True)
    others = np.array([[j for j in range(k) if j != left_out] for left_out in range(k)])
    # A point that belonged to the dropped component alone needs somewhere to go.
    traced = (membership + TRACE * rows * points.count / points.num_rows)[others]
    shares: FloatArray = traced * (points.count / traced.sum(axis=1, keepdims=True))
    return shares


def _distance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared distances of all pairs, [len(a), len(b)]."""
    distance: FloatArray = ((a[:, None] - b[None]) ** 2).sum(axis=-1)
    return distance


def _describe(points: Points, fit: Fit, scores: dict[int, float]) -> Mixture:
    rows, mean, covariance = moments(points, fit.membership)
    order = np.argsort(-rows, kind="stable")
    flat = points.basis
    outside = points.reg_covar * (np.eye(points.num_columns) - flat.T @ flat)
    return Mixture(
        weights=rows[order] / points.num_rows,
        means=points.center + mean[order] @ flat,
        covariances=flat.T @ covariance[order] @ flat + outside,
        component=fit.membership[order].argmax(axis=0)[points.point_of_row],
        bic=min(scores.values()),
        bic_by_components=scores,
    )
