"""Candidate strategies: PyG transforms that add pairs of nodes that may become edges.

The base class is followed by the four strategies, and by what applies them: settings, and the loaders of PyG.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn.candidates.search import (
    Span,
    closest_pairs,
    embeddings,
    nearest,
    nearest_approximately,
)
from gumbel_mpnn.data.check import as_tensors
from gumbel_mpnn.graph import (
    PairGraph,
    check_candidates,
    contains,
    content_order,
    edge_index_of,
    in_order,
    pair_key,
    pairs_of,
    tensor_of,
    undirected_keys,
    without_candidates,
)
from gumbel_mpnn.graph.pairs import can_be_taken_apart, is_whole
from gumbel_mpnn.measures.curvature import adjacency, pair_curvature
from gumbel_mpnn.nn.features import column_statistics
from gumbel_mpnn.nn.replica import derive_seed
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.settings.registry import Registry
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError, check_at_least, check_whole, unknown_name

DATA = "data"
"""Value of `rewiring.candidates` for the candidates of the data."""
NONE = "none"
"""Value of `rewiring.candidates` for the given edges only."""
SIMILARITIES, SEARCHES = ("cosine", "dot"), ("auto", "exact", "approximate")
EXACT_UP_TO = 50_000
"""Nodes up to which training in parts searches exactly: an estimate of where this takes as long as compiling the
approximate search, about a minute."""
SMALL = 512
"""Graphs of up to so many nodes are searched exactly whatever the options say."""
NODES_AT_ONCE = 4096
"""Nodes that a thread draws for, before it takes the next ones."""

candidates: Registry[CandidateStrategy] = Registry("candidate strategy")


class CandidateStrategy(BaseTransform):  # type: ignore[misc]
    """Adds `candidate_index` int64 [2, M] to a graph: pairs of nodes that are not edges but may become edges.

    Pairs are unique and sorted, with `i < j`. None is an edge in either direction, and none joins two graphs of a
    batch. Strategies can be combined: `TwoHop()(Local()(data))` has the pairs of both.

    `data.subgraph` and permutations of the nodes do not update `candidate_index`, so apply them before the strategy.
    A PyG `Batch` is put together again from its graphs with their candidates, so apply strategies before you give it
    attributes of its own.

    A subclass implements `propose` and stores its arguments as attributes of the same names. `propose` receives the
    nodes in an order that depends on features and edges only. Ties may be broken by node number: candidates do not
    depend on the numbering of the nodes in `data`.
    """

    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default: a list of values or a range for each."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Attributes of the nodes besides `x` that the pairs depend on."""
        return ()

    @abstractmethod
    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of nodes, int64 [2, K], in any order and direction; edges, self-pairs and duplicates are allowed.

        Args:
            data: Graph with all its attributes and at least two nodes, which are in content order.
            graph: Undirected edges of `data`, without duplicates and self-loops.
        """

    def forward(self, data: Data) -> Data:
        """Add `candidate_index` to `data`, which may already have candidates."""
        if can_be_taken_apart(data):
            return data.from_data_list([self(graph) for graph in data.to_data_list()])
        data = as_tensors(data)
        graph = PairGraph.build(edge_index_of(data, or_empty=True), int(data.num_nodes or 0))
        earlier = data.get("candidate_index")
        _check_batch(data)
        if earlier is not None:
            check_candidates(earlier, graph.num_nodes)
        pairs = self._propose_in_content_order(data, graph) if graph.num_nodes > 1 else graph.pair_index
        if earlier is not None:
            pairs = torch.cat([earlier.to(pairs), pairs], dim=1)
        keys = undirected_keys(pairs, graph.num_nodes)
        keys = keys[~contains(pair_key(graph.pair_index, graph.num_nodes), keys)]
        data.candidate_index = pairs_of(keys, graph.num_nodes)
        return data

    def _propose_in_content_order(self, data: Data, graph: PairGraph) -> Tensor:
        """Call `propose` on the graph in content order; returns pairs of nodes of `data`, int64 [2, K]."""
        found = [value for name in dict.fromkeys(["x", *self.reads]) if isinstance(value := data.get(name), Tensor)]
        features = [value for value in found if value.dim() > 0 and len(value) == graph.num_nodes]
        order = content_order(graph, features, data.get("batch"))
        pairs = self.propose(in_order(data, order), graph.renumbered(order))
        return order[pairs.to(order.device)]

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _check_batch(data: Data) -> None:
    """Raise a `DataError` if `data.batch` does not number the graphs in the order of the nodes."""
    batch, nodes = data.get("batch"), int(data.num_nodes or 0)
    if batch is not None and (batch.shape != (nodes,) or bool((batch[1:] < batch[:-1]).any())):
        raise DataError(
            f"batch must be the number of the graph of each of the {nodes} nodes, sorted: put the nodes of each graph"
            " next to each other"
        )


class BySimilarity(CandidateStrategy):
    """A strategy that compares nodes by the `similarity` of their embeddings, the attribute `on`."""

    def __init__(self, similarity: str, on: str) -> None:
        if similarity not in SIMILARITIES:
            raise unknown_name("similarity", similarity, SIMILARITIES)
        self.similarity, self.on = similarity, on

    @property
    def reads(self) -> tuple[str, ...]:
        """Attribute with the embeddings."""
        return (self.on,)


def _spans(data: Data) -> list[Span]:
    """First node of each graph of a batch and the one after its last; all nodes without `batch`."""
    batch = data.get("batch")
    sizes = torch.tensor([data.num_nodes]) if batch is None else torch.unique_consecutive(batch, return_counts=True)[1]
    return list(pairwise([0, *sizes.cumsum(0).tolist()]))


@candidates.register("local")
class Local(BySimilarity):
    """For each node, the `per_node` most similar nodes that are not its neighbors.

    A node can be chosen by many others, far more often by dot product than by cosine. Only nodes of similarity above 0
    are chosen. Ties are broken at random, but always in the same way.

    Args:
        per_node: Number of nodes that each node chooses; a pair that both nodes choose counts once.
        similarity: `cosine`, or `dot` as in the paper.
        on: Attribute of the graph with the embeddings [N, D].
        search: `exact`, or `approximate` for large graphs and the cosine: NN-descent, which misses few pairs. `auto` is
            exact but for large graphs that `fit` trains on in parts.
    """

    space: ClassVar[Mapping[str, Any]] = {"per_node": [3, 5, 10]}

    def __init__(self, per_node: int = 5, similarity: str = "cosine", on: str = "x", search: str = "auto") -> None:
        check_at_least(1, per_node=per_node)
        super().__init__(similarity, on)
        if search not in SEARCHES:
            raise unknown_name("search", search, SEARCHES)
        if search == "approximate" and similarity != "cosine":
            raise UserError(
                f"the approximate search is for similarity 'cosine', not {similarity!r}: set search='exact'"
            )
        self.per_node, self.search = per_node, search

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of each node and the nodes it chose, int64 [2, K]."""
        x = embeddings(data, self.on, self.similarity)
        if self.search == "approximate" and data.get("batch") is None and graph.num_nodes > SMALL:
            return _joined_to(nearest_approximately(x, graph, self.per_node))
        return _joined_to(nearest(x, graph, _spans(data), self.per_node))


@candidates.register("global")
class Global(BySimilarity):
    """Most similar pairs of the graph, or of each graph of a batch.

    Only pairs of similarity above 0 are chosen. Ties are broken at random, but always in the same way.

    Args:
        pairs: Number of pairs per graph; 0 for twice the number of undirected edges.
        similarity: `cosine`, or `dot` as in the paper.
        on: Attribute of the graph with the embeddings [N, D].
    """

    def __init__(self, pairs: int = 0, similarity: str = "cosine", on: str = "x") -> None:
        check_at_least(0, pairs=pairs)
        super().__init__(similarity, on)
        self.pairs = pairs

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Most similar pairs, int64 [2, K]."""
        x = embeddings(data, self.on, self.similarity)
        edges, found = pair_key(graph.pair_index, graph.num_nodes), []
        for start, stop in _spans(data):
            inside = torch.searchsorted(edges, edges.new_tensor([start, stop]) * graph.num_nodes).diff()
            found.append(closest_pairs(x, edges, (start, stop), self.pairs or 2 * int(inside)))
        return torch.cat(found, dim=1)


def _joined_to(chosen: Tensor) -> Tensor:
    """Pairs of each node and the nodes it chose [N, K], −1 for none, int64 [2, M]."""
    node, place = (chosen >= 0).nonzero().T
    return torch.stack([node, chosen[node, place]])


@candidates.register("two_hop", "2-hop")
class TwoHop(CandidateStrategy):
    """For each node, up to `per_node` random nodes at distance two, drawn with equal probability.

    Args:
        per_node: Number of nodes that each node draws without replacement; a pair that both nodes draw counts once.
        seed: Seed of the draws, which are the same on every machine and in every batch.
    """

    space: ClassVar[Mapping[str, Any]] = {"per_node": [3, 5, 10]}

    def __init__(self, per_node: int = 5, seed: int = 0) -> None:
        check_at_least(1, per_node=per_node)
        check_whole(seed=seed)
        self.per_node, self.seed = per_node, seed

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of each node and the nodes it drew, int64 [2, K]."""
        from gumbel_mpnn.candidates.kernels import draw_two_hop

        rowptr, col = graph.arcs.rowptr.cpu().numpy(), graph.arcs.col.cpu().numpy()
        drawn = np.full((graph.num_nodes, self.per_node), -1, dtype=np.int64)
        # Nodes are numbered within their graph of a batch, so that draws do not depend on the other graphs.
        batch = np.zeros(graph.num_nodes) if data.get("batch") is None else data.batch.cpu().numpy()
        first, stream = np.searchsorted(batch, batch).astype(np.uint64), np.uint64(derive_seed(self.seed, "two_hop"))
        spans = pairwise([*range(0, graph.num_nodes, NODES_AT_ONCE), graph.num_nodes])
        # The kernel does not hold the GIL, and what a node draws does not depend on the others.
        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            list(threads.map(lambda span: draw_two_hop(rowptr, col, first, stream, drawn, *span), spans))
        return _joined_to(torch.from_numpy(drawn).to(graph.pair_index.device))


@candidates.register("ricci")
class Ricci(CandidateStrategy):
    """Pairs around the edges of lowest balanced Forman curvature, which are bottlenecks of the graph.

    Edges `x ~ y` are visited in ascending order of curvature until enough pairs are found. Each edge draws up to
    `per_edge` pairs of `x` or a neighbor of `x` alone with `y` or a neighbor of `y` alone. Such a pair would close a
    triangle or a four-cycle with `x ~ y`. SDRF chooses from the same pairs.

    Args:
        pairs: Total number of pairs; 0 for twice the number of undirected edges.
        per_edge: Number of pairs that each edge draws with equal probability; a smaller number reaches more edges.
        seed: Seed of the draws, which are the same on every machine.
    """

    def __init__(self, pairs: int = 0, per_edge: int = 10, seed: int = 0) -> None:
        check_at_least(0, pairs=pairs)
        check_at_least(1, per_edge=per_edge)
        check_whole(seed=seed)
        self.pairs, self.per_edge, self.seed = pairs, per_edge, seed

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs around the most negatively curved edges, int64 [2, K]."""
        from gumbel_mpnn.candidates.kernels import draw_around

        neighbors, pairs = adjacency(graph), graph.pair_index.cpu().numpy()
        order = np.argsort(pair_curvature(graph), kind="stable")
        stream, wanted = np.uint64(derive_seed(self.seed, "ricci")), self.pairs or 2 * graph.num_pairs
        found, start = np.empty(0, np.int64), 0
        while len(found) < wanted and start < len(order):
            edges = order[start : start + max(2 * (wanted - len(found)) // self.per_edge, 1024)]
            drawn = np.full((len(edges), self.per_edge), -1, np.int64)
            draw_around(neighbors, pairs, edges, stream, drawn)
            found = np.concatenate([found, drawn[drawn >= 0]])
            found = found[np.sort(np.unique(found, return_index=True)[1])]
            start += len(edges)
        return pairs_of(torch.from_numpy(found[:wanted]), graph.num_nodes).to(graph.pair_index.device)


def with_candidates(data: Data, settings: RewiringSettings, standardized: bool = False, partitions: int = 1) -> Data:
    """Graph with the candidates that `settings` ask for, and no others.

    If `standardized`, strategies see features that are standardized over all nodes. This uses no label, and so
    candidates are the same for all splits. A large graph that is trained in `partitions` is searched approximately,
    unless the settings say how.
    """
    if settings.candidates == DATA:
        if data.get("candidate_index") is None:
            raise DataError(
                "rewiring.candidates is 'data', but this graph has none: give it data.candidate_index, which may be"
                " empty, or choose a strategy before training"
            )
        return data
    data = without_candidates(data)
    if settings.candidates == NONE:
        return data
    options = candidates.complete(settings.candidates, settings.options_of("candidates"))
    large = partitions > 1 and int(data.num_nodes or 0) > EXACT_UP_TO
    if large and (options.get("search"), options.get("similarity")) == ("auto", "cosine"):
        options["search"] = "approximate"
    strategy = candidates[settings.candidates](**options)
    x = data.get("x")
    if standardized and x is not None:  # a strategy that needs features says so itself
        dense = x.to_dense().double()
        mean, scale = column_statistics(dense)
        data.x = ((dense - mean) / scale).float()
    with_them: Data = strategy(data)
    if x is not None:
        with_them.x = x
    if with_them.candidate_index.numel() == 0:
        warnings.warn(
            f"the strategy {settings.candidates!r} finds no candidates here: edges can be dropped, but none added",
            DataWarning,
            stacklevel=2,
        )
    return with_them


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
    n_id, nodes = tensor_of(batch, "n_id") if n_id is None else n_id, int(batch.num_nodes or 0)
    if n_id is None:
        raise DataError(
            "the batch does not say which nodes it has: set data.n_id = torch.arange(data.num_nodes) before the loader"
            " is made"
        )
    if n_id.shape != (nodes,) or not is_whole(n_id):
        form = f"{n_id.dtype} {list(n_id.shape)}"
        raise DataError(f"n_id must be integers of shape [{nodes}], one for each node of the batch, not {form}")
    if len(n_id.unique()) < nodes:
        raise DataError("a node is in the batch twice: use a loader without disjoint=True")
    pairs = torch.as_tensor(candidate_index, device=n_id.device)
    check_candidates(pairs, torch.iinfo(torch.int64).max)
    place = n_id.new_full((1 + max(int(ends.max()) if ends.numel() else 0 for ends in (pairs, n_id)),), -1)
    place[n_id] = torch.arange(nodes, device=n_id.device)
    ends = place[pairs.long()]
    batch = copy.copy(batch)
    batch.candidate_index = pairs_of(undirected_keys(ends[:, (ends >= 0).all(0)], nodes), nodes)
    return batch
