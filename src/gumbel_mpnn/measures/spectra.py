"""Smallest and largest eigenvalues of the normalized Laplacian, computed by sparse solvers.

The normalized Laplacian is I - D^-½ A D^-½ of the undirected graph without self-loops, with a row of zeros for an
isolated node. Its eigenvalues lie between 0 (once for every component) and 2 (once for every bipartite component).
Components are solved separately, so that no iteration has to separate equal eigenvalues of different components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.edges import node_count
from gumbel_mpnn.measures.matrices import Sparse, adjacency, component_of, connected_blocks, factorize, normalized
from gumbel_mpnn.util.errors import check_at_least

DENSE_NODES = 300
"""Components up to this size are solved densely, which is exact and faster than iterating."""
RESTARTS = 100
"""Maximum number of restarts of the Lanczos iteration, before the matrix is factorized instead."""
SHIFT = 1e-6

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Multiply = Callable[[Vector], Vector]


class SpectrumEnds(NamedTuple):
    """Smallest and largest eigenvalues of the normalized Laplacian, with multiplicity."""

    smallest: Tensor
    """float64 [k], in ascending order."""
    largest: Tensor
    """float64 [k], in descending order."""


def spectral_gap(data: Data) -> float:
    """Second smallest eigenvalue of the normalized Laplacian: 0 unless the graph is connected.

    NaN for a single node. For the main part of a disconnected graph, pass `largest_component(data)`.
    """
    if node_count(data) == 1:
        return float("nan")
    matrix = adjacency(data)
    if component_of(matrix).any():
        return 0.0
    return float(_smallest(matrix, 2)[1])


def spectrum_ends(data: Data, k: int = 2) -> SpectrumEnds:
    """The k smallest and k largest eigenvalues of the normalized Laplacian; all of them if there are fewer than k."""
    check_at_least(1, k=k)
    k = int(k)
    blocks = connected_blocks(adjacency(data))
    isolated = np.zeros(node_count(data) - sum(len(nodes) for nodes, _ in blocks))
    smallest = np.sort(np.concatenate([isolated, *(_smallest(block, k) for _, block in blocks)]))[:k]
    largest = np.sort(np.concatenate([isolated, *(_largest(block, k) for _, block in blocks)]))[::-1][:k]
    return SpectrumEnds(torch.from_numpy(smallest), torch.from_numpy(largest.copy()))


def _smallest(block: Sparse, k: int) -> Vector:
    """The k smallest eigenvalues of a connected graph, in ascending order: 0 and those of I + D^-½ A D^-½ below 2."""
    from scipy.sparse import eye_array

    if block.shape[0] <= max(DENSE_NODES, 2 * k):
        return _dense_eigenvalues(block)[:k]
    matrix, degree = normalized(block)
    null = np.sqrt(degree / degree.sum())[:, None]
    return np.concatenate([[0.0], _below_two(eye_array(len(degree)) + matrix, k - 1, null)])


def _largest(block: Sparse, k: int) -> Vector:
    """The k largest eigenvalues of a connected graph, in descending order."""
    from scipy.sparse import eye_array

    if block.shape[0] <= max(DENSE_NODES, 2 * k):
        return _dense_eigenvalues(block)[::-1][:k]
    matrix, degree = normalized(block)
    return 2 - _below_two(eye_array(len(degree)) - matrix, k, np.zeros((len(degree), 0)))


def _dense_eigenvalues(block: Sparse) -> Vector:
    matrix = np.eye(block.shape[0]) - normalized(block)[0].toarray()
    values: Vector = np.linalg.eigvalsh(matrix).clip(0, 2)
    return values


def _below_two(matrix: Sparse, k: int, null: Matrix) -> Vector:
    """2 minus the k largest eigenvalues of `matrix`, in ascending order, without the eigenvectors `null` [N, M].

    `matrix` is symmetric with eigenvalues from 0 to 2. The Lanczos iteration does not converge if many eigenvalues are
    close to 2, as on long and thin graphs. Their factors are sparse, so it is then applied to the inverse of
    2 - `matrix`, whose eigenvalues are well separated.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import ArpackNoConvergence

    if k == 0:
        return np.zeros(0)
    try:
        below: Vector = 2 - _top_eigenvalues(lambda x: matrix @ x, k, null, RESTARTS)
    except ArpackNoConvergence:
        inverse = factorize((2 + SHIFT) * eye_array(len(null)) - matrix)
        below = 1 / _top_eigenvalues(inverse.solve, k, null, 100 * RESTARTS) - SHIFT
    return below.clip(0, 2)


def _top_eigenvalues(multiply: Multiply, k: int, null: Matrix, restarts: int) -> Vector:
    """The k largest eigenvalues, descending, of a symmetric operator on the vectors orthogonal to `null` [N, M].

    A Lanczos iteration finds only one direction of the eigenspace of a repeated eigenvalue, the one in its start
    vector. It is therefore repeated from new start vectors, orthogonal to the eigenvectors found so far, for the
    largest remaining eigenvalue, until that is not larger than the k-th.
    """
    rng = np.random.default_rng(0)
    values, found = _lanczos(multiply, k, null, rng, restarts)
    while k > 1 and null.shape[1] + found.shape[1] < len(null):
        null = np.concatenate([null, found], axis=1)
        more, found = _lanczos(multiply, 1, null, rng, restarts)
        if more[0] <= np.sort(values)[-k] * (1 + 1e-9):
            break
        values = np.concatenate([values, more])
    return np.sort(values)[::-1][:k]


def _lanczos(
    multiply: Multiply, k: int, null: Matrix, rng: np.random.Generator, restarts: int
) -> tuple[Vector, Matrix]:
    """The k largest eigenvalues and eigenvectors [N, k] on the vectors orthogonal to `null` [N, M]."""
    from scipy.sparse.linalg import LinearOperator, eigsh
    from threadpoolctl import threadpool_limits

    def without_null(x: Vector) -> Vector:
        rest: Vector = x - null @ (null.T @ x)
        return rest

    def projected(x: Vector) -> Vector:
        return without_null(multiply(without_null(x.ravel())))

    size = len(null)
    start = without_null(rng.normal(size=size))
    operator = LinearOperator((size, size), matvec=projected, dtype=np.float64)
    # Threads do not pay off for vectors, and stall when another program uses a core.
    with threadpool_limits(1, user_api="blas"):
        values, vectors = eigsh(
            operator, k=k, which="LA", v0=start, ncv=min(max(2 * k + 1, 20), size), maxiter=restarts, tol=1e-10
        )
    return values, vectors
