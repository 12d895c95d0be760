"""Exact balanced Forman curvature of every edge, in memory linear in the number of edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, edge_index_of
from gumbel_mpnn.graph.pairs import distinct_pairs

if TYPE_CHECKING:
    from gumbel_mpnn.measures.kernels import Adjacency, Terms

EDGES_AT_ONCE = 2048
"""Edges per task of a thread: because of hubs, some edges take thousands of times longer than others."""


def balanced_forman(data: Data) -> Tensor:
    """Balanced Forman curvature of every edge of `data`, float64 [E], in the order of its `edge_index`.

    This is the definition of Topping et al. (2022): 1 on a four-cycle, 0 on a five-cycle, n/(n − 1) on a clique, 0 at a
    node of degree 1. Edges are treated as undirected and duplicates as one edge. A self-loop has curvature 0 and is
    ignored otherwise.
    """
    edge_index = edge_index_of(data, or_empty=True).as_subclass(Tensor)
    if edge_index.numel() == 0:
        return torch.zeros(0, dtype=torch.float64)
    graph = PairGraph.build(edge_index, int(data.num_nodes or 0))
    curvature = torch.from_numpy(pair_curvature(graph)).to(edge_index.device)
    _, listed = distinct_pairs(edge_index, graph.num_nodes, undirected=True)
    return curvature.new_zeros(edge_index.shape[1]).index_copy(0, listed.proper, curvature[listed.pair])


def pair_curvature(graph: PairGraph) -> NDArray[np.float64]:
    """Balanced Forman curvature of every pair of an undirected graph, [P]."""
    return curvature_terms(adjacency(graph), graph.pair_index.cpu().numpy())[1]


def adjacency(graph: PairGraph) -> Adjacency:
    """Adjacency lists of an undirected graph, with the index of the pair of each entry."""
    from gumbel_mpnn.measures.kernels import Adjacency

    start = graph.arcs.rowptr.cpu().numpy().astype(np.int64)
    return Adjacency(
        start=start[:-1].copy(),
        degree=np.diff(start),
        neighbor=graph.arcs.col.cpu().numpy(),
        edge=graph.arc_pair.cpu().numpy().astype(np.int32),
    )


def curvature_terms(graph: Adjacency, pairs: NDArray[np.int64]) -> tuple[Terms, NDArray[np.float64]]:
    """Counts and curvature [P] of every pair of `pairs` [2, P], with as many threads as torch uses."""
    from gumbel_mpnn.measures.kernels import Terms, fill_terms

    count = pairs.shape[1]
    terms, curvature = Terms(*(np.zeros(count, np.int32) for _ in Terms._fields)), np.zeros(count)
    spans = pairwise([*range(0, count, EDGES_AT_ONCE), count])
    with ThreadPoolExecutor(max(torch.get_num_threads(), 1)) as threads:
        list(threads.map(lambda span: fill_terms(graph, pairs, span[0], span[1], terms, curvature), spans))
    return terms, curvature
