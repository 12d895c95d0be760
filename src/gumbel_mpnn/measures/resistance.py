"""Effective resistances between nodes, by sparse solvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.measures.edges import node_count
from gumbel_mpnn.measures.matrices import Sparse, adjacency, connected_blocks, factorize, normalized

BATCH = 16
"""Pairs solved together: one pass over the graph serves them all."""
ITERATIONS = 1000
"""Of the conjugate gradients, before the matrix is factorized instead."""
TOLERANCE = 1e-6
"""Of the residual; the resistance's own error is of the order of its square."""

IntArray = NDArray[np.int64]


def effective_resistance(data: Data, pairs: Tensor | None = None, samples: int = 100, seed: int = 0) -> Tensor:
    """Effective resistance between the two nodes of some pairs, float64 [K], every edge a resistor of 1.

    It is infinite between nodes that no path connects. The graph is taken as undirected, each edge once.

    Args:
        data: A graph.
        pairs: int64 [2, K]; None takes `random_pairs(data, samples, seed)`.
        samples: How many pairs to draw.
        seed: Of the drawing.
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
    """`samples` pairs of different nodes drawn uniformly, int64 [2, samples]."""
    count = node_count(data)
    if count < 2 or samples < 1:
        raise UserError(f"{samples} pairs of different nodes cannot be drawn from {count} nodes")
    rng = np.random.default_rng(seed)
    source = rng.integers(count, size=samples)
    target = (source + rng.integers(1, count, size=samples)) % count
    return torch.from_numpy(np.stack([source, target]))


def _checked(pairs: Tensor, num_nodes: int) -> Tensor:
    pairs = torch.as_tensor(pairs).cpu()
    if pairs.dim() != 2 or len(pairs) != 2 or pairs.is_floating_point():
        raise UserError(f"pairs must be integers of shape [2, K], not {pairs.dtype} {list(pairs.shape)}")
    if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < num_nodes:
        raise UserError(f"pairs name the nodes {int(pairs.min())} to {int(pairs.max())} of {num_nodes}")
    return pairs.long()


def _within(block: Sparse, source: IntArray, target: IntArray) -> NDArray[np.float64]:
    """The resistances of some pairs in a connected graph: b · x with (I - D^-½ A D^-½) x = b = D^-½ (e_u - e_v)."""
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
    """D^-½ (e_u - e_v) for some pairs, [N, K]."""
    column = np.arange(len(source))
    b = np.zeros((len(degree), len(column)))
    b[source, column] = 1 / np.sqrt(degree[source])
    b[target, column] = -1 / np.sqrt(degree[target])
    return torch.from_numpy(b)


def _conjugate_gradients(matrix: Sparse, b: Tensor) -> Tensor | None:
    """The x [N, K] with x - matrix @ x = b [N, K]; None if that takes too long."""
    with warnings.catch_warnings():  # torch announces with every first use that its CSR support is in beta
        warnings.simplefilter("ignore")
        begin, column, value = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
        product = torch.sparse_csr_tensor(begin, column, value, size=matrix.shape)
    x, residual = torch.zeros_like(b), b.clone()
    direction, squares = residual.clone(), residual.square().sum(0)
    goal = TOLERANCE**2 * squares
    for _ in range(ITERATIONS):
        image = direction - product @ direction
        # A column that is done stays as it is: its step is 0 from then on.
        step = torch.where(squares > goal, squares / (direction * image).sum(0), 0.0)
        x.addcmul_(direction, step)
        residual.addcmul_(image, step, value=-1)
        before, squares = squares, residual.square().sum(0)
        if bool((squares <= goal).all()):
            return x
        # One whose residual is exactly 0, as between two leaves of a node, has no ratio either.
        direction.mul_(torch.where(squares > goal, squares / before, 0.0)).add_(residual)
    return None


def _factorized(matrix: Sparse) -> Callable[[Tensor], Tensor]:
    """The same by sparse factors, with x = 0 at the last node; graphs on which iterating is slow are long and thin."""
    from scipy.sparse import csc_array, eye_array

    factors = factorize(csc_array(eye_array(matrix.shape[0]) - matrix)[:-1, :-1])

    def solve(b: Tensor) -> Tensor:
        x = torch.zeros_like(b)
        x[:-1] = torch.from_numpy(factors.solve(b[:-1].numpy()))
        return x

    return solve
