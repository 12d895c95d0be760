"""Effective resistances between nodes, computed by sparse solvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.edges import node_count
from gumbel_mpnn.measures.matrices import Sparse, adjacency, connected_blocks, factorize, normalized
from gumbel_mpnn.util.errors import UserError

BATCH = 16
"""Number of pairs solved together, in one pass over the graph."""
ITERATIONS = 1000
"""Maximum number of iterations of conjugate gradients, before the matrix is factorized instead."""
TOLERANCE = 1e-6
"""Tolerance of the residual; the error of the resistance is of the order of its square."""

IntArray = NDArray[np.int64]


def effective_resistance(data: Data, pairs: Tensor | None = None, samples: int = 100, seed: int = 0) -> Tensor:
    """Effective resistance between pairs of nodes, float64 [K], where every edge has resistance 1.

    It is infinite between nodes in different components. The graph is treated as undirected, each edge once.

    Args:
        data: A graph.
        pairs: Pairs of nodes, int64 [2, K]; `random_pairs(data, samples, seed)` by default.
        samples: Number of random pairs.
        seed: Seed of the random pairs.
    """
    chosen = random_pairs(data, samples, seed) if pairs is None else _checked(pairs, node_count(data))
    source, target = chosen.numpy()
    resistance = np.where(source == target, 0.0, np.inf)
    place = np.full(node_count(data), -1)
    for nodes, block in connected_blocks(adjacency(data)):
        place[nodes] = np.arange(len(nodes))
        inside = np.flatnonzero((place[source] >= 0) & (place[target] >= 0) & (source != target))
        if len(inside):
            resistance[inside] = _within(block, place[source[inside]], place[target[inside]])
        place[nodes] = -1
    return torch.from_numpy(resistance)


def random_pairs(data: Data, samples: int = 100, seed: int = 0) -> Tensor:
    """Draw `samples` random pairs of distinct nodes, int64 [2, samples]."""
    count = node_count(data)
    if count < 2 or samples < 1:
        raise UserError(f"cannot draw {samples} pairs of distinct nodes from {count} nodes")
    rng = np.random.default_rng(seed)
    source = rng.integers(count, size=samples)
    target = (source + rng.integers(1, count, size=samples)) % count
    return torch.from_numpy(np.stack([source, target]))


def _checked(pairs: Tensor, num_nodes: int) -> Tensor:
    pairs = torch.as_tensor(pairs).cpu()
    if pairs.dim() != 2 or len(pairs) != 2 or pairs.is_floating_point():
        raise UserError(f"pairs must be integers of shape [2, K], not {pairs.dtype} {list(pairs.shape)}")
    if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < num_nodes:
        raise UserError(
            f"pairs contain nodes {int(pairs.min())} to {int(pairs.max())}, but there are {num_nodes} nodes"
        )
    return pairs.long()


def _within(block: Sparse, source: IntArray, target: IntArray) -> NDArray[np.float64]:
    """Resistances of pairs in a connected graph: b · x with (I - D^-½ A D^-½) x = b = D^-½ (e_u - e_v)."""
    matrix, degree = normalized(block)
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
    from scipy.sparse import csc_array, eye_array

    factors = factorize(csc_array(eye_array(matrix.shape[0]) - matrix)[:-1, :-1])

    def solve(b: Tensor) -> Tensor:
        x = torch.zeros_like(b)
        x[:-1] = torch.from_numpy(factors.solve(b[:-1].numpy()))
        return x

    return solve
