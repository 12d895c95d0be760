"""Wrong edges added to a graph: random ones at chosen nodes, and those that a targeted attack would add."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from gumbel_mpnn.data.splits import BoolArray, IntArray, by_split, mask_of
from gumbel_mpnn.graph import PairGraph, content_order, in_order, ordered, pair_key, undirected_keys
from gumbel_mpnn.util.errors import DataError, check_at_least
from gumbel_mpnn.util.tensors import dense_if_small


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
    if nodes is None:
        if data.get("test_mask") is None:
            raise DataError("the graph has no test_mask: give the nodes that get noise edges")
        nodes = by_split(data.test_mask)[:, 0]
    chosen = torch.as_tensor(nodes).cpu().numpy()
    disturbed = chosen if chosen.dtype == bool else mask_of(chosen.astype(np.int64), len(data.y), "nodes")
    arcs = _draw(data, disturbed, count, seed)
    if is_undirected(data.edge_index, num_nodes=len(data.y)):
        arcs = np.stack([arcs, arcs[::-1]], axis=-1).reshape(2, -1)
    return with_arcs(data, torch.from_numpy(arcs).to(data.edge_index.device))


def _draw(data: Data, disturbed: BoolArray, count: int, seed: int) -> IntArray:
    """Return the first `count` new pairs of a random sequence, far ends and disturbed nodes, [2, count]."""
    y = data.y.cpu().numpy()
    existing = undirected_keys(data.edge_index.cpu(), len(y)).numpy()
    free = _count_free(existing, disturbed, y >= 0)
    if count > free:
        raise DataError(
            f"there is no room for {count} noise edges: only {free} pairs of a chosen and a labelled node have no edge"
        )
    order = _order_by_content(data)
    nodes = order[disturbed[order]]
    by_class = order[np.argsort(y[order], kind="stable")][(y < 0).sum() :]
    _, first, size = np.unique(y[by_class], return_index=True, return_counts=True)
    num_draws = 2 * count
    while True:
        # Rows drawn from one seed: a longer sequence begins with the shorter one. Splits use another stream.
        uniform = np.random.default_rng((seed, 0, 3)).random((num_draws, 3))
        near = nodes[(uniform[:, 0] * len(nodes)).astype(np.int64)]
        group = (uniform[:, 1] * len(size)).astype(np.int64)
        far = by_class[first[group] + (uniform[:, 2] * size[group]).astype(np.int64)]
        arcs = np.stack([far, near])
        keys = pair_key(ordered(torch.from_numpy(arcs)), len(y)).numpy()
        new = np.flatnonzero((near != far) & ~np.isin(keys, existing))
        chosen = new[np.sort(np.unique(keys[new], return_index=True)[1])[:count]]
        if len(chosen) == count:
            return arcs[:, chosen]
        num_draws *= 2


def _order_by_content(data: Data) -> IntArray:
    """The nodes in an order that does not depend on their numbers, [N]."""
    features = [] if data.get("x") is None else [data.x]
    return content_order(PairGraph.build(data.edge_index.cpu(), len(data.y)), features).numpy()


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
        if name not in ("edge_index", "candidate_index"):  # PyG may take candidates for an edge attribute
            fill = old.new_ones if name == "edge_weight" else old.new_zeros
            noisy[name] = torch.cat([old, fill(arcs.shape[1], *old.shape[1:])])
    noisy.edge_index = torch.cat([data.edge_index, arcs], dim=1)
    noisy.num_nodes = len(data.y)
    is_noise = torch.arange(noisy.edge_index.shape[1], device=arcs.device) >= data.edge_index.shape[1]
    noisy.edge_is_noise = is_noise | noisy.edge_is_noise if "edge_is_noise" in data else is_noise
    return noisy


MOST_HOSTILE_EDGES = 5
"""Hostile edges that a node gets at most, and no more than half as many as it has edges."""
SHARE, MOST_TARGETS = 1 / 3, 500
"""Share of the validation nodes that get hostile edges, those with most edges, and their number at most."""
MOST_TRAINING_NODES = 2_000
"""Training nodes at most from which the attacker learns."""
STEPS, LEARNING_RATE, WEIGHT_DECAY = 200, 0.05, 5e-4
DIGITS = 5
"""Decimal digits of what an edge is worth, so that rounding errors do not decide."""

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class HostileEdges:
    """Transform that adds hostile edges at some validation nodes of a split, which alone are left in its `val_mask`.

    The attacker knows a linear model of two hops, fitted to the training nodes, as Nettack does (Zügner et al., 2018).
    It joins a node to those that speak most for the wrong class that this model finds most likely. Test labels are
    not used, and the numbering of the nodes does not matter.
    """

    split: int = 0
    first: Callable[[Data], Data] | None = None
    """Transform that is applied before."""

    def __call__(self, data: Data) -> Data:
        """Return a copy of `data` with hostile edges; `edge_is_noise`, bool [E], says which they are."""
        data = data if self.first is None else self.first(data)
        order = _order_by_content(data)
        targets, arcs = _attack(in_order(data, torch.from_numpy(order)), self.split)
        arcs = order[arcs]
        if is_undirected(data.edge_index, num_nodes=len(data.y)):
            arcs = np.concatenate([arcs, arcs[::-1]], axis=1)
        out = with_arcs(data, torch.from_numpy(arcs).to(data.edge_index.device))
        out.val_mask = data.val_mask.clone()
        left = by_split(out.val_mask)[:, self.split]
        left[:] = False
        left[torch.from_numpy(order[targets])] = True
        return out


def _attack(data: Data, split: int) -> tuple[IntArray, IntArray]:
    """The attacked nodes, and their hostile edges [2, K] from the far ends to these nodes.

    Attacked are the validation nodes with most edges, and the one with most of each class that would be left out.
    """
    train, val = (by_split(data[name])[:, split].cpu().numpy().nonzero()[0] for name in ("train_mask", "val_mask"))
    walk, degree = _walk(data)
    y, nodes = data.y.cpu().numpy(), val[degree[val] > 0]
    if not len(nodes):
        raise DataError("no validation node has an edge, so that none can get hostile ones")
    nodes = nodes[np.argsort(-degree[nodes], kind="stable")]
    chosen = np.arange(len(nodes)) < min(math.ceil(SHARE * len(val)), MOST_TARGETS)
    chosen[np.unique(y[nodes], return_index=True)[1]] = True
    targets = nodes[chosen]
    arcs = _hostile(y, walk, degree, targets, *_attacker(data, walk, train))
    if not arcs.shape[1]:
        raise DataError("all nodes are joined already, so that there is no room for hostile edges")
    return targets, arcs


def _walk(data: Data) -> tuple[Any, FloatArray]:
    """The normalized adjacency matrix with self-loops [N, N], and the degrees without these [N]."""
    count, (source, target) = len(data.y), data.edge_index.cpu().numpy()
    ones = np.ones(len(source), dtype=np.float32)
    edges = csr_array((ones, (target, source)), shape=(count, count))
    edges = csr_array((edges + edges.T) > 0).astype(np.float32)
    edges.setdiag(0)
    edges.eliminate_zeros()
    degree = np.asarray(edges.sum(1)).ravel()
    scale = diags_array(1 / np.sqrt(degree + 1))
    return csr_array(scale @ (edges + eye_array(count)) @ scale).astype(np.float32), degree


def _attacker(data: Data, walk: Any, train: IntArray) -> tuple[FloatArray, FloatArray]:
    """Class scores of every node by a linear model, after one hop and after two, each [N, C]."""
    dense: Tensor = dense_if_small(data.x).detach().cpu().float()
    strided = dense.layout is torch.strided
    x: Any = dense.numpy() if strided else csr_array((dense.values(), tuple(dense.indices())), shape=tuple(dense.shape))
    chosen = train[:: math.ceil(len(train) / MOST_TRAINING_NODES)]
    near = csr_array(walk[chosen] @ walk) @ x
    seen = np.flatnonzero(np.asarray(abs(near).sum(0)).ravel())  # the weights of other columns stay 0
    near = near[:, seen]
    inputs = torch.from_numpy(near if isinstance(near, np.ndarray) else near.toarray()).float()
    labels = data.y.cpu()[torch.from_numpy(chosen)]
    weight = torch.zeros(len(seen), int(data.y.max()) + 1, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(inputs @ weight, labels).backward()
        optimizer.step()
    once: FloatArray = walk @ np.asarray(x[:, seen] @ weight.detach().numpy())
    return once, walk @ once


def _hostile(
    y: IntArray, walk: Any, degree: FloatArray, targets: IntArray, once: FloatArray, twice: FloatArray
) -> IntArray:
    """Hostile edges, from their far ends to the targets, [2, K]; a far end counts less with each edge that it gets."""
    size, arcs = degree.copy(), np.empty((2, 0), dtype=np.int64)
    for target in targets.tolist():
        label = y[target]
        rival = int(np.where(np.arange(twice.shape[1]) == label, -np.inf, twice[target]).argmax())
        worth = ((once[:, rival] - once[:, label]) / np.sqrt(size + 1)).round(DIGITS)
        worth[walk.indices[walk.indptr[target] : walk.indptr[target + 1]]] = -np.inf  # itself and its neighbors
        worth[arcs[1, arcs[0] == target]] = -np.inf
        far = np.argsort(-worth, kind="stable")[: min(MOST_HOSTILE_EDGES, math.ceil(degree[target] / 2))]
        far = far[worth[far] > -np.inf]
        size[far] += 1
        arcs = np.concatenate([arcs, [far, np.full_like(far, target)]], axis=1)
    return arcs
