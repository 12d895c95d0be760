"""The pairs of nodes that a run knows: given edges and candidates, each with its learned probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gumbel_mpnn.graph import pair_key
from gumbel_mpnn.graph import pairs_of as pairs_of_keys
from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.measures.structure import directed_edges
from gumbel_mpnn.runs.run import Run


@dataclass(frozen=True)
class Pairs:
    """Pairs of distinct nodes, each once; on an undirected graph the smaller node is the source."""

    ends: NDArray[np.int64]
    """Source and target, [2, P]."""
    given: NDArray[np.bool_]
    probability: NDArray[np.float64]

    @property
    def learned(self) -> NDArray[np.bool_]:
        """Pairs that are edges after rewiring: those of a probability of one half or more."""
        out: NDArray[np.bool_] = self.probability >= 0.5
        return out

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Pairs that were dropped or added."""
        out: NDArray[np.bool_] = self.given != self.learned
        return out

    def among(self, chosen: Any) -> Pairs:
        """Some of the pairs, by a mask or by their numbers."""
        return Pairs(self.ends[:, chosen], self.given[chosen], self.probability[chosen])


def pairs_of(run: Run) -> Pairs:
    """Given edges and candidates of the training graph; the probability is 1 or 0 for models that learn none."""
    data, undirected = run.data, run.settings.data.undirected
    if run.settings.rewiring is not None:
        learned = run.rewire(threshold=0).cpu()
        source, target = learned.edge_index
        once = source < target if undirected else source != target
        probability = learned.edge_probability[once].double().numpy()
        return Pairs(learned.edge_index[:, once].numpy(), learned.edge_origin[once].numpy(), probability)
    edges_of, count = undirected_edges if undirected else directed_edges, int(data.num_nodes or 0)
    before, after = (pair_key(edges_of(graph), count) for graph in (data, run.rewire() if run.rewires else data))
    keys = torch.cat([before, after]).unique()
    given, kept = (torch.isin(keys, part) for part in (before, after))
    return Pairs(pairs_of_keys(keys, count).numpy(), given.numpy(), kept.double().numpy())
