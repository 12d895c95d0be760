"""Effective resistances between nodes, computed by sparse solvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures import num_nodes, undirected_edges
from gumbel_mpnn.util import UserError

BATCH = 16
"""Number of pairs solved together, in one pass over the graph."""
ITERATIONS = 1000
"""Maximum number of iterations of conjugate gradients, before the matrix is factorized instead."""
TOLERANCE = 1e-6
"""Tolerance of the residual; the error of the resistance is of the order of its square."""

IntArray = NDArray[np.int64]
Sparse = Any  # a scipy.sparse.csr_array: scipy has no types


def effective_resistance(data: Data, pairs: Tensor) -> Tensor:
    """Effective resistance between the nodes of each pair [2, K], float64 [K], where every edge has resistance 1.

    It is infinite between nodes in different components. The graph is treated as undirected, each edge once.
    """
    source, target = pairs.numpy()
    resistance = np.where(source == target, 0.0, np.inf)
    place = np.full(num_nodes(data), -1)
    for nodes, block in _connected_blocks(_adjacency(data)):
        place[nodes] = np.arange(len(nodes))
        inside = np.flatnonzero((place[source] >= 0) & (place[target] >= 0) & (source != target))
        if len(inside):
            resistance[inside] = _within(block, place[source[inside]], place[target[inside]])
        place[nodes] = -1
    return torch.from_numpy(resistance)


def random_pairs(data: Data, samples: int, seed: int = 0) -> Tensor:
    """Draw `samples` random pairs of distinct nodes, int64 [2, samples]."""
    count = num_nodes(data)
    if count < 2:
        raise UserError("cannot draw pairs of distinct nodes from a single node")
    rng = np.random.default_rng(seed)
    source = rng.integers(count, size=samples)
    target = (source + rng.integers(1, count, size=samples)) % count
    return torch.from_numpy(np.stack([source, target]))


def _adjacency(data: Data) -> Sparse:
    """0/1 adjacency matrix [N, N] of the undirected graph without self-loops, float64 in CSR format."""
    low, high = undirected_edges(data).numpy()
    row, col = np.concatenate([low, high]), np.concatenate([high, low])
    return coo_array((np.ones(len(row)), (row, col)), shape=(num_nodes(data), num_nodes(data))).tocsr()


def _connected_blocks(matrix: Sparse) -> list[tuple[IntArray, Sparse]]:
    """Nodes and adjacency matrix of every connected component with at least one edge."""
    component = connected_components(matrix, directed=False)[1]
    order = np.argsort(component, kind="stable")
    sorted_matrix = matrix[order][:, order]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(component))])
    proper = np.flatnonzero(np.diff(bounds) > 1)
    return [
        (order[bounds[k] : bounds[k + 1]], sorted_matrix[bounds[k] : bounds[k + 1], bounds[k] : bounds[k + 1]])
        for k in proper
    ]


def _normalized(block: Sparse) -> tuple[Sparse, NDArray[np.float64]]:
    """D^-½ A D^-½ of a connected graph's adjacency matrix A, and its degrees [N]."""
    degree: NDArray[np.float64] = np.diff(block.indptr).astype(np.float64)
    scale = diags_array(1 / np.sqrt(degree))
    return (scale @ block @ scale).tocsr(), degree


def _within(block: Sparse, source: IntArray, target: IntArray) -> NDArray[np.float64]:
    """Resistances of pairs in a connected graph: b · x with (I - D^-½ A D^-½) x = b = D^-½ (e_u - e_v)."""
    matrix, degree = _normalized(block)
    solve: Callable[[Tensor], Tensor] | None = None
    parts = []
    for first in range(0, len(source), BATCH):
        b = _differences(degree, source[first : first + BATCH], target[first : first + BATCH])
        x = _conjugate_gradients(matrix, b) if solve is None else None
        if x is None:
            solve = solve or _factorized(matrix)
            x = solve(b)
        parts.append((b * x).sum(0).numpy())
    return np.concatenate(parts)


def _differences(degree: NDArray[np.float64], source: IntArray, target: IntArray) -> Tensor:
    """D^-½ (e_u - e_v) for K pairs, [N, K]."""
    column = np.arange(len(source))
    b = np.zeros((len(degree), len(column)))
    b[source, column] = 1 / np.sqrt(degree[source])
    b[target, column] = -1 / np.sqrt(degree[target])
    return torch.from_numpy(b)


def _conjugate_gradients(matrix: Sparse, b: Tensor) -> Tensor | None:
    """Solve x - matrix @ x = b [N, K] for x [N, K]; None if it does not converge."""
    with warnings.catch_warnings():  # torch warns once that its CSR tensors are in beta
        warnings.simplefilter("ignore")
        begin, column, value = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
        product = torch.sparse_csr_tensor(begin, column, value, size=matrix.shape)
    x, residual = torch.zeros_like(b), b.clone()
    direction, squares = residual.clone(), residual.square().sum(0)
    goal = TOLERANCE**2 * squares
    for _ in range(ITERATIONS):
        image = direction - product @ direction
        # The step of a column that has converged is 0.
        step = torch.where(squares > goal, squares / (direction * image).sum(0), 0.0)
        x.addcmul_(direction, step)
        residual.addcmul_(image, step, value=-1)
        before, squares = squares, residual.square().sum(0)
        if bool((squares <= goal).all()):
            return x
        # This also avoids 0 / 0 where a residual is exactly 0, as between two leaves of one node.
        direction.mul_(torch.where(squares > goal, squares / before, 0.0)).add_(residual)
    return None


def _factorized(matrix: Sparse) -> Callable[[Tensor], Tensor]:
    """Solver of x - matrix @ x = b by sparse factorization, with x = 0 at the last node.

    Conjugate gradients converge slowly on long and thin graphs, whose factors are sparse.
    """
    # A permutation for symmetric patterns, without pivoting, which would spoil it and is not needed.
    factors = splu(
        csc_array(csc_array(eye_array(matrix.shape[0]) - matrix)[:-1, :-1]),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(b: Tensor) -> Tensor:
        x = torch.zeros_like(b)
        x[:-1] = torch.from_numpy(factors.solve(b[:-1].numpy()))
        return x

    return solve
