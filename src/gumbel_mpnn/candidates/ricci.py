"""Candidates around the most negatively curved edges, the graph's bottlenecks."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_at_least, check_whole
from gumbel_mpnn.candidates.base import CandidateStrategy, candidates
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.curvature import adjacency, mode_number, pair_curvature
from gumbel_mpnn.nn.replica_rng import derive_seed


@candidates.register("ricci")
class Ricci(CandidateStrategy):
    """Pairs that would relieve the edges of least balanced Forman curvature.

    The edges `x ~ y` are taken from the least curvature upwards. Each draws up to `per_edge` pairs of a node that is at
    `x` alone (or `x`) with a node that is at `y` alone (or `y`), the pairs whose joining closes a triangle or a
    four-cycle with `x ~ y`, until `pairs` are found. These are the pairs that SDRF chooses from.

    Args:
        pairs: How many, in all; 0 for twice the number of undirected edges.
        per_edge: How many each edge draws, all with the same probability; the fewer, the more edges are served.
        mode: How curvature is counted, `paper` or `reference` (see `gm.measures.balanced_forman`).
        seed: The same seed draws the same pairs of the same graph, on every machine.
    """

    def __init__(self, pairs: int = 0, per_edge: int = 10, mode: str = "paper", seed: int = 0) -> None:
        check_at_least(0, pairs=pairs)
        check_at_least(1, per_edge=per_edge)
        check_whole(seed=seed)
        mode_number(mode)
        self.pairs, self.per_edge, self.mode, self.seed = pairs, per_edge, mode, seed

    @property
    def reads(self) -> tuple[str, ...]:
        """Nothing but the edges."""
        return ()

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """The chosen pairs, int64 [2, K]."""
        key = draw(graph, self.pairs or 2 * graph.num_pairs, self.per_edge, self.mode, self.seed)
        pairs = torch.from_numpy(np.stack([key // graph.num_nodes, key % graph.num_nodes]))
        return pairs.to(graph.pair_index.device)


def draw(graph: PairGraph, wanted: int, per_edge: int, mode: str, seed: int) -> NDArray[np.int64]:
    """Up to `wanted` pairs `i < j` as `i · N + j`, those of the least curvature first."""
    from gumbel_mpnn.candidates.kernels import draw_around

    neighbors, pairs = adjacency(graph), graph.pair_index.cpu().numpy()
    order = np.argsort(pair_curvature(graph, mode), kind="stable")
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
