"""Edge noise: random edges at the test nodes of a graph that a model was trained on without them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from gumbel_mpnn._util.errors import DataError, check_at_least
from gumbel_mpnn.data.raw import BoolArray, IntArray, mask_of
from gumbel_mpnn.data.tasks.neighborhoods import NodesByClass
from gumbel_mpnn.graph import PairGraph, ordered, pair_key, undirected_keys
from gumbel_mpnn.graph.content_order import content_order


def add_noise_edges(data: Data, count: int, seed: int = 0, nodes: Tensor | Sequence[int] | None = None) -> Data:
    """A copy of `data` with `count` new edges, from uniform nodes of `nodes` to a uniform node of a uniform class each.

    Labels have a part in it only through that class. Self-loops and pairs that have an edge already are drawn again, so
    every new edge is one. A smaller count gives the first edges of a larger one. The draw does not depend on how the
    nodes are numbered.

    Args:
        data: a graph with labels; nodes without one are never drawn as the far end.
        count: of edges, not directions: an undirected graph gets both directions of each, side by side. A directed
            one gets the direction towards the node of `nodes`, whose prediction the noise is to disturb.
        seed: of the draw.
        nodes: numbers or a bool mask [N] of the nodes to disturb; None means the test nodes of the (first) split.

    Returns:
        The edges of `data` as they were, then the noise, and `edge_is_noise` bool [E]. On noise, a weight is 1 and any
        other attribute of edges 0.
    """
    check_at_least(0, count=count, seed=seed)
    near, far = _draw(data, _disturbed(data, nodes), count, seed)
    arcs = np.stack([far, near])
    if is_undirected(data.edge_index, num_nodes=len(data.y)):
        arcs = np.stack([arcs, arcs[::-1]], axis=-1).reshape(2, -1)
    return _with_arcs(data, torch.from_numpy(arcs).to(data.edge_index.device))


def _disturbed(data: Data, nodes: Tensor | Sequence[int] | None) -> BoolArray:
    """The mask [N] of the nodes that get noise."""
    if nodes is None:
        mask = data.get("test_mask")
        if mask is None:
            raise DataError("the graph has no test_mask: say which nodes get noise edges")
        nodes = mask if mask.dim() == 1 else mask[:, 0]
    chosen = torch.as_tensor(nodes).cpu().numpy()
    disturbed = chosen if chosen.dtype == bool else mask_of(chosen.astype(np.int64), len(data.y), "nodes")
    if disturbed.shape != (len(data.y),):
        raise DataError(f"the mask of nodes must be of shape [{len(data.y)}], not {list(disturbed.shape)}")
    return disturbed


def _draw(data: Data, disturbed: BoolArray, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """The first `count` new pairs of an endless random sequence: the disturbed nodes [count] and the far ones."""
    y = data.y.cpu().numpy()
    existing = undirected_keys(data.edge_index.cpu(), len(y)).numpy()
    free = _count_free(existing, disturbed, y >= 0)
    if count > free:
        raise DataError(
            f"{count} noise edges do not fit: only {free} pairs of a chosen and a labelled node have no edge"
        )
    order = _content_order(data)
    nodes, groups = order[disturbed[order]], NodesByClass.of(y[order])
    num_draws = 2 * count
    while True:
        # Drawn by rows from the same seed, a longer sequence begins with the shorter one; no split shares the stream.
        uniform = np.random.default_rng((seed, 0, 3)).random((num_draws, 3))
        near = nodes[(uniform[:, 0] * len(nodes)).astype(np.int64)]
        far = order[groups.pick((uniform[:, 1] * len(groups.classes)).astype(np.int64), uniform[:, 2])]
        keys = pair_key(ordered(torch.from_numpy(np.stack([near, far]))), len(y)).numpy()
        new = np.flatnonzero((near != far) & ~np.isin(keys, existing))
        first = np.sort(np.unique(keys[new], return_index=True)[1])[:count]
        if len(first) == count:
            return near[new[first]], far[new[first]]
        num_draws *= 2


def _content_order(data: Data) -> IntArray:
    """The nodes in an order that does not depend on their numbers, [N]."""
    graph, x = PairGraph.build(data.edge_index.cpu(), len(data.y)), data.get("x")
    order: IntArray = content_order(graph, [] if x is None else [x]).numpy()
    return order


def _count_free(existing: IntArray, disturbed: BoolArray, labelled: BoolArray) -> int:
    """How many pairs of a disturbed and a labelled node have no edge yet."""
    low, high = np.divmod(existing, len(labelled))
    taken = disturbed[low] & labelled[high] | disturbed[high] & labelled[low]
    both = int((disturbed & labelled).sum())
    return int(disturbed.sum()) * int(labelled.sum()) - both - both * (both - 1) // 2 - int(taken.sum())


def _with_arcs(data: Data, arcs: Tensor) -> Data:
    """A copy of `data` with these edges [2, K] after its own."""
    noisy = copy.copy(data)
    for name in data.edge_attrs():
        old = data[name]
        if name not in ("edge_index", "candidate_index"):  # as many candidates as edges would pass for an attribute
            fill = old.new_ones if name == "edge_weight" else old.new_zeros
            noisy[name] = torch.cat([old, fill(arcs.shape[1], *old.shape[1:])])
    noisy.edge_index = torch.cat([data.edge_index, arcs], dim=1)
    noisy.num_nodes = len(data.y)
    is_noise = torch.arange(noisy.edge_index.shape[1], device=arcs.device) >= data.edge_index.shape[1]
    noisy.edge_is_noise = is_noise | noisy.edge_is_noise if "edge_is_noise" in data else is_noise
    return noisy
