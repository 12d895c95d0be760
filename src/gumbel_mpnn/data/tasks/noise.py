"""Edge noise: random edges that are added at the test nodes of a graph after training."""

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
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.data.tasks.neighborhoods import NodesByClass
from gumbel_mpnn.graph import ABOUT_CANDIDATES, PairGraph, ordered, pair_key, undirected_keys
from gumbel_mpnn.graph.content_order import content_order


def add_noise_edges(data: Data, count: int, seed: int = 0, nodes: Tensor | Sequence[int] | None = None) -> Data:
    """Return a copy of `data` with `count` random edges that end at the nodes `nodes`.

    One end is uniform among `nodes`; the other is a uniform node of a uniform class. Self-loops and existing edges are
    drawn again, so exactly `count` edges are added. A smaller count gives the first edges of a larger one.
    The draw does not depend on how the nodes are numbered.

    Args:
        data: a graph with labels; unlabelled nodes are never drawn as the far end.
        count: number of edges. An undirected graph gets both directions of each. A directed graph gets the direction
            towards the node in `nodes`, whose prediction the noise disturbs.
        seed: seed of the draws.
        nodes: numbers or a bool mask [N] of the nodes to disturb; None means the test nodes of the (first) split.

    Returns:
        A graph with the edges of `data` followed by the noise, and `edge_is_noise` bool [E]. Noise edges have weight 1,
        and 0 for all other edge attributes.
    """
    check_at_least(0, count=count, seed=seed)
    near, far = _draw(data, _disturbed(data, nodes), count, seed)
    arcs = np.stack([far, near])
    if is_undirected(data.edge_index, num_nodes=len(data.y)):
        arcs = np.stack([arcs, arcs[::-1]], axis=-1).reshape(2, -1)
    return with_arcs(data, torch.from_numpy(arcs).to(data.edge_index.device))


def _disturbed(data: Data, nodes: Tensor | Sequence[int] | None) -> BoolArray:
    if nodes is None:
        mask = data.get("test_mask")
        if mask is None:
            raise DataError("the graph has no test_mask: give the nodes that get noise edges")
        nodes = by_split(mask)[:, 0]
    chosen = torch.as_tensor(nodes).cpu().numpy()
    disturbed = chosen if chosen.dtype == bool else mask_of(chosen.astype(np.int64), len(data.y), "nodes")
    if disturbed.shape != (len(data.y),):
        raise DataError(f"the mask of nodes must be of shape [{len(data.y)}], not {list(disturbed.shape)}")
    return disturbed


def _draw(data: Data, disturbed: BoolArray, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the first `count` new pairs of a random sequence, as disturbed nodes [count] and far ends [count]."""
    y = data.y.cpu().numpy()
    existing = undirected_keys(data.edge_index.cpu(), len(y)).numpy()
    free = _count_free(existing, disturbed, y >= 0)
    if count > free:
        raise DataError(
            f"there is no room for {count} noise edges: only {free} pairs of a chosen and a labelled node have no edge"
        )
    order = order_by_content(data)
    nodes, groups = order[disturbed[order]], NodesByClass.of(y[order])
    num_draws = 2 * count
    while True:
        # Rows drawn from one seed: a longer sequence begins with the shorter one. Splits use another stream.
        uniform = np.random.default_rng((seed, 0, 3)).random((num_draws, 3))
        near = nodes[(uniform[:, 0] * len(nodes)).astype(np.int64)]
        far = order[groups.pick((uniform[:, 1] * len(groups.classes)).astype(np.int64), uniform[:, 2])]
        keys = pair_key(ordered(torch.from_numpy(np.stack([near, far]))), len(y)).numpy()
        new = np.flatnonzero((near != far) & ~np.isin(keys, existing))
        first = np.sort(np.unique(keys[new], return_index=True)[1])[:count]
        if len(first) == count:
            return near[new[first]], far[new[first]]
        num_draws *= 2


def order_by_content(data: Data) -> IntArray:
    """The nodes in an order that does not depend on their numbers, [N]."""
    graph, x = PairGraph.build(data.edge_index.cpu(), len(data.y)), data.get("x")
    order: IntArray = content_order(graph, [] if x is None else [x]).numpy()
    return order


def _count_free(existing: IntArray, disturbed: BoolArray, labelled: BoolArray) -> int:
    """Count the pairs of a disturbed and a labelled node that have no edge yet."""
    low, high = np.divmod(existing, len(labelled))
    taken = disturbed[low] & labelled[high] | disturbed[high] & labelled[low]
    both = int((disturbed & labelled).sum())
    return int(disturbed.sum()) * int(labelled.sum()) - both - both * (both - 1) // 2 - int(taken.sum())


def with_arcs(data: Data, arcs: Tensor) -> Data:
    """Return a copy of `data` with the edges `arcs` [2, K] appended."""
    noisy = copy.copy(data)
    for name in data.edge_attrs():
        old = data[name]
        if name not in ("edge_index", *ABOUT_CANDIDATES):  # PyG may take candidates for an edge attribute
            fill = old.new_ones if name == "edge_weight" else old.new_zeros
            noisy[name] = torch.cat([old, fill(arcs.shape[1], *old.shape[1:])])
    noisy.edge_index = torch.cat([data.edge_index, arcs], dim=1)
    noisy.num_nodes = len(data.y)
    is_noise = torch.arange(noisy.edge_index.shape[1], device=arcs.device) >= data.edge_index.shape[1]
    noisy.edge_is_noise = is_noise | noisy.edge_is_noise if "edge_is_noise" in data else is_noise
    return noisy
