"""Ricci candidates: pairs around the most negatively curved edges, which are bottlenecks of the graph."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_at_least, check_whole
from gumbel_mpnn.candidates.base import CandidateStrategy, candidates
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.curvature import adjacency, pair_curvature
from gumbel_mpnn.nn.replica_rng import derive_seed


@candidates.register("ricci")
class Ricci(CandidateStrategy):
    """Pairs around the edges of lowest balanced Forman curvature.

    Edges `x ~ y` are visited in ascending order of curvature until enough pairs are found. Each edge draws up to
    `per_edge` pairs of `x` or a neighbor of `x` alone with `y` or a neighbor of `y` alone. Such a pair would close a
    triangle or a four-cycle with `x ~ y`. SDRF chooses from the same pairs.

    Args:
        pairs: Total number of pairs; 0 for twice the number of undirected edges.
        per_edge: Number of pairs that each edge draws with equal probability; a smaller number reaches more edges.
        seed: Seed of the draws, which are the same on every machine.
    """

    def __init__(self, pairs: int = 0, per_edge: int = 10, seed: int = 0) -> None:
        check_at_least(0, pairs=pairs)
        check_at_least(1, per_edge=per_edge)
        check_whole(seed=seed)
        self.pairs, self.per_edge, self.seed = pairs, per_edge, seed

    @property
    def reads(self) -> tuple[str, ...]:
        """No attributes, only the edges."""
        return ()

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs around the most negatively curved edges, int64 [2, K]."""
        key = draw(graph, self.pairs or 2 * graph.num_pairs, self.per_edge, self.seed)
        pairs = torch.from_numpy(np.stack([key // graph.num_nodes, key % graph.num_nodes]))
        return pairs.to(graph.pair_index.device)


def draw(graph: PairGraph, wanted: int, per_edge: int, seed: int) -> NDArray[np.int64]:
    """Draw up to `wanted` pairs `i < j`, as `i · N + j`, in ascending order of curvature."""
    from gumbel_mpnn.candidates.kernels import draw_around

    neighbors, pairs = adjacency(graph), graph.pair_index.cpu().numpy()
    order = np.argsort(pair_curvature(graph), kind="stable")
    stream, found = np.uint64(derive_seed(seed, "ricci")), np.empty(0, np.int64)
    start = 0
    while len(found) < wanted and start < len(order):
        edges = order[start : start + max(2 * (wanted - len(found)) // per_edge, 1024)]
        drawn = np.full((len(edges), per_edge), -1, np.int64)
        draw_around(neighbors, pairs, edges, stream, drawn)
        found = np.concatenate([found, drawn[drawn >= 0]])
        found = found[np.sort(np.unique(found, return_index=True)[1])]
        start += len(edges)
    return found[:wanted]
