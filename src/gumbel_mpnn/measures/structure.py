"""Edges, nodes and labels of a graph, as all measures read them; degrees, components and the spectral gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import (
    check_edges,
    edge_index_of,
    pair_key,
    pairs_of,
    tensor_of,
    undirected_keys,
    without_candidates,
)
from gumbel_mpnn.util.errors import DataError, unknown_name

Convention = Literal["coalesced", "as_listed"]
MOST_CLASSES = 10_000
"""Maximum number of classes: several measures have a row or a column per class."""
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
DENSE_NODES = 300
"""Eigenvalues of graphs up to this size are computed densely, which is exact and faster than iterating."""
RESTARTS = 100
"""Maximum number of restarts of the Lanczos iteration, before the matrix is factorized instead."""
SHIFT = 1e-6

Sparse = Any  # a scipy.sparse.csr_array: scipy has no types
Vector = NDArray[np.float64]


def undirected_edges(data: Data, convention: Convention = "coalesced") -> Tensor:
    """Undirected edges of a graph, int64 [2, E].

    Args:
        data: A graph; edge weights are ignored.
        convention: `coalesced` counts every pair of distinct nodes once, no matter how often and in which direction it
            is listed. `as_listed` counts every column of `edge_index` as an edge, including self-loops.
    """
    if convention not in CONVENTIONS:
        raise unknown_name("edge convention", convention, CONVENTIONS)
    edge_index, count = _edge_index(data), num_nodes(data)
    return edge_index if convention == "as_listed" else pairs_of(undirected_keys(edge_index, count), count)


def directed_edges(data: Data) -> Tensor:
    """Edges of a graph with their directions, int64 [2, E]: every ordered pair of distinct nodes once, sorted."""
    edge_index, count = _edge_index(data), num_nodes(data)
    return pairs_of(pair_key(edge_index[:, edge_index[0] != edge_index[1]], count).unique(), count)


def num_nodes(data: Data) -> int:
    """Number of nodes N ≥ 1, labelled or not: `num_nodes`, or the rows of `x` or `y`, or inferred from the edges."""
    y = tensor_of(data, "y")
    said = "num_nodes" in data or data.get("x") is not None
    count = data.num_nodes if said or y is None or y.dim() == 0 else len(y)
    if not count:
        raise DataError("the graph has no nodes: add labels or features, or set data.num_nodes")
    return int(count)


def labels_of(data: Data) -> Tensor:
    """Labels, int64 [N] on the CPU; negative for unlabelled nodes."""
    y = tensor_of(data, "y")
    if y is None:
        raise DataError("the graph has no labels y: set one integer per node, -1 if unknown")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool or y.shape != (num_nodes(data),):
        raise DataError(f"the labels y must be integers of shape [{num_nodes(data)}], not {y.dtype} {list(y.shape)}")
    labels: Tensor = y.detach().cpu().long()
    return labels


def class_count(y: Tensor) -> int:
    """Number of classes C of the labels `y` [N]: the largest label plus 1."""
    highest = int(y.max()) if len(y) else -1
    if highest >= MOST_CLASSES:
        raise DataError(f"the highest label is {highest}, but classes are numbered from 0 and {MOST_CLASSES} at most")
    return max(highest + 1, 0)


def _edge_index(data: Data) -> Tensor:
    # A plain tensor, because PyG's EdgeIndex validates itself after every operation.
    edge_index = edge_index_of(data)
    check_edges(edge_index, num_nodes=num_nodes(data))
    ends = edge_index.as_subclass(Tensor).detach().cpu().long()
    return ends


def num_edges(data: Data, convention: Convention = "coalesced") -> int:
    """Number of undirected edges; with `as_listed`, the number of columns of `edge_index`."""
    return undirected_edges(data, convention).shape[1]


def node_degrees(data: Data, convention: Convention = "coalesced") -> Tensor:
    """Number of distinct neighbors of every node other than itself, int64 [N].

    With `as_listed`, the number of listed edges at every node, where a self-loop counts twice.
    """
    return undirected_edges(data, convention).flatten().bincount(minlength=num_nodes(data))


def num_components(data: Data) -> int:
    """Number of connected components, including isolated nodes."""
    return int(_components(_adjacency(data)).max()) + 1


def largest_component(data: Data) -> Data:
    """Subgraph of `data` on its largest connected component, the first of several equally large ones.

    Node attributes, masks and edge attributes are restricted to it; candidates are removed.
    """
    component = torch.from_numpy(_components(_adjacency(data)))
    nodes = component == component.bincount().argmax()
    bare = without_candidates(data)
    bare.num_nodes = num_nodes(data)  # without features, PyG would infer it from the edges
    bare.edge_index = data.edge_index.long()
    part: Data = bare.subgraph(nodes.to(data.edge_index.device))
    return part


def spectral_gap(data: Data) -> float:
    """Second smallest eigenvalue of the normalized Laplacian I - D^-½ A D^-½: 0 unless the graph is connected.

    NaN for a single node. For the main part of a disconnected graph, pass `largest_component(data)`.
    """
    from scipy.sparse import csc_array, diags_array, eye_array
    from scipy.sparse.linalg import ArpackNoConvergence, splu

    count = num_nodes(data)
    if count == 1:
        return float("nan")
    adjacency = _adjacency(data)
    if _components(adjacency).any():
        return 0.0
    degree = np.diff(adjacency.indptr).astype(np.float64)
    scale = diags_array(1 / np.sqrt(degree))
    normalized = (scale @ adjacency @ scale).tocsr()
    if count <= DENSE_NODES:
        return float(np.linalg.eigvalsh(np.eye(count) - normalized.toarray()).clip(0, 2)[1])
    # The largest eigenvalue of I + D^-½ A D^-½ is 2; the gap is 2 minus the next one.
    matrix, first = eye_array(count) + normalized, np.sqrt(degree / degree.sum())[:, None]
    try:
        gap = 2 - _largest_eigenvalue(lambda x: matrix @ x, first, RESTARTS)
    except ArpackNoConvergence:
        # On long and thin graphs many eigenvalues are close to 2. Those of the inverse of 2 - `matrix` are well apart,
        # and its factors are sparse if it is not pivoted, which a positive definite matrix does not need.
        below = csc_array((2 + SHIFT) * eye_array(count) - matrix)
        inverse = splu(below, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        gap = 1 / _largest_eigenvalue(inverse.solve, first, 100 * RESTARTS) - SHIFT
    return min(max(gap, 0.0), 2.0)


def _largest_eigenvalue(multiply: Callable[[Vector], Vector], without: Vector, restarts: int) -> float:
    """Largest eigenvalue of a symmetric operator on the vectors orthogonal to `without` [N, 1]."""
    from scipy.sparse.linalg import LinearOperator, eigsh
    from threadpoolctl import threadpool_limits

    def rest(x: Vector) -> Vector:
        orthogonal: Vector = x - without @ (without.T @ x)
        return orthogonal

    size = len(without)
    start = rest(np.random.default_rng(0).normal(size=size))
    operator = LinearOperator((size, size), matvec=lambda x: rest(multiply(rest(x.ravel()))), dtype=np.float64)
    # Threads do not pay off for vectors, and stall when another program uses a core.
    with threadpool_limits(1, user_api="blas"):
        values = eigsh(operator, k=1, which="LA", v0=start, ncv=min(20, size), maxiter=restarts, tol=1e-10)[0]
    return float(values[0])


def _adjacency(data: Data) -> Sparse:
    """0/1 adjacency matrix [N, N] of the undirected graph without self-loops, float64 in CSR format."""
    from scipy.sparse import coo_array

    low, high = undirected_edges(data).numpy()
    row, col = np.concatenate([low, high]), np.concatenate([high, low])
    return coo_array((np.ones(len(row)), (row, col)), shape=(num_nodes(data), num_nodes(data))).tocsr()


def _components(adjacency: Sparse) -> NDArray[np.int64]:
    """Connected component of every node, [N], numbered from 0 by their first nodes."""
    from scipy.sparse.csgraph import connected_components

    numbers: NDArray[np.int64] = connected_components(adjacency, directed=False)[1].astype(np.int64)
    return numbers
