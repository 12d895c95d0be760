"""Synthetic neighborhoods: the edges of a graph drawn anew, from k neighborhood distributions per class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.data.raw import IntArray, set_edges
from gumbel_mpnn.graph import pairs_of, undirected_keys, without_pairs

Support = tuple[int, ...]
SUPPORT_SIZES = (2, 1, 3)  # in the order in which they are used up: of 5 classes, 6 supports have two others


@dataclass(frozen=True)
class NodesByClass:
    """The labelled nodes in the order of their classes.

    Attributes:
        classes: the labels that occur, sorted.
        nodes: all labelled nodes.
        first: where in `nodes` each class begins.
        size: how many nodes it has.
    """

    classes: IntArray
    nodes: IntArray
    first: IntArray
    size: IntArray

    @classmethod
    def of(cls, y: IntArray) -> NodesByClass:
        """The groups that the labels `y` [N] make; -1 is no label."""
        labelled = np.flatnonzero(y >= 0)
        nodes = labelled[np.argsort(y[labelled], kind="stable")]
        classes, first, size = np.unique(y[nodes], return_index=True, return_counts=True)
        return cls(classes, nodes, first, size)

    def pick(self, group: IntArray, uniform: NDArray[np.float64]) -> IntArray:
        """A node of `classes[group]` for each uniform number between 0 and 1."""
        return self.nodes[self.first[group] + (uniform * self.size[group]).astype(np.int64)]


def mixture_neighborhoods(data: Data, components: int, seed: int = 0, *, directed: bool = False) -> Data:
    """A copy of `data` with new heterophilic edges: each class has k neighborhood distributions, each node one of them.

    A distribution is uniform over a few other classes (`neighborhood_supports`). A node picks one of the k of its class
    once, and draws each neighbor by a class of that support, then a node of that class, both uniformly.

    Undirected, every edge serves the node that drew it and the one it drew, which did not ask for it. A node of degree
    d therefore draws d/2 neighbors, rounded up, and is drawn by others about as often as the rest of its class: the
    mean degree stays (rounding adds the fraction of odd degrees, merged duplicates take some away), high degrees
    about halve, and only about half of all neighbors follow the node's own distribution. Directed, a node draws d
    neighbors, the edges point at it alone, and its in-degree is d less the merged duplicates.

    Args:
        data: a graph with labels; a node without one loses its edges.
        components: k.
        seed: the supports of k are the first k of those of any larger number.
        directed: whether edges only go from a drawn neighbor to the node that drew it.

    Returns:
        Sorted edges, each once; `component` [N], which of the k a node picked, -1 without a label. Attributes of the
        old edges and candidates are left out.
    """
    y = data.y.cpu().numpy()
    groups = NodesByClass.of(y)
    supports = neighborhood_supports(len(groups.classes), components, seed)
    rng = np.random.default_rng((seed, 0, 2))  # a stream that no split is drawn from
    component = np.where(y < 0, -1, (rng.random(len(y)) * components).astype(np.int64))

    degree = np.where(y < 0, 0, _degrees(data))
    node = np.repeat(np.arange(len(y)), degree if directed else (degree + 1) // 2)
    kind = np.searchsorted(groups.classes, y[node]) * components + component[node]
    neighbor = groups.pick(_pick_classes(supports, kind, rng), rng.random(len(node)))

    mixture = without_pairs(data, len(data.y))
    mixture.edge_index = torch.from_numpy(np.stack([neighbor, node])).to(data.y.device)
    set_edges(mixture, undirected=not directed)
    mixture.component = torch.from_numpy(component).to(data.y.device)
    if data.get("name"):
        mixture.name = f"{data.name}-mixture-{components}"
    return mixture


def neighborhood_supports(num_classes: int, components: int, seed: int = 0) -> list[list[Support]]:
    """`components` different sets of other classes for each class: pairs, then singles, then triples.

    Each size is shuffled on its own and the next one only begins when it is used up.
    """
    check_at_least(1, components=components)
    check_at_least(0, seed=seed)
    supports = [list(_shuffled_supports(label, num_classes, seed))[:components] for label in range(num_classes)]
    available = min(map(len, supports), default=0)
    if available < components:
        raise UserError(f"with {num_classes} classes there are {available} different neighborhoods, not {components}")
    return supports


def _shuffled_supports(label: int, num_classes: int, seed: int) -> Iterator[Support]:
    rng = np.random.default_rng((seed, label, 1))
    others = [other for other in range(num_classes) if other != label]
    for size in SUPPORT_SIZES:
        same_size = list(combinations(others, size))
        yield from (same_size[k] for k in rng.permutation(len(same_size)))


def _pick_classes(supports: list[list[Support]], kind: IntArray, rng: np.random.Generator) -> IntArray:
    """A class of the support number `kind`, counted over all classes, for each of its entries."""
    flat = [support for row in supports for support in row]
    size: IntArray = np.array([len(support) for support in flat])
    first: IntArray = np.cumsum(size) - size
    members = np.concatenate([np.array(support, dtype=np.int64) for support in flat])
    return members[first[kind] + (rng.random(len(kind)) * size[kind]).astype(np.int64)]


def _degrees(data: Data) -> IntArray:
    """How many other nodes each node has an edge with, in either direction."""
    num_nodes = len(data.y)
    ends = pairs_of(undirected_keys(data.edge_index.cpu(), num_nodes), num_nodes)
    degrees: IntArray = ends.flatten().bincount(minlength=num_nodes).numpy()
    return degrees
