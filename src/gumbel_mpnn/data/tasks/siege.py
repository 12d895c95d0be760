"""Hostile edges at validation nodes: what a targeted attack would do to nodes whose labels are known."""

from __future__ import annotations

import math
from collections.abc import Callable
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

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn._util.sparse_tensors import dense_if_small
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.data.tasks.noise import order_by_content, with_arcs
from gumbel_mpnn.graph.content_order import in_order

MOST = 5
"""Hostile edges that a node gets at most, and no more than half as many as it has edges. It may also be the far end of
those of other nodes."""
SHARE, MOST_TARGETS = 1 / 3, 500
"""Share of the validation nodes that get hostile edges, those with most edges, and their number at most."""
MOST_TRAINING_NODES = 2_000
"""Training nodes at most from which the attacker learns."""
STEPS, LEARNING_RATE, WEIGHT_DECAY = 200, 0.05, 5e-4
DIGITS = 5
"""Decimal digits of what an edge is worth, so that rounding errors do not decide."""

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Besieged:
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
        order = order_by_content(data)
        targets, arcs = _attack(in_order(data, torch.from_numpy(order)), self.split)
        arcs = order[arcs]
        if is_undirected(data.edge_index, num_nodes=len(data.y)):
            arcs = np.concatenate([arcs, arcs[::-1]], axis=1)
        out = with_arcs(data, torch.from_numpy(arcs).to(data.edge_index.device))
        left = by_split(data.val_mask).clone()
        left[:, self.split] = False
        left[torch.from_numpy(order[targets]), self.split] = True
        out.val_mask = left if data.val_mask.dim() == 2 else left[:, 0]
        return out


def _attack(data: Data, split: int) -> tuple[IntArray, IntArray]:
    """The attacked nodes, and their hostile edges [2, K] from the far ends to these nodes."""
    train, val = (by_split(data[name])[:, split].cpu().numpy().nonzero()[0] for name in ("train_mask", "val_mask"))
    walk, degree = _walk(data)
    y = data.y.cpu().numpy()
    targets = _targets(val[degree[val] > 0], degree, y, math.ceil(SHARE * len(val)))
    if not len(targets):
        raise DataError("no validation node has an edge, so that none can get hostile ones")
    arcs = _hostile(y, walk, degree, targets, *_attacker(data, walk, train))
    if not arcs.shape[1]:
        raise DataError("all nodes are joined already, so that there is no room for hostile edges")
    return targets, arcs


def _targets(nodes: IntArray, degree: FloatArray, y: IntArray, count: int) -> IntArray:
    """The nodes with most edges, and the one with most of each class that would be left out."""
    ordered = nodes[np.argsort(-degree[nodes], kind="stable")]
    chosen = np.zeros(len(ordered), dtype=bool)
    chosen[: min(count, MOST_TARGETS)] = True
    chosen[np.unique(y[ordered], return_index=True)[1]] = True
    return ordered[chosen]


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
    x = _features(data)
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


def _features(data: Data) -> Any:
    """Features as a NumPy array, or as a sparse matrix if they are sparse and large."""
    x: Tensor = dense_if_small(data.x).detach().cpu().float()
    if x.layout is torch.strided:
        return x.numpy()
    return csr_array((x.values().numpy(), tuple(x.indices().numpy())), shape=tuple(x.shape))


def _hostile(
    y: IntArray, walk: Any, degree: FloatArray, targets: IntArray, once: FloatArray, twice: FloatArray
) -> IntArray:
    """Hostile edges, from their far ends to the targets, [2, K]; a far end counts less with each edge that it gets."""
    size, arcs = degree.copy(), list[IntArray]()
    joined: dict[int, list[int]] = {}
    for target in targets.tolist():
        label = y[target]
        rival = int(np.where(np.arange(twice.shape[1]) == label, -np.inf, twice[target]).argmax())
        worth = ((once[:, rival] - once[:, label]) / np.sqrt(size + 1)).round(DIGITS)
        worth[walk.indices[walk.indptr[target] : walk.indptr[target + 1]]] = -np.inf  # itself and its neighbors
        worth[joined.get(target, [])] = -np.inf
        count = min(MOST, math.ceil(degree[target] / 2))
        far = np.argsort(-worth, kind="stable")[:count]
        far = far[worth[far] > -np.inf]
        size[far] += 1
        for other in far.tolist():
            joined.setdefault(other, []).append(target)
        arcs.append(np.stack([far, np.full_like(far, target)]))
    return np.concatenate(arcs, axis=1)
