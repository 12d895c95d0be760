"""Base class of candidate strategies, and candidates of mini-batches."""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.candidates.blocks import check_batch
from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.data.given import as_tensors
from gumbel_mpnn.graph import (
    CANDIDATE_OF,
    PairGraph,
    check_candidates,
    contains,
    digest_of_nodes,
    edge_index_of,
    pair_key,
    pairs_of,
    undirected_keys,
    warn_if_stale,
)
from gumbel_mpnn.graph.content_order import content_order, in_order
from gumbel_mpnn.graph.edge_list import is_whole, tensor_of
from gumbel_mpnn.graph.pairs import can_be_taken_apart, renew_numbers, renew_pairs


class CandidateStrategy(BaseTransform):  # type: ignore[misc]
    """Adds `candidate_index` int64 [2, M] to a graph: pairs of nodes that are not edges but may become edges.

    Pairs are unique and sorted, with `i < j`. None is an edge in either direction, and none joins two graphs of a
    batch. Strategies can be combined: `TwoHop()(Local()(data))` has the pairs of both.

    `max_candidates_per_node` is the largest number of candidates of one node; of a `Batch`, one number per graph [B].
    It is large if the strategy creates hubs.

    `data.subgraph` and permutations of the nodes do not update `candidate_index`, so apply them before the strategy.
    `candidate_of` [1, 3] is a digest of the nodes, by which later steps notice this and warn.

    A subclass implements `propose` and stores its arguments as attributes of the same names. `propose` receives the
    nodes in an order that depends on features and edges only. Ties may be broken by node number: candidates do not
    depend on the numbering of the nodes in `data`.
    """

    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default: a list of values or a range for each."""

    @abstractmethod
    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of nodes, int64 [2, K], in any order and direction; edges, self-pairs and duplicates are allowed.

        Args:
            data: Graph with all its attributes and at least two nodes, which are in content order.
            graph: Undirected edges of `data`, without duplicates and self-loops.
        """

    @property
    def reads(self) -> tuple[str, ...] | None:
        """Attributes that the pairs depend on, besides edges and batch; None if unknown, which disables caching."""
        return None

    def forward(self, data: Data) -> Data:
        """Add `candidate_index` and `max_candidates_per_node` to `data`, which may already have candidates."""
        data = as_tensors(data)
        graph = PairGraph.build(edge_index_of(data, or_empty=True), int(data.num_nodes or 0))
        earlier = data.get("candidate_index")
        check_batch(data, graph.pair_index, "an edge")
        if earlier is not None:
            check_candidates(earlier, graph.num_nodes)
            check_batch(data, earlier, "a candidate")
            warn_if_stale(data)
        pairs = self._propose_in_content_order(data, graph) if graph.num_nodes > 1 else graph.pair_index
        if earlier is not None:
            pairs = torch.cat([earlier.to(pairs), pairs], dim=1)
        data.candidate_index = clean(pairs, graph)
        data.max_candidates_per_node = largest_count(data.candidate_index)
        data[CANDIDATE_OF] = digest_of_nodes(data)
        if can_be_taken_apart(data):
            data.max_candidates_per_node = _largest_counts(data.candidate_index, data.batch, len(data.ptr) - 1)
            renew_pairs(data, "candidate_index")
            renew_numbers(data, "max_candidates_per_node")
            renew_numbers(data, CANDIDATE_OF)
        return data

    def _propose_in_content_order(self, data: Data, graph: PairGraph) -> Tensor:
        """Call `propose` on the graph in content order; returns pairs of nodes of `data`, int64 [2, K]."""
        names = dict.fromkeys(["x", *(self.reads or ())])
        found = [value for name in names if isinstance(value := data.get(name), Tensor)]
        features = [value for value in found if value.dim() > 0 and len(value) == graph.num_nodes]
        order = content_order(graph, features, data.get("batch"))
        pairs = self.propose(in_order(data, order), graph.renumbered(order))
        return order[pairs.to(order.device)]

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def clean(pairs: Tensor, graph: PairGraph) -> Tensor:
    """Remove edges, self-pairs and duplicates from `pairs` [2, K]; returns sorted pairs `i < j`, [2, M]."""
    keys = undirected_keys(pairs, graph.num_nodes)
    keys = keys[~contains(pair_key(graph.pair_index, graph.num_nodes), keys)]
    return pairs_of(keys, graph.num_nodes)


def largest_count(pairs: Tensor) -> int:
    """Largest number of pairs [2, M] of one node."""
    return int(torch.bincount(pairs.flatten()).max()) if pairs.numel() else 0


def _largest_counts(pairs: Tensor, batch: Tensor, graphs: int) -> Tensor:
    """Largest number of pairs [2, M] of one node, for each graph of a batch [N], int64 [B]."""
    counts = torch.bincount(pairs.flatten(), minlength=len(batch))
    return counts.new_zeros(graphs).scatter_reduce(0, batch, counts, "amax")


def for_batch(batch: Data, candidate_index: Tensor, n_id: Tensor | None = None) -> Data:
    """Return a mini-batch with those candidates of the whole graph whose two nodes are in it.

    Works with the batches of PyG's `NeighborLoader`, `ClusterLoader` and `RandomNodeLoader`. A `NeighborLoader` says
    itself which nodes a batch has. For the other two, set `data.n_id = torch.arange(data.num_nodes)` before the loader
    is made.

    Args:
        batch: Mini-batch of a loader; it is not changed.
        candidate_index: Candidates of the whole graph [2, M], as in `data.candidate_index`.
        n_id: Number of each node of the batch in the whole graph, int64 [n]; `batch.n_id` by default.
    """
    n_id = tensor_of(batch, "n_id") if n_id is None else n_id
    nodes = int(batch.num_nodes or 0)
    if n_id is None:
        raise DataError(
            "the batch does not say which nodes it has: set data.n_id = torch.arange(data.num_nodes) before the loader"
            " is made"
        )
    if n_id.shape != (nodes,) or not is_whole(n_id):
        form = f"{n_id.dtype} {list(n_id.shape)}"
        raise DataError(f"n_id must be integers of shape [{nodes}], one for each node of the batch, not {form}")
    if not isinstance(candidate_index, Tensor):
        kind = type(candidate_index).__name__
        raise DataError(f"candidate_index must be a tensor [2, M], such as data.candidate_index, not a {kind}")
    check_candidates(candidate_index, torch.iinfo(torch.int64).max)
    batch = copy.copy(batch)
    batch.candidate_index = _renumbered(candidate_index.to(n_id.device), n_id)
    batch.max_candidates_per_node = largest_count(batch.candidate_index)
    batch[CANDIDATE_OF] = digest_of_nodes(batch)
    return batch


def _renumbered(pairs: Tensor, n_id: Tensor) -> Tensor:
    """Pairs [2, M] among the nodes `n_id` [n], as sorted pairs of places in `n_id`, int64 [2, m]."""
    if pairs.numel() == 0 or n_id.numel() == 0:
        return n_id.new_empty(2, 0)
    place = n_id.new_full((1 + int(torch.maximum(pairs.max(), n_id.max())),), -1)
    place[n_id] = torch.arange(len(n_id), device=n_id.device)
    if int((place >= 0).sum()) != len(n_id):
        raise DataError("a node is in the batch twice: use a loader without disjoint=True")
    ends = place[pairs]
    return pairs_of(undirected_keys(ends[:, (ends >= 0).all(0)], len(n_id)), len(n_id))


candidates: Registry[CandidateStrategy] = Registry("candidate strategy")
