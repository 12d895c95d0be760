"""A candidate strategy of your own, in one file and one line, with an option that the command line can set.

GUMBEL_MPNN_PLUGINS=examples/own_candidates.py gumbel-mpnn train demo --model gumbel-mpnn \
    --set rewiring.candidates=hubs --set rewiring.candidates.hubs=8
"""

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.candidates import CandidateStrategy, candidates
from gumbel_mpnn.graph import PairGraph


@candidates.register("hubs")
class Hubs(CandidateStrategy):
    """Every node with each of the nodes that have most neighbors.

    Args:
        hubs: How many such nodes.
    """

    def __init__(self, hubs: int = 3) -> None:
        self.hubs = hubs

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of nodes, int64 [2, K]; edges and duplicates among them are removed afterwards."""
        degree = graph.degree()[0]
        hubs = degree.topk(min(self.hubs, graph.num_nodes)).indices
        return torch.cartesian_prod(torch.arange(graph.num_nodes, device=hubs.device), hubs).T
