"""Decoys: random pairs shown to a scorer in training as if they were given edges, so that it learns to tell them.

Some nodes are flooded with wrong edges while the rest of the graph is as it was, to a degree that changes from step to
step. What is learned is how strictly to judge an edge by what surrounds it: a clean neighborhood can be trusted, a
flooded one cannot. No label has a part in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from gumbel_mpnn.graph import PairGraph, contains, pair_key
from gumbel_mpnn.nn import ReplicaRNG

FLOODED = 0.2
"""Share of the nodes that decoys are drawn for."""
CLEAN = 0.5
"""Share of the steps without decoys."""


@dataclass(frozen=True, eq=False)
class Decoys:
    """A graph with decoys among its pairs."""

    graph: PairGraph
    is_decoy: Tensor
    """bool [P]"""

    @classmethod
    def among(cls, graph: PairGraph, ratio: float) -> Decoys:
        """`graph` and about `ratio` decoys for each of its given edges, always the same; none joins two of a batch."""
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
        """The decoys of one step, for each replica: none in half of the steps, else any share of them."""
        level = ((rng.noise(1) - CLEAN) / (1 - CLEAN)).clamp(min=0)
        return Flood(self, self.is_decoy & (rng.noise(self.graph.num_pairs) < level.square()))


@dataclass(frozen=True, eq=False)
class Flood:
    """The decoys that are shown in one step."""

    decoys: Decoys
    shown: Tensor
    """bool [R, P]"""

    @property
    def given(self) -> Tensor:
        """Which pairs look like edges of the given graph, bool [R, P]."""
        return self.decoys.graph.is_original | self.shown

    @property
    def present(self) -> Tensor:
        """Which pairs may become edges in this step: all but the decoys that are not shown, bool [R, P]."""
        return self.shown | ~self.decoys.is_decoy

    def loss(self, theta: Tensor) -> Tensor:
        """How badly edges and the decoys shown are told apart, [R]: cross-entropy, the mean over both."""
        target = self.decoys.graph.is_original.to(theta.dtype).expand_as(theta)
        counted = self.given.to(theta.dtype)
        each = binary_cross_entropy_with_logits(theta, target, reduction="none")
        return (each * counted).sum(-1) / counted.sum(-1).clamp(min=1)


def _in_graph_of(nodes: Tensor, drawn: Tensor, graph: PairGraph) -> Tensor:
    """Numbers `drawn` from 0 to N − 1 as nodes of the same graphs of a batch as `nodes`; where it is one, as drawn."""
    if graph.batch is None:
        return drawn
    batch = graph.batch.cpu()
    size, order = torch.bincount(batch), torch.argsort(batch, stable=True)
    of = batch[nodes]
    return order[(size.cumsum(0) - size)[of] + drawn * size[of] // graph.num_nodes]
