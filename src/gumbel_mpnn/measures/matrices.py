"""Graphs as scipy sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn.measures.edges import node_count, undirected_edges

Sparse = Any  # a scipy.sparse.csr_array: scipy has no types


def adjacency(data: Data) -> Sparse:
    """0/1 adjacency matrix [N, N] of the undirected graph without self-loops, float64 in CSR format."""
    from scipy.sparse import coo_array

    low, high = undirected_edges(data).numpy()
    row, col = np.concatenate([low, high]), np.concatenate([high, low])
    return coo_array((np.ones(len(row)), (row, col)), shape=(node_count(data), node_count(data))).tocsr()


def component_of(matrix: Sparse) -> NDArray[np.int64]:
    """Connected component of every node, [N], numbered from 0 by their first nodes."""
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(matrix, directed=False)
    numbers: NDArray[np.int64] = component.astype(np.int64)
    return numbers


def connected_blocks(matrix: Sparse) -> list[tuple[NDArray[np.int64], Sparse]]:
    """Nodes and adjacency matrix of every connected component with at least one edge."""
    component = component_of(matrix)
    order = np.argsort(component, kind="stable")
    sorted_matrix = matrix[order][:, order]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(component))])
    proper = np.flatnonzero(np.diff(bounds) > 1)
    return [
        (order[bounds[k] : bounds[k + 1]], sorted_matrix[bounds[k] : bounds[k + 1], bounds[k] : bounds[k + 1]])
        for k in proper
    ]


def normalized(block: Sparse) -> tuple[Sparse, NDArray[np.float64]]:
    """D^-½ A D^-½ of a connected graph's adjacency matrix A, and its degrees [N]."""
    from scipy.sparse import diags_array

    degree: NDArray[np.float64] = np.diff(block.indptr).astype(np.float64)
    scale = diags_array(1 / np.sqrt(degree))
    return (scale @ block @ scale).tocsr(), degree


def factorize(matrix: Sparse) -> Any:
    """Sparse factorization of a symmetric positive definite matrix: an object with the method `solve`."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    # A permutation for symmetric patterns, without pivoting, which would spoil it and is not needed.
    return splu(csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
