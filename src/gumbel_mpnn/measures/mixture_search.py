"""Search for the Gaussian mixture with the lowest BIC, by adding and then removing components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gumbel_mpnn.measures.expectation import Fit, FloatArray, IntArray, Points, expectation_maximization, moments
from gumbel_mpnn.util.errors import UserError, check_at_least

SMALLEST_REGULARIZATION = 1e-8
"""With less regularization, float64 is too imprecise for log densities."""
SKETCHES_PER_START = 8
SKETCH_ITERATIONS = 3
MAX_ITERATIONS = 100
LAST_TOLERANCE = 1e-6
LAST_ITERATIONS = 1000
LARGEST_BATCH = 4_000_000
"""Maximum number of entries of a membership array: 32 MB."""
RESOLUTION = 1e-9
"""Points closer to the mean of their component than this coincide with it."""
TRACE = 1e-12
"""Minimum share of every point in every component when another component is removed."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search for the number of components."""

    max_components: int = 25
    starts: int = 5
    """Number of EM runs until convergence for each number of components."""
    reg_covar: float = 1e-4
    """Added to the diagonal of every covariance; its square root is the minimum width of a component."""
    tol: float = 1e-3
    """EM stops when the mean log likelihood increases by less than this."""
    patience: int = 8
    """The search stops when this many additional components have not lowered BIC."""

    def __post_init__(self) -> None:
        check_at_least(1, max_components=self.max_components, starts=self.starts, patience=self.patience)
        if not SMALLEST_REGULARIZATION <= self.reg_covar < np.inf:
            raise UserError(f"reg_covar must be finite, {SMALLEST_REGULARIZATION} or more, but is {self.reg_covar}")
        if not 0 < self.tol < np.inf:
            raise UserError(f"tol must be finite and above 0, but is {self.tol}")


@dataclass(frozen=True)
class Mixture:
    """A Gaussian mixture for rows [n, D], with components sorted by decreasing weight."""

    weights: FloatArray
    """Weight of each component, [k]."""
    means: FloatArray
    """Mean of each component, [k, D]."""
    covariances: FloatArray
    """Covariance of each component, including `reg_covar`, [k, D, D]."""
    component: IntArray
    """Most likely component of each row, [n]."""
    bic: float
    """Bayesian information criterion, lower is better."""
    bic_by_components: dict[int, float]
    """Lowest BIC found for each number of components."""


def best_mixture(rows: FloatArray, seed: int, options: SearchOptions) -> Mixture:
    """Fit 1 to `max_components` Gaussians to `rows` [n, D] and return the mixture with the lowest BIC.

    The start for k + 1 components is the best mixture of k components with one component split in two around a point;
    of many such sketches the best few are optimized until convergence. When BIC keeps rising, the search goes back: the
    start for k components is the best mixture of k + 1 without one component. Splits find optima that k-means misses,
    and removing components repairs splits that were made too early.
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
    """Best fits for 1, 2, ... components, until BIC keeps rising."""
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
    """Replace fits that are worse than the next larger fit without one of its components."""
    for k in range(max(best) - 1, 1, -1):
        fit = _follow(points, _drop(points, best[k + 1].membership), options)
        if fit.log_likelihood > best[k].log_likelihood:
            best[k] = fit


def _follow(points: Points, sketches: FloatArray, options: SearchOptions) -> Fit:
    """Run EM from the most promising of these memberships [B, k, U] and return the best fit."""
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
    """Up to `count` memberships [B, k + 1, U], each with one component of `membership` [k, U] split in two.

    A random point is chosen; all points of its component that are closer to it than to the mean of the component are
    moved to the new component.
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
    """Memberships [k, k - 1, U] with each component of `membership` [k, U] removed and its rows given to the others."""
    k = len(membership)
    rows = membership.sum(axis=1, keepdims=True)
    others = np.array([[j for j in range(k) if j != left_out] for left_out in range(k)])
    # A point that belonged only to the removed component must get another one.
    traced = (membership + TRACE * rows * points.count / points.num_rows)[others]
    shares: FloatArray = traced * (points.count / traced.sum(axis=1, keepdims=True))
    return shares


def _distance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Squared distances between all rows of a and b, [len(a), len(b)]."""
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
