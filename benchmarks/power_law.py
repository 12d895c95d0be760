"""A generated graph with heavy-tailed degrees, half of its pairs edges and half candidates, made on the device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

STEEPNESS = 2.25
"""A node of rank r is an end of an edge with a probability that falls as r^(1 / 2.25 - 1): degrees have the exponent
2.8, and at 169,343 nodes the largest is about 10,000 (ogbn-arxiv: 13,161)."""


def problem(nodes: int, pairs: int, features: int, classes: int, device: torch.device, seed: int = 0) -> Data:
    """Normal features, random labels, `pairs` pairs: one half edges by the power law, one half uniform candidates.

    Each pair stands once, in `edge_index` or in `candidate_index`, both [2, pairs / 2]. Node numbers are shuffled:
    neighbors do not lie near each other in memory, which no cache can use.
    """
    generator = torch.Generator(device).manual_seed(seed)
    number = torch.randperm(nodes, generator=generator, device=device)

    def uniform(count: int) -> Tensor:
        return torch.rand(count, generator=generator, device=device, dtype=torch.float64)

    def node_by_rank(count: int) -> Tensor:
        return number[(nodes * uniform(count) ** STEEPNESS).long()]

    def any_node(count: int) -> Tensor:
        return (nodes * uniform(count)).long()

    edges = _distinct(pairs // 2, nodes, node_by_rank, number[:0])
    candidates = _distinct(pairs - pairs // 2, nodes, any_node, edges)
    y = torch.randint(classes, (nodes,), generator=generator, device=device)
    y[0] = classes - 1  # so many classes there are
    share = torch.rand(nodes, generator=generator, device=device)
    return Data(
        x=torch.randn(nodes, features, generator=generator, device=device),
        y=y,
        edge_index=torch.stack([edges // nodes, edges % nodes]),
        candidate_index=torch.stack([candidates // nodes, candidates % nodes]),
        train_mask=share < 0.54,
        val_mask=(share >= 0.54) & (share < 0.72),
        test_mask=share >= 0.72,
    )


def largest_degree(edge_index: Tensor) -> int:
    """The largest number of pairs at one node."""
    return int(torch.bincount(edge_index.reshape(-1)).max())


def _distinct(count: int, nodes: int, draw: Callable[[int], Tensor], taken: Tensor) -> Tensor:
    """`count` distinct keys `i * nodes + j` of pairs i < j with drawn ends, none of them `taken`."""
    keys = taken[:0]
    while len(keys) < count:
        missing = count - len(keys)
        source, target = draw(missing + missing // 3 + 16), draw(missing + missing // 3 + 16)
        key = torch.minimum(source, target) * nodes + torch.maximum(source, target)
        key = torch.cat([keys, key[source != target]]).unique()
        keys = key[~torch.isin(key, taken)]
    generator = torch.Generator(keys.device).manual_seed(count)
    return keys[torch.randperm(len(keys), generator=generator, device=keys.device)[:count]]
