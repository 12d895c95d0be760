"""The pairs of nodes that a run knows: given edges and candidates, each with its learned probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gumbel_mpnn.graph import pair_key
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


def pairs_of(run: Run) -> Pairs:
    """Given edges and candidates of the training graph; the probability is 1 or 0 for models that learn none."""
    data = run.data  # pairs of a stored graph could be read without it, labels and features not
    edges_of = undirected_edges if run.settings.data.undirected else directed_edges
    if run.settings.rewiring is not None:
        learned = run.rewire(threshold=0).cpu()
        source, target = learned.edge_index
        once = source < target if run.settings.data.undirected else source != target
        probability = learned.edge_probability[once].double().numpy()
        return Pairs(learned.edge_index[:, once].numpy(), learned.edge_origin[once].numpy(), probability)
    before = edges_of(data)
    after = edges_of(run.rewire()) if run.rewires else before
    both = torch.cat([before, after], dim=1).unique(dim=1)
    count = int(data.num_nodes or 0)
    given, kept = (torch.isin(pair_key(both, count), pair_key(part, count)) for part in (before, after))
    return Pairs(both.numpy(), given.numpy(), kept.double().numpy())
