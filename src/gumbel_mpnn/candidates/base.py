"""What every candidate strategy shares: a `Data` in, the same graph with clean candidate pairs out."""

from __future__ import annotations

import inspect
from abc import abstractmethod

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn.candidates.blocks import check_batch
from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.graph import (
    PairGraph,
    check_candidates,
    contains,
    edge_index_of,
    pair_key,
    pairs_of,
    undirected_keys,
)
from gumbel_mpnn.graph.batches import can_be_taken_apart, renew_numbers, renew_pairs
from gumbel_mpnn.graph.content_order import content_order, in_order, renumbered


class CandidateStrategy(BaseTransform):  # type: ignore[misc]
    """Adds `candidate_index` int64 [2, M] to a graph: pairs that are no edges and that a rewiring may make edges.

    Pairs are `i < j`, sorted, each once; none is an edge in either direction, and none joins two graphs of a batch.
    Strategies in a row add up: `TwoHop()(Local()(data))` has the pairs of both.
    `max_candidates_per_node` is the largest number of candidates at one node, in a `Batch` that of each graph [B]; it
    is large where the strategy makes hubs. Candidates are numbers of nodes, which `data.subgraph` and permutations of
    the nodes do not follow: make them afterwards.
    A subclass says in `propose` which pairs it would have, and keeps its arguments under their names. It is shown the
    nodes in an order that their features and edges decide, so that it may break ties by number: candidates do not
    depend on how the nodes of a graph are numbered.
    """

    @abstractmethod
    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of nodes, int64 [2, K], in any order and direction; edges, self-pairs and duplicates do no harm.

        Args:
            data: The graph with all its attributes, nodes in content order; it has two nodes at least.
            graph: Its edges, undirected, each once, without self-loops.
        """

    @property
    def reads(self) -> tuple[str, ...] | None:
        """Attributes that the pairs depend on, beside `x`, edges, batch and arguments; None, not cached, if unknown."""
        return None

    def forward(self, data: Data) -> Data:
        """The same graph with `candidate_index` and `max_candidates_per_node`; candidates it had stay unless edges."""
        graph = PairGraph.build(edge_index_of(data, or_empty=True), int(data.num_nodes or 0))
        earlier = data.get("candidate_index")
        check_batch(data, graph.pair_index, "an edge")
        if earlier is not None:
            check_candidates(earlier, graph.num_nodes)
            check_batch(data, earlier, "a candidate")
        pairs = self._propose_in_content_order(data, graph) if graph.num_nodes > 1 else graph.pair_index
        if earlier is not None:
            pairs = torch.cat([earlier.to(pairs), pairs], dim=1)
        data.candidate_index = clean(pairs, graph)
        data.max_candidates_per_node = largest_count(data.candidate_index)
        if can_be_taken_apart(data):
            data.max_candidates_per_node = _largest_counts(data.candidate_index, data.batch, len(data.ptr) - 1)
            renew_pairs(data, "candidate_index")
            renew_numbers(data, "max_candidates_per_node")
        return data

    def _propose_in_content_order(self, data: Data, graph: PairGraph) -> Tensor:
        """What `propose` gives for the graph in content order, as pairs of nodes of `data`, int64 [2, K]."""
        names = dict.fromkeys(["x", *(self.reads or ())])
        features = [data[name] for name in names if _is_of_nodes(data.get(name), graph.num_nodes)]
        order = content_order(graph, features, data.get("batch"))
        pairs = self.propose(in_order(data, order), renumbered(graph, order))
        return order[pairs.to(order.device)]

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def clean(pairs: Tensor, graph: PairGraph) -> Tensor:
    """Of `pairs` [2, K] those that are neither edges nor self-pairs: `i < j`, sorted, each once, [2, M]."""
    keys = undirected_keys(pairs, graph.num_nodes)
    keys = keys[~contains(pair_key(graph.pair_index, graph.num_nodes), keys)]
    return pairs_of(keys, graph.num_nodes)


def largest_count(pairs: Tensor) -> int:
    """The number of pairs [2, M] at the node that has most."""
    return int(torch.bincount(pairs.flatten()).max()) if pairs.numel() else 0


def _is_of_nodes(value: object, num_nodes: int) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0 and len(value) == num_nodes


def _largest_counts(pairs: Tensor, batch: Tensor, graphs: int) -> Tensor:
    """The number of pairs [2, M] at the node that has most, of each graph of a batch [N], int64 [B]."""
    counts = torch.bincount(pairs.flatten(), minlength=len(batch))
    return counts.new_zeros(graphs).scatter_reduce(0, batch, counts, "amax")


candidates: Registry[CandidateStrategy] = Registry("candidate strategy")
