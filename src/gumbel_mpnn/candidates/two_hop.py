"""Two-hop candidates: random nodes of the two-hop neighborhood of each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import check_at_least, check_whole
from gumbel_mpnn.candidates.base import CandidateStrategy, candidates
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.replica_rng import derive_seed


@candidates.register("two_hop", "2-hop")
class TwoHop(CandidateStrategy):
    """For each node, up to `per_node` random nodes at distance two, drawn with equal probability.

    Args:
        per_node: Number of nodes that each node draws without replacement; a pair that both nodes draw counts once.
        seed: Seed of the draws, which are the same on every machine and in every batch.
    """

    space: ClassVar[Mapping[str, Any]] = {"per_node": [3, 5, 10]}

    def __init__(self, per_node: int = 3, seed: int = 0) -> None:
        check_at_least(1, per_node=per_node)
        check_whole(seed=seed)
        self.per_node, self.seed = per_node, seed

    @property
    def reads(self) -> tuple[str, ...]:
        """No attributes, only the edges."""
        return ()

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of each node and the nodes it drew, int64 [2, K]."""
        batch = data.get("batch")
        drawn = torch.from_numpy(draw(graph, self.per_node, self.seed, batch)).to(graph.pair_index.device)
        node, place = (drawn >= 0).nonzero().T
        return torch.stack([node, drawn[node, place]])


def draw(graph: PairGraph, per_node: int, seed: int, batch: Tensor | None = None) -> NDArray[np.int64]:
    """Draw nodes at distance two of each node, [N, per_node]; −1 if there are no more.

    With a `batch` [N], nodes are numbered within their graph, so that draws do not depend on the other graphs.
    """
    from gumbel_mpnn.candidates.kernels import draw_two_hop

    rowptr, col = (index.cpu().numpy() for index in (graph.arcs.rowptr, graph.arcs.col))
    drawn = np.full((graph.num_nodes, per_node), -1, dtype=np.int64)
    stream = np.uint64(derive_seed(seed, "two_hop"))
    draw_two_hop(rowptr, col, _first_of_graph(graph.num_nodes, batch), stream, drawn)
    return drawn


def _first_of_graph(num_nodes: int, batch: Tensor | None) -> NDArray[np.uint64]:
    """First node of the graph of each node, [N]."""
    if batch is None:
        return np.zeros(num_nodes, dtype=np.uint64)
    numbers = batch.cpu().numpy()
    return np.searchsorted(numbers, numbers).astype(np.uint64)
