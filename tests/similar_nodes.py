"""Features that are hard on a search for similar nodes, and the definition of what it should find."""

import torch
from torch import Tensor

from gumbel_mpnn.candidates.similarity import circle_steps, is_possible, rank_of, sortable
from gumbel_mpnn.graph import PairGraph
from helpers import normal


def words(nodes: int) -> Tensor:
    """Sixteen of 60 words at each node: many equal similarities; float32 holds dot products and cosines exactly."""
    chosen = normal(nodes, 60).argsort(dim=1)[:, :16]
    return torch.zeros(nodes, 60).scatter_(1, chosen, 1.0)


def duplicates(nodes: int) -> Tensor:
    """Every third node is one of five."""
    x = torch.where(normal(nodes, 30, dtype=torch.float32) > 0, 1.0, -1.0)
    x[::3] = x[(torch.arange(nodes) % 5)[::3]]
    return x


def outlier(nodes: int) -> Tensor:
    """One node is a thousand times as long as the others, one a thousandth."""
    x = normal(nodes, 20, dtype=torch.float32)
    x[nodes // 2] *= 1000
    x[0] /= 1000
    return x


def some_zeros(nodes: int) -> Tensor:
    """Every fourth node has no features."""
    x = torch.nn.functional.normalize(normal(nodes, 20, dtype=torch.float32), dim=1)
    x[::4] = 0
    return x


FEATURES = {
    "normal": lambda nodes: torch.nn.functional.normalize(normal(nodes, 20, dtype=torch.float32), dim=1),
    "words": words,
    "duplicates": duplicates,
    "outlier": outlier,
    "some zeros": some_zeros,
    "zeros": lambda nodes: torch.zeros(nodes, 3),
}


def exact_scores(x: Tensor, graph: PairGraph) -> Tensor:
    """Similarities, made in 64 bits and rounded to 32, [N, N]; −∞ for neighbors and for a node with itself."""
    scores = (x.double() @ x.double().T).float()
    scores[graph.arcs.row.long(), graph.arcs.col.long()] = -torch.inf
    return scores.fill_diagonal_(-torch.inf)


def nearest_by_definition(x: Tensor, graph: PairGraph, per_node: int) -> Tensor:
    """The most similar nodes of each node, int64 [N, K]; of equals those that follow it."""
    own = torch.arange(x.shape[0], device=x.device)
    key = sortable(exact_scores(x, graph), circle_steps(own[:, None], own, x.shape[0])).topk(per_node, dim=1).values
    return torch.where(is_possible(key), (own[:, None] + rank_of(key)) % x.shape[0], -1)


def pairs_by_definition(x: Tensor, graph: PairGraph, quota: int) -> Tensor:
    """The most similar pairs, int64 [2, K]; of equals those with the nearest numbers, then the lowest."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    key = sortable(exact_scores(x, graph)[first, second], second - first)
    order = key.argsort(descending=True, stable=True)[:quota]
    order = order[is_possible(key[order])]
    return torch.stack([first[order], second[order]])
