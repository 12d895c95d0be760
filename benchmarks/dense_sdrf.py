"""SDRF on dense matrices, correct but not incremental: what `sdrf.py` is compared with.

Every step computes the curvature of all edges anew with matrix products over the whole graph, and judges the candidates
one by one on the matrix of the nodes around the chosen edge.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHUNK_ELEMENTS = 2**26
"""Numbers of an edges × nodes array that are held at once."""


def value(first: Tensor, second: Tensor, triangles: Tensor, nodes: Tensor, largest: Tensor) -> Tensor:
    """The formula of Topping et al., float64."""
    small, big = torch.minimum(first, second), torch.maximum(first, second)
    out = 2 / big + 2 / small - 2 + 2 * triangles / big + triangles / small
    out = torch.where(nodes > 0, out + nodes / (largest * big).clamp(min=1), out)
    return torch.where(small == 1, 0.0, out)


def curvature(a: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Curvature of the edges `i` [E] to `j` [E] of the graph with matrix `a`, float64 [E]."""
    one, other = a[i], a[j]
    both = one * other
    only_i, only_j = one - both, other - both
    only_i[torch.arange(len(i)), j] = only_j[torch.arange(len(i)), i] = 0
    counts = torch.maximum((only_j @ a) * only_i, (only_i @ a) * only_j)
    terms = (one.sum(1), other.sum(1), both.sum(1), (counts > 0).sum(1), counts.amax(1))
    return value(*(term.double() for term in terms))


def all_curvatures(a: Tensor) -> tuple[Tensor, Tensor]:
    """All edges `i < j` [2, E], sorted, and their curvatures [E]."""
    edges = a.triu().nonzero().T
    chunks = edges.split(max(CHUNK_ELEMENTS // len(a), 1), dim=1)
    return edges, torch.cat([curvature(a, *chunk) for chunk in chunks])


def step(a: Tensor, uniform: float, tau: float, bound: float) -> None:
    """Change `a` by one step: an edge is added, and one may be removed."""
    edges, values = all_curvatures(a)
    x, y = edges[:, int(values.argmin())].tolist()
    most = int(values.argmax())
    rows, columns = (torch.cat([a[end].nonzero()[:, 0], torch.tensor([end])]).sort().values for end in (x, y))
    nodes = torch.cat([rows, columns]).unique()
    local = a[nodes][:, nodes].clone()
    place = {node: k for k, node in enumerate(nodes.tolist())}
    ends = torch.tensor([place[x]]), torch.tensor([place[y]])
    pairs = [(i, j) for i in rows.tolist() for j in columns.tolist() if i != j and a[i, j] == 0]
    after = []
    for i, j in pairs:
        local[place[i], place[j]] = local[place[j], place[i]] = 1
        after.append(float(curvature(local, *ends)))
        local[place[i], place[j]] = local[place[j], place[i]] = 0
    if pairs:
        i, j = pairs[_draw(np.array(after), uniform, tau)]
        a[i, j] = a[j, i] = 1
    if values[most] > bound:
        i, j = edges[:, most].tolist()
        a[i, j] = a[j, i] = 0


def _draw(after: NDArray[np.float64], uniform: float, tau: float) -> int:
    sums = np.exp(tau * (after - after.max())).cumsum()
    return int(np.searchsorted(sums, uniform * sums[-1], side="right"))
