"""Facts of pairs of nodes that tell edges from random pairs, and how well they tell them apart."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gumbel_mpnn.util.errors import DataError

PAIRS_AT_ONCE = 2**18
"""Pairs whose neighbors are looked up at once."""
SMALLEST = 1e-3
"""Added to a share before its logarithm is taken."""


def count_common(arcs: Tensor, num_nodes: int, pairs: Tensor, weight: Tensor | None = None) -> Tensor:
    """Number of nodes that are neighbors of both nodes of a pair [2, P], [P], as int64 without weights.

    `arcs` [2, A] are nodes and their neighbors, sorted by node, then by neighbor, without repeats. With weights of the
    arcs [A], a common neighbor counts as the product of the two, with a gradient. They are found on the CPU.
    """
    from gumbel_mpnn.measures.kernels import find_common

    (source, neighbor), none = arcs.cpu().contiguous().numpy(), np.empty((2, 0), np.int64)
    start = np.concatenate([[0], np.bincount(source, minlength=num_nodes).cumsum()])
    parts = [(arcs if weight is None else weight).new_zeros(0)]
    for some in pairs.cpu().split(PAIRS_AT_ONCE, dim=1):
        first, second = some.contiguous().numpy()
        counts = np.empty(len(first), np.int64)
        find_common(start, neighbor, first, second, counts, none)
        number = torch.from_numpy(counts).to(arcs.device)
        if weight is not None and len(number):
            both = np.empty((2, counts.sum()), np.int64)
            find_common(start, neighbor, first, second, counts, both)
            one, other = weight[torch.from_numpy(both).to(arcs.device)]
            number = torch.segment_reduce(one * other, "sum", lengths=number)
        parts.append(number)
    return torch.cat(parts)


def common_neighbors(edge_index: Tensor, num_nodes: int, pairs: Tensor) -> Tensor:
    """Number of common neighbors of each pair [2, P] in a graph [2, E], whatever its directions: → int64 [P]."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    keys = torch.cat([source * num_nodes + target, target * num_nodes + source]).unique()
    return count_common(torch.stack([keys // num_nodes, keys % num_nodes]), num_nodes, pairs)


def class_affinity(belief: Tensor, edge_index: Tensor, pairs: Tensor) -> Tensor:
    """How often the classes of the two nodes of each pair [2, P] are joined, compared with chance: → [P].

    It is 1 for classes that are joined as often as if the ends of all edges were joined at random, and larger for those
    that are joined more often: for equal classes in a homophilous graph, for other ones in a heterophilous graph. Which
    are joined is learned from edges [2, E] and class probabilities of the nodes [N, C].
    """
    joined = belief[edge_index[0]].T @ belief[edge_index[1]]
    share = joined / joined.sum().clamp(min=1e-12)
    ratio = share / torch.outer(share.sum(1), share.sum(0)).clamp(min=1e-12)
    return ((belief[pairs[0]] @ ratio) * belief[pairs[1]]).sum(-1)


def random_non_edges(edge_index: Tensor, num_nodes: int, count: int, seed: int = 0) -> Tensor:
    """Random pairs of different nodes that are not joined, [2, count]; a `DataError` if there are hardly any."""
    generator = torch.Generator().manual_seed(seed)
    source, target = edge_index.cpu()
    taken = torch.cat([source * num_nodes + target, target * num_nodes + source]).unique()
    found: list[Tensor] = []
    for _ in range(20):
        pairs = torch.randint(num_nodes, (2, 2 * count), generator=generator)
        free = (pairs[0] != pairs[1]) & ~torch.isin(pairs[0] * num_nodes + pairs[1], taken)
        found.append(pairs[:, free])
        if sum(part.shape[1] for part in found) >= count:
            return torch.cat(found, dim=1)[:, :count]
    raise DataError("nearly all nodes of this graph are joined, so that edges cannot be compared with other pairs")


def log_odds(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights [K] and offset of a logistic regression that tells rows [A, K] apart from rows [B, K].

    `rows @ weights + offset` is the logarithm of the odds that a row is one of the first. Weights have an L2 penalty
    of 1 for facts of mean 0 and variance 1; facts that do not vary have the weight 0.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows = np.concatenate([inside, outside])
    scaler = StandardScaler().fit(rows)
    is_inside = np.arange(len(rows)) < len(inside)
    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-8).fit(scaler.transform(rows), is_inside)
    weights: NDArray[np.float64] = fitted.coef_[0] / scaler.scale_
    return weights, float(fitted.intercept_[0] - weights @ scaler.mean_)
