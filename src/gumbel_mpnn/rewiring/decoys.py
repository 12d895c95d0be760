"""Decoys: random pairs that are shown to a scorer as if they were given edges, so that it learns to recognize them.

Some nodes are flooded with decoys while the rest of the graph stays unchanged. How many decoys are shown changes from
draw to draw; a few are as likely as many. The scorer learns how far to trust an edge from its surroundings: edges of a
clean neighborhood can be trusted, those of a flooded one cannot. No labels are used.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from gumbel_mpnn.graph import PairGraph, contains, pair_key
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.each_replica import total

FLOODED = 0.2
"""Share of the nodes that are flooded with decoys."""
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
        """Add about `ratio` decoys per given edge to `graph`.

        The same graph always gets the same decoys. No decoy joins two graphs of a batch.
        """
        generator = torch.Generator().manual_seed(0)
        nodes, count = graph.num_nodes, round(ratio * int(graph.is_original.sum()))
        flooded = torch.randperm(nodes, generator=generator)[: max(1, round(FLOODED * nodes))]
        near = flooded[torch.randint(len(flooded), (count,), generator=generator)] if nodes else flooded[:0]
        far = _in_graph_of(near, torch.randint(max(nodes, 1), near.shape, generator=generator), graph)
        return cls._join(graph, torch.stack([far, near]).to(graph.pair_index.device))

    @classmethod
    def _join(cls, graph: PairGraph, decoys: Tensor) -> Decoys:
        given, others = graph.pair_index[:, graph.is_original], graph.pair_index[:, ~graph.is_original]
        weight = None if graph.pair_weight is None else graph.pair_weight[graph.is_original]
        joined = PairGraph.build(
            given,
            graph.num_nodes,
            undirected=graph.undirected,
            edge_weight=weight,
            candidate_index=torch.cat([others, decoys], dim=1),
        )
        keys = [pair_key(some.pair_index, some.num_nodes) for some in (graph, joined)]
        return cls(joined, ~contains(*keys))

    def draw(self, rng: ReplicaRNG) -> Flood:
        """Draw decoys for every replica: a share of all whose logarithm is uniform, from `FEWEST` to 1."""
        share = FEWEST ** rng.noise(1)
        return Flood(self, self.is_decoy & (rng.noise(self.graph.num_pairs) < share))


@dataclass(frozen=True, eq=False)
class Flood:
    """Decoys that are shown at a time."""

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


def _in_graph_of(nodes: Tensor, drawn: Tensor, graph: PairGraph) -> Tensor:
    """Map numbers `drawn` from 0 to N − 1 to nodes of the same graph of a batch as `nodes`."""
    if graph.batch is None:
        return drawn
    batch = graph.batch.cpu()
    size, order = torch.bincount(batch), torch.argsort(batch, stable=True)
    own = batch[nodes]
    return order[(size.cumsum(0) - size)[own] + drawn * size[own] // graph.num_nodes]
