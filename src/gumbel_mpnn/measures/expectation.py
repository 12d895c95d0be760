"""Expectation maximization (EM) for full-covariance Gaussian mixtures on weighted points, for many starts at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOG_2PI = math.log(2 * math.pi)
RANK_TOLERANCE = 1e-10
"""Directions narrower than this, relative to the widest, are rounding errors."""
NOBODY = 1e-15
"""Added to the size of a component to avoid division by 0."""


@dataclass(frozen=True)
class Points:
    """Distinct rows of a matrix, in coordinates of the affine subspace that they span.

    Rows of shares sum to 1, so their covariance is singular; other directions may be empty too. In such a direction all
    points agree with all means, and every covariance is the regularization alone. It adds the same constant to each log
    density and can be omitted exactly. U distinct rows with D columns span d dimensions.
    """

    x: FloatArray
    """Centered coordinates in the subspace, [U, d]."""
    count: FloatArray
    """Number of rows at each point, [U]."""
    point_of_row: IntArray
    """Point of each row, [n]."""
    center: FloatArray
    """Mean of all rows, [D]."""
    basis: FloatArray
    """Orthonormal basis of the subspace, [d, D]."""
    reg_covar: float
    """Added to every diagonal entry of a covariance."""
    features: FloatArray
    """1, x and the products of its coordinates, [U, 1 + d + d(d+1)/2]: a Gaussian's log density is linear in them."""

    @classmethod
    def of(cls, rows: FloatArray, reg_covar: float) -> Points:
        """Distinct points of `rows` [n, D]."""
        different, point_of_row, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        weight = count.astype(np.float64)
        center = weight @ different / weight.sum()
        centered = different - center
        _, width, directions = np.linalg.svd(centered * np.sqrt(weight)[:, None], full_matrices=False)
        basis = directions[width > RANK_TOLERANCE * width[0]]
        x = centered @ basis.T
        first, second, _ = _triangle(x.shape[1])
        features = np.concatenate([np.ones((len(x), 1)), x, x[:, first] * x[:, second]], axis=1)
        return cls(x, weight, point_of_row.reshape(-1), center, basis, reg_covar, features)

    @property
    def num_rows(self) -> float:
        """Number of rows, n."""
        return float(self.count.sum())

    @property
    def num_columns(self) -> int:
        """Number of columns, D."""
        return len(self.center)

    @property
    def dimension(self) -> int:
        """Dimension of the subspace, d."""
        return int(self.x.shape[1])

    def bic(self, log_likelihood: float, components: int) -> float:
        """Bayesian information criterion of a mixture with this mean log likelihood; lower is better.

        Likelihood and number of parameters refer to all D columns, as in scikit-learn.
        """
        columns = self.num_columns
        parameters = components * (columns * (columns + 1) / 2 + columns + 1) - 1
        return -2 * self.num_rows * log_likelihood + parameters * math.log(self.num_rows)


@dataclass(frozen=True)
class Fit:
    """A mixture fitted to points."""

    log_likelihood: float
    """Mean log likelihood of the rows, in all D columns."""
    membership: FloatArray
    """Expected number of rows of each point in each component, [k, U]; the sum over components is `count`."""


def expectation_maximization(points: Points, starts: FloatArray, tol: float, max_iter: int) -> list[Fit]:
    """Run EM from all starts [B, k, U] at once; each stops when its mean log likelihood increases by less than `tol`.

    Steps, tolerance and regularization are those of scikit-learn's `GaussianMixture`.
    """
    batch = len(starts)
    parameters = _maximize(points, starts)
    final = np.empty_like(parameters)
    running, before = np.arange(batch), np.full(batch, -np.inf)
    for iteration in range(1, max_iter + 1):
        value, membership = _expect(points, parameters)
        parameters = _maximize(points, membership)
        done = (np.abs(value - before) < tol) | (iteration == max_iter)
        if done.any():
            final[running[done]] = parameters[done]
            running, parameters, value = running[~done], parameters[~done], value[~done]
            if not len(running):
                break
        before = value
    value, membership = _expect(points, final)
    left_out = points.num_columns - points.dimension
    value -= 0.5 * left_out * (LOG_2PI + math.log(points.reg_covar))
    return [Fit(float(value[b]), membership[b]) for b in range(batch)]


def moments(points: Points, membership: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sizes [...], means [..., d] and covariances [..., d, d] of components with the given membership [..., U]."""
    d = points.dimension
    sums = membership @ points.features
    rows = sums[..., 0] + NOBODY
    mean = sums[..., 1 : 1 + d] / rows[..., None]
    first, second, square = _triangle(d)
    spread = sums[..., 1 + d :] / rows[..., None] - mean[..., first] * mean[..., second]
    covariance = spread[..., square] + points.reg_covar * np.eye(d)
    return rows, mean, covariance


def _maximize(points: Points, membership: FloatArray) -> FloatArray:
    """M step: coefficients [B, k, F] of `features` in the weighted log density of every component."""
    d = points.dimension
    rows, mean, covariance = moments(points, membership)
    precision = np.linalg.inv(covariance)
    pull = (precision @ mean[..., None])[..., 0]
    log_det = 2 * np.log(np.diagonal(np.linalg.cholesky(covariance), axis1=-2, axis2=-1)).sum(-1)
    first, second, _ = _triangle(d)
    parameters = np.empty((*rows.shape, points.features.shape[1]))
    parameters[..., 0] = np.log(rows / points.num_rows) - 0.5 * (d * LOG_2PI + log_det + (pull * mean).sum(-1))
    parameters[..., 1 : 1 + d] = pull
    parameters[..., 1 + d :] = precision[..., first, second] * np.where(first == second, -0.5, -1.0)
    return parameters


def _expect(points: Points, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E step: mean log likelihood [B] in the subspace, and membership [B, k, U]."""
    batch, components, width = parameters.shape
    membership = (parameters.reshape(-1, width) @ points.features.T).reshape(batch, components, -1)
    highest = membership.max(axis=1, keepdims=True)
    membership -= highest
    np.exp(membership, out=membership)
    total = membership.sum(axis=1, keepdims=True)
    membership *= points.count / total
    value = (np.log(total) + highest)[:, 0] @ points.count / points.num_rows
    return value, membership


@cache
def _triangle(d: int) -> tuple[IntArray, IntArray, IntArray]:
    """Rows and columns of the upper triangle of a d × d matrix, and the index [d, d] of each entry in it."""
    first, second = np.triu_indices(d)
    square = np.zeros((d, d), dtype=np.int64)
    square[first, second] = square[second, first] = np.arange(len(first))
    return first, second, square
