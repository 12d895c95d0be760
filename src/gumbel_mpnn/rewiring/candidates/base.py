"""What every candidate strategy shares: a `Data` in, the same graph with clean candidate pairs out."""

from __future__ import annotations

import inspect
from abc import abstractmethod

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn.graph import PairGraph, check_candidates, edge_index_of
from gumbel_mpnn.registry import Registry
from gumbel_mpnn.rewiring.candidates.blocks import check_batch
from gumbel_mpnn.rewiring.candidates.pairs import clean, largest_count


class CandidateStrategy(BaseTransform):  # type: ignore[misc]
    """Adds `candidate_index` int64 [2, M] to a graph: pairs that are no edges and that a rewiring may make edges.

    Pairs are `i < j`, sorted, each once; none is an edge in either direction, and none joins two graphs of a batch.
    Strategies in a row add up: `TwoHop()(Local()(data))` has the pairs of both.
    `max_candidates_per_node` is the largest number of candidates at one node: large where the strategy makes hubs.
    A subclass says in `propose` which pairs it would have, and keeps its arguments under their names.
    """

    @abstractmethod
    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of nodes, int64 [2, K], in any order and direction; edges, self-pairs and duplicates do no harm.

        Args:
            data: The graph with all its attributes; it has two nodes at least.
            graph: Its edges, undirected, each once, without self-loops.
        """

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The attributes that the pairs depend on, beside edges, batch and arguments; None, not cached, if unknown."""
        return None

    def forward(self, data: Data) -> Data:
        """The same graph with `candidate_index` and `max_candidates_per_node`; candidates it had stay unless edges."""
        earlier = data.get("candidate_index")
        graph = PairGraph.build(edge_index_of(data, or_empty=True), int(data.num_nodes or 0))
        check_batch(data, graph.pair_index, "an edge")
        pairs = self.propose(data, graph) if graph.num_nodes > 1 else graph.pair_index
        if earlier is not None:
            check_candidates(earlier, graph.num_nodes)
            check_batch(data, earlier, "a candidate")
            pairs = torch.cat([earlier.to(pairs), pairs], dim=1)
        data.candidate_index = clean(pairs, graph)
        data.max_candidates_per_node = largest_count(data.candidate_index)
        return data

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


candidates: Registry[CandidateStrategy] = Registry("candidate strategy")
