"""Hostile edges at validation nodes: what a targeted attack would do to nodes whose labels are known."""

from __future__ import annotations

import math
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

MOST = 5
"""Hostile edges of a node at most; it gets no more than half as many as it has edges."""
SHARE, MOST_TARGETS = 1 / 3, 500
"""Share of the validation nodes that get hostile edges, those with most edges, and their number at most."""
MOST_TRAINING_NODES = 2_000
"""Training nodes at most from which the attacker learns."""
STEPS, LEARNING_RATE, WEIGHT_DECAY = 200, 0.05, 5e-4

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class Besieged:
    """Transform that adds hostile edges at some validation nodes of a split, which alone are left in its `val_mask`.

    The attacker knows a linear model of two hops, fitted to the training nodes, as Nettack does (Zügner et al., 2018).
    It joins a node to those that speak most for the wrong class that this model finds most likely. Test labels are
    not used.
    """

    split: int = 0

    def __call__(self, data: Data) -> Data:
        """Return a copy of `data` with hostile edges; `edge_is_noise`, bool [E], says which they are."""
        train, val = (by_split(data[name])[:, self.split].cpu().numpy() for name in ("train_mask", "val_mask"))
        order = order_by_content(data)
        walk, degree = _walk(data)
        targets = order[(val & (degree > 0))[order]]
        targets = targets[np.argsort(-degree[targets], kind="stable")]
        targets = targets[: min(MOST_TARGETS, math.ceil(SHARE * int(val.sum())))]
        if not len(targets):
            raise DataError("no validation node has an edge, so that none can get hostile ones")
        votes, outcome = _attacker(data, walk, order[train[order]])
        arcs = _hostile(data.y.cpu().numpy(), walk, degree, order, targets, votes, outcome)
        if is_undirected(data.edge_index, num_nodes=len(data.y)):
            arcs = np.concatenate([arcs, arcs[::-1]], axis=1)
        out = with_arcs(data, torch.from_numpy(arcs).to(data.edge_index.device))
        left = by_split(data.val_mask).clone()
        left[:, self.split] = False
        left[torch.from_numpy(targets), self.split] = True
        out.val_mask = left if data.val_mask.dim() == 2 else left[:, 0]
        return out


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


def _attacker(data: Data, walk: Any, train: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """What each node says for each class to its neighbors, and the outcome after two hops, each [N, C]."""
    x = _features(data)
    chosen = train[:: math.ceil(len(train) / MOST_TRAINING_NODES)]
    near = walk[chosen] @ walk @ x
    inputs = torch.from_numpy(near.toarray() if not isinstance(near, np.ndarray) else near).float()
    labels = data.y.cpu()[torch.from_numpy(chosen)]
    weight = torch.zeros(x.shape[1], int(data.y.max()) + 1, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(inputs @ weight, labels).backward()
        optimizer.step()
    votes: FloatArray = walk @ np.asarray(x @ weight.detach().numpy())
    return votes, walk @ votes


def _features(data: Data) -> Any:
    """Features as a NumPy array, or as a sparse matrix if they are sparse and large."""
    x: Tensor = dense_if_small(data.x).detach().cpu().float()
    if x.layout is torch.strided:
        return x.numpy()
    return csr_array((x.values().numpy(), tuple(x.indices().numpy())), shape=tuple(x.shape))


def _hostile(
    y: NDArray[np.int64],
    walk: Any,
    degree: FloatArray,
    order: NDArray[np.int64],
    targets: NDArray[np.int64],
    votes: FloatArray,
    outcome: FloatArray,
) -> NDArray[np.int64]:
    """Hostile edges, from their far ends to the targets, [2, K]; a far end counts less with each edge that it gets."""
    size, arcs = degree.copy(), list[NDArray[np.int64]]()
    for target in targets:
        label = y[target]
        rival = int(np.where(np.arange(outcome.shape[1]) == label, -np.inf, outcome[target]).argmax())
        worth = (votes[:, rival] - votes[:, label]) / np.sqrt(size + 1)
        worth[walk.indices[walk.indptr[target] : walk.indptr[target + 1]]] = -np.inf  # itself and its neighbors
        count = min(MOST, math.ceil(degree[target] / 2))
        far = order[np.argsort(-worth[order], kind="stable")[:count]]
        far = far[worth[far] > -np.inf]
        size[far] += 1
        arcs.append(np.stack([far, np.full_like(far, target)]))
    return np.concatenate(arcs, axis=1)
