"""Synthetic neighborhoods: new edges for a graph, drawn from k neighborhood distributions per class."""

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
SUPPORT_SIZES = (2, 1, 3)  # in order of use; with 5 classes there are 6 supports of size two


@dataclass(frozen=True)
class NodesByClass:
    """The labelled nodes, grouped by class."""

    classes: IntArray
    """Labels that occur, sorted."""
    nodes: IntArray
    """All labelled nodes, sorted by class."""
    first: IntArray
    """Index in `nodes` at which each class begins."""
    size: IntArray

    @classmethod
    def of(cls, y: IntArray) -> NodesByClass:
        """Group the nodes by their labels `y` [N]; nodes labelled -1 are left out."""
        labelled = np.flatnonzero(y >= 0)
        nodes = labelled[np.argsort(y[labelled], kind="stable")]
        classes, first, size = np.unique(y[nodes], return_index=True, return_counts=True)
        return cls(classes, nodes, first, size)

    def pick(self, group: IntArray, uniform: NDArray[np.float64]) -> IntArray:
        """Return a node of `classes[group]` for each uniform number between 0 and 1."""
        return self.nodes[self.first[group] + (uniform * self.size[group]).astype(np.int64)]


def mixture_neighborhoods(data: Data, components: int, seed: int = 0, *, directed: bool = False) -> Data:
    """Return a copy of `data` with new heterophilous edges, drawn from k neighborhood distributions per class.

    A distribution is uniform over a few other classes (`neighborhood_supports`). Each node is assigned one of the k
    distributions of its class. For each neighbor it draws a class from this distribution, then a node of that class.

    In an undirected graph a node also gets the edges that other nodes draw to it. A node of degree d therefore draws
    d/2 neighbors, rounded up. The mean degree stays about the same (rounding increases it, merged duplicates decrease
    it), high degrees are about halved, and about half of all neighbors follow the node's own distribution. In a
    directed graph a node draws d neighbors, edges point to the node that drew them, and its in-degree is d minus the
    merged duplicates.

    Args:
        data: a graph with labels; unlabelled nodes lose their edges.
        components: number of distributions k per class.
        seed: seed of the draws; the supports for k are the first k of those for any larger number.
        directed: whether edges go only from a drawn neighbor to the node that drew it.

    Returns:
        A graph with sorted edges without duplicates, and `component` [N], the distribution of each node (-1 if it is
        unlabelled). Attributes of the old edges and candidates are dropped.
    """
    y = data.y.cpu().numpy()
    groups = NodesByClass.of(y)
    supports = neighborhood_supports(len(groups.classes), components, seed)
    rng = np.random.default_rng((seed, 0, 2))  # a stream that is not used for splits
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
    """Return `components` different sets of other classes for each class.

    All pairs are used first, then single classes, then triples. The sets of each size are shuffled.
    """
    check_at_least(1, components=components)
    check_at_least(0, seed=seed)
    supports = [list(_shuffled_supports(label, num_classes, seed))[:components] for label in range(num_classes)]
    available = min(map(len, supports), default=0)
    if available < components:
        raise UserError(
            f"with {num_classes} classes there are {available} different neighborhoods, fewer than {components}"
        )
    return supports


def _shuffled_supports(label: int, num_classes: int, seed: int) -> Iterator[Support]:
    rng = np.random.default_rng((seed, label, 1))
    others = [other for other in range(num_classes) if other != label]
    for size in SUPPORT_SIZES:
        same_size = list(combinations(others, size))
        yield from (same_size[k] for k in rng.permutation(len(same_size)))


def _pick_classes(supports: list[list[Support]], kind: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a class from the support with number `kind`, counted over all classes, for each entry of `kind`."""
    flat = [support for row in supports for support in row]
    size: IntArray = np.array([len(support) for support in flat])
    first: IntArray = np.cumsum(size) - size
    members = np.concatenate([np.array(support, dtype=np.int64) for support in flat])
    return members[first[kind] + (rng.random(len(kind)) * size[kind]).astype(np.int64)]


def _degrees(data: Data) -> IntArray:
    """Return the number of other nodes to which each node has an edge, in either direction."""
    num_nodes = len(data.y)
    ends = pairs_of(undirected_keys(data.edge_index.cpu(), num_nodes), num_nodes)
    degrees: IntArray = ends.flatten().bincount(minlength=num_nodes).numpy()
    return degrees
