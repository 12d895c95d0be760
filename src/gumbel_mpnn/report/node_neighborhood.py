"""The neighborhood of a node before and after rewiring: which nodes and edges a figure shows, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data.names import node_ids_of
from gumbel_mpnn.measures.edges import undirected_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gumbel_mpnn.runs import Run

Edge = tuple[int, int]
KINDS = KEPT, DROPPED, ADDED = "kept", "dropped", "added"


@dataclass(frozen=True)
class Neighborhood:
    """Nodes around a node, and the edges among them by what became of them.

    Attributes:
        hops: Distance of each shown node from the node in the middle, over edges before or after.
        edges: Kept, dropped and added edges among the shown nodes, each as (smaller, larger).
        found: Number of nodes within the distance, of which the shown ones are a part.
    """

    hops: Mapping[int, int]
    edges: Mapping[str, list[Edge]]
    found: int

    def places(self, classes: Mapping[int, int]) -> dict[int, tuple[float, float]]:
        """Place of each node: the first in the middle, all others on rings.

        The inner ring is sorted by class; nodes of outer ones are near a neighbor that leads to them.
        """
        angle, places = dict[int, float](), dict[int, tuple[float, float]]()
        near = {node: list[int]() for node in self.hops}
        for one, other in (edge for some in self.edges.values() for edge in some):
            near[one].append(other)
            near[other].append(one)
        for ring in range(max(self.hops.values()) + 1):
            nodes = sorted((node for node, hop in self.hops.items() if hop == ring), key=lambda node: classes[node])
            if ring > 1:
                nodes.sort(key=lambda node: min((angle[n] for n in near[node] if self.hops[n] < ring), default=0.0))
            for number, node in enumerate(nodes):
                angle[node] = 2 * np.pi * (number + 0.5 * (ring % 2)) / len(nodes)
                places[node] = (ring * float(np.cos(angle[node])), ring * float(np.sin(angle[node])))
        return places


def neighborhood_of(run: Run, node: int, hops: int, most: int, threshold: float) -> Neighborhood:
    """Find the nodes within `hops` of a node, before or after rewiring, and the edges among them.

    If there are more than `most`, those are left out that are farther away, and among equally distant ones those whose
    edges have a probability near one half.
    """
    ends, kind, sure = _edges(run, threshold)
    distance, order, frontier = {node: 0}, [node], np.array([node])
    for hop in range(1, hops + 1):
        reached = dict[int, float]()
        for near, far in ((0, 1), (1, 0)):
            at = np.isin(ends[:, near], frontier)
            for one, value in zip(ends[at, far].tolist(), sure[at].tolist(), strict=True):
                if one not in distance:
                    reached[one] = max(value, reached.get(one, 0.0))
        order += sorted(reached, key=lambda one: (-reached[one], one))
        distance |= dict.fromkeys(reached, hop)
        frontier = np.array(list(reached), dtype=np.int64)
    shown = sorted(order[:most])
    inside = np.isin(ends, shown).all(1)
    edges = {name: list(map(tuple, ends[inside & (kind == name)].tolist())) for name in KINDS}
    return Neighborhood({one: distance[one] for one in shown}, edges, len(order))


def _edges(run: Run, threshold: float) -> tuple[NDArray[np.int64], NDArray[np.str_], NDArray[np.float64]]:
    """Edges before or after rewiring, [E, 2], what became of them, and how far their probability is from one half.

    The last is zero for graphs that rewiring gave no probabilities.
    """
    nodes, learned = int(run.data.num_nodes or 0), run.rewire(threshold=threshold)
    before, after = _keys(undirected_edges(run.data), nodes), _keys(undirected_edges(learned), nodes)
    key = np.union1d(before, after)
    was, is_ = np.isin(key, before), np.isin(key, after)
    sure = np.zeros(len(key))
    if run.settings.rewiring is not None:
        every = run.rewire(threshold=0).cpu()
        pair = _keys(every.edge_index.sort(0).values, nodes)
        listed = np.isin(pair, key)
        place = np.searchsorted(key, pair[listed])
        np.maximum.at(sure, place, (every.edge_probability - 0.5).abs().numpy()[listed])
    kind = np.where(was & is_, KEPT, np.where(was, DROPPED, ADDED))
    return np.stack([key // nodes, key % nodes], 1), kind, sure


def _keys(ends: Tensor, nodes: int) -> NDArray[np.int64]:
    return (ends[0] * nodes + ends[1]).cpu().numpy()


def node_number(data: Data, node: object) -> int:
    """Number of a node that is given by its id or, if there is no such id, by its number."""
    ids, count = node_ids_of(data), int(data.num_nodes or 0)
    if ids is not None and node in ids:
        return list(ids).index(node)
    if isinstance(node, int | np.integer) and 0 <= node < count:
        if ids is not None and str(node) in ids and ids[int(node)] != str(node):
            raise UserError(
                f"node {node} may be the one with the id {str(node)!r} or the one with this number, whose id is"
                f" {ids[int(node)]!r}: give the id as text"
            )
        return int(node)
    what = f"a number from 0 to {count - 1}" + " or one of run.data.node_ids" * (ids is not None)
    raise UserError(f"there is no node {node!r}: give {what}")
