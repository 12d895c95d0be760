"""Positions of nodes among the communities of a graph: features for graphs that have none."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, content_order
from gumbel_mpnn.graph.pairs import inverse
from gumbel_mpnn.measures.pair_facts import common_neighbors
from gumbel_mpnn.measures.structure import Sparse, num_nodes, undirected_edges
from gumbel_mpnn.util.errors import check_at_least

DENSE_NODES = 300
"""Graphs up to this size are solved densely."""
RESTARTS = 300
TOLERANCE = 1e-6
"""When the iteration for larger graphs ends. What it has not found by then is 0."""

Matrix = NDArray[np.float64]


def community_positions(data: Data, dimensions: int) -> Tensor:
    """Coordinates of every node in the leading eigenvectors of the graph, float32 [N, dimensions].

    They are eigenvectors of D^-½ W D^-½, the first that of the largest eigenvalue, times √N. The weight of an edge is
    the overlap of the neighborhoods of its nodes, each of which includes the node itself: (c + 2) / √((d_i+1) (d_j+1))
    with c common neighbors and degrees d. So edges across communities count little, above all those of an attack. D
    are the weighted degrees plus their mean, so that small parts at the rim of the graph do not come first. Labels and
    edge weights are not used. The numbering of the nodes has no influence.

    Args:
        data: The graph, which is treated as undirected.
        dimensions: Number of eigenvectors; columns for which there is none are 0.
    """
    check_at_least(1, dimensions=dimensions)
    count, device = num_nodes(data), data.edge_index.device
    order = content_order(PairGraph.of(data, candidates=False)).cpu()
    place, out = inverse(order), torch.zeros(count, dimensions)
    vectors = _leading(_overlaps(place[undirected_edges(data).cpu()], count), min(dimensions, count))
    # The sign of an eigenvector is arbitrary: make its larger entries positive.
    signs = np.where((vectors**3).sum(0) < 0, -1.0, 1.0)
    out[:, : vectors.shape[1]] = torch.from_numpy(vectors * signs * np.sqrt(count)).float()
    return out[place].to(device)


def _overlaps(edges: Tensor, count: int) -> Sparse:
    """Symmetric matrix of the weights of the edges [2, E], each given once."""
    from scipy.sparse import coo_array

    degree = torch.bincount(edges.flatten(), minlength=count).double() + 1
    weight = (common_neighbors(edges, count, edges) + 2) / degree[edges].prod(0).sqrt()
    row, col = torch.cat([edges, edges.flip(0)], dim=1).numpy()
    return coo_array((weight.repeat(2).numpy(), (row, col)), shape=(count, count)).tocsr()


def _leading(weights: Sparse, k: int) -> Matrix:
    """Eigenvectors of the k largest eigenvalues of D^-½ W D^-½, [N, k], or fewer if they are hard to find.

    D are the degrees of the graph of `weights` W plus their mean.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh
    from threadpoolctl import threadpool_limits

    size, degree = weights.shape[0], np.asarray(weights.sum(1)).ravel()
    scale = diags_array(1 / np.sqrt(np.maximum(degree + degree.mean(), 1e-12)))
    matrix = scale @ weights @ scale
    with threadpool_limits(1, user_api="blas"):
        if size <= max(DENSE_NODES, 2 * k):
            dense: Matrix = np.linalg.eigh(matrix.toarray())[1][:, ::-1][:, :k]
            return dense
        start = np.random.default_rng(0).normal(size=size)
        try:
            values, vectors = eigsh(matrix, k=k, which="LA", v0=start, maxiter=RESTARTS, tol=TOLERANCE)
        except ArpackNoConvergence as error:
            values, vectors = error.eigenvalues, error.eigenvectors
    found: Matrix = vectors[:, np.argsort(-values)]
    return found
