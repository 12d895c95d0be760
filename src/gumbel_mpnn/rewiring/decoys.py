"""Decoys: random pairs that are shown to a scorer as if they were given edges, so that it learns to recognize them.

Some nodes get all decoys while the rest of the graph stays unchanged. How many are shown changes from draw to draw; a
few are as likely as many. The scorer learns how far to trust an edge from its surroundings: edges of a clean
neighborhood can be trusted, those among many random ones cannot. No labels are used.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from gumbel_mpnn.graph import PairGraph, contains, pair_key
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.replica import total

SHARE_OF_NODES = 0.2
"""Share of the nodes that get decoys."""
FEWEST = 0.01
"""Smallest share of the decoys that are shown at a time."""


@dataclass(frozen=True, eq=False)
class Decoys:
    """A graph whose pairs include decoys."""

    graph: PairGraph
    is_decoy: Tensor
    """Which pairs are decoys, bool [P]."""

    @classmethod
    def among(cls, graph: PairGraph, ratio: float) -> Decoys:
        """Add about `ratio` decoys per given edge to `graph`; the same graph always gets the same decoys."""
        generator = torch.Generator().manual_seed(0)
        nodes, count = graph.num_nodes, round(ratio * int(graph.is_original.sum()))
        crowded = torch.randperm(nodes, generator=generator)[: max(1, round(SHARE_OF_NODES * nodes))]
        near = crowded[torch.randint(len(crowded), (count,), generator=generator)] if nodes else crowded[:0]
        far = torch.randint(max(nodes, 1), near.shape, generator=generator)
        decoys = torch.stack([far, near]).to(graph.pair_index.device)
        joined = PairGraph.build(
            graph.pair_index[:, graph.is_original],
            nodes,
            undirected=graph.undirected,
            edge_weight=None if graph.pair_weight is None else graph.pair_weight[graph.is_original],
            candidate_index=torch.cat([graph.pair_index[:, ~graph.is_original], decoys], dim=1),
        )
        return cls(joined, ~contains(*(pair_key(some.pair_index, nodes) for some in (graph, joined))))

    def draw(self, rng: ReplicaRNG) -> ShownDecoys:
        """Draw decoys for every replica: a share of all whose logarithm is uniform, from `FEWEST` to 1."""
        share = FEWEST ** rng.noise(1)
        return ShownDecoys(self, self.is_decoy & (rng.noise(self.graph.num_pairs) < share))


@dataclass(frozen=True, eq=False)
class ShownDecoys:
    """The decoys of one draw."""

    decoys: Decoys
    shown: Tensor
    """Which decoys are shown, bool [R, P]."""

    @property
    def given(self) -> Tensor:
        """Pairs that look like given edges, bool [R, P]."""
        return self.decoys.graph.is_original | self.shown

    @property
    def present(self) -> Tensor:
        """Pairs that may become edges: all but the decoys that are not shown, bool [R, P]."""
        return self.shown | ~self.decoys.is_decoy

    def loss(self, theta: Tensor) -> Tensor:
        """Mean cross-entropy of telling given edges from the decoys shown, [R]."""
        counted = self.given.to(theta.dtype)
        each = -logsigmoid(torch.where(self.decoys.graph.is_original, theta, -theta))
        return total(each * counted) / counted.sum(-1).clamp(min=1)
