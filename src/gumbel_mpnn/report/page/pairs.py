"""The pairs of nodes that a run knows: given edges and candidates, each with its learned probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import pair_key
from gumbel_mpnn.measures.edges import directed_edges, undirected_edges
from gumbel_mpnn.runs import Run

HALF = 0.5
"""Probability from which a pair is an edge."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of distinct nodes, each once; on an undirected graph the smaller node is the source."""

    ends: NDArray[np.int64]
    """Source and target, [2, P]."""
    given: NDArray[np.bool_]
    probability: NDArray[np.float64]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Pairs that were dropped or added."""
        out: NDArray[np.bool_] = self.given != (self.probability >= HALF)
        return out

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.ends[:, chosen], self.given[chosen], self.probability[chosen])


def pairs_of(run: Run) -> Pairs:
    """Pairs of the training graph; the probability is 1 or 0 for models that learn none."""
    edges_of = undirected_edges if run.settings.data.undirected else directed_edges
    if run.settings.rewiring is not None:
        learned = run.rewire(threshold=0).cpu()
        source, target = learned.edge_index
        once = source < target if run.settings.data.undirected else source != target
        chosen = learned.edge_index[:, once], learned.edge_origin[once], learned.edge_probability[once]
        ends, given, probability = (value.numpy() for value in chosen)
        return Pairs(ends, given, probability.astype(np.float64))
    before = edges_of(run.data)
    after = edges_of(run.rewire()) if run.rewires else before
    both = torch.cat([before, after], dim=1).unique(dim=1)
    count = int(run.data.num_nodes or 0)
    given, kept = (torch.isin(pair_key(both, count), pair_key(part, count)) for part in (before, after))
    return Pairs(both.numpy(), given.numpy(), kept.double().numpy())


def with_edges(data: Data, edges: NDArray[np.int64] | Tensor) -> Data:
    """The labels of a graph with other edges."""
    return Data(edge_index=torch.as_tensor(edges), y=data.y.cpu(), num_nodes=data.num_nodes)
