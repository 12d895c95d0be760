"""A figure of the neighborhood of one node before and after rewiring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.data.names import class_names_of, node_ids_of
from gumbel_mpnn.measures.edges import undirected_edges
from gumbel_mpnn.report.run_plots import new_axes
from gumbel_mpnn.report.style import PALETTE, as_label, shared_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch_geometric.data import Data

    from gumbel_mpnn.runs import Run

Edge = tuple[int, int]
KINDS = KEPT, DROPPED, ADDED = "kept", "dropped", "added"
LOOKS: dict[str, dict[str, Any]] = {
    KEPT: {"color": "#555555", "linewidth": 1.2, "linestyle": "-"},
    DROPPED: {"color": PALETTE[1], "linewidth": 1.2, "linestyle": ":"},
    ADDED: {"color": PALETTE[2], "linewidth": 1.6, "linestyle": "--"},
}
CLASS_COLORS = (PALETTE[0], PALETTE[4], PALETTE[3], PALETTE[5])
"""Colors of classes, without those of dropped and added edges."""
MARKERS = "osD^vPX*"
"""A class has a marker of its own, so that a color can serve several classes."""
UNKNOWN = "#bbbbbb"
MOST_NAMES = 40


@dataclass(frozen=True)
class Neighborhood:
    """Nodes around a node, and the edges among them by what became of them."""

    hops: Mapping[int, int]
    """Distance of each shown node from the node in the middle, over edges before or after."""
    edges: Mapping[str, list[Edge]]
    """Kept, dropped and added edges among the shown nodes, each as (smaller, larger)."""
    found: int
    """Number of nodes within the distance, of which the shown ones are a part."""

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


def plot_neighborhood(
    run: Run,
    node: object,
    hops: int = 1,
    *,
    color: Literal["class", "prediction"] = "class",
    threshold: float = 0.5,
    most: int = 30,
) -> Any:
    """Draw the neighborhood of a node in the given graph and after rewiring, side by side.

    Kept edges are gray, dropped ones are dotted and orange, added ones are dashed and green. Directions are not shown.

    Args:
        run: Runs of a model that rewires the graph.
        node: Id of the node, if the graph has `node_ids`, or its number.
        hops: Largest distance from the node, over edges before or after rewiring.
        color: What colors and markers of the nodes show: the `class`, gray if it is not known, or the `prediction`.
        threshold: Edges with a smaller probability are dropped or not added.
        most: Largest number of nodes. Of more, the nearest are shown, and of equally distant ones those whose edges the
            model is surest of. The title says so.

    Returns:
        Array of the two axes.
    """
    check_at_least(1, hops=hops, most=most)
    if color not in ("class", "prediction"):
        raise UserError(f"color must be 'class' or 'prediction', not {color!r}")
    middle = node_number(run.data, node)
    found = neighborhood_of(run, middle, hops, most, threshold)
    label = run.data.y if color == "class" else run.predict_proba().argmax(-1)
    classes = {one: int(label[one]) for one in found.hops}
    given = {KEPT: [*found.edges[KEPT], *found.edges[DROPPED]]}
    counts = ", ".join(f"{len(some)} {kind}" for kind, some in found.edges.items())
    name = _names(run, [middle])[middle]
    with shared_style():
        axes = new_axes(2, columns=2, size=(4.8, 4.8))
        for ax, edges, title in ((axes[0], given, "given graph"), (axes[1], found.edges, f"rewired: {counts}")):
            _draw(ax, run, found, edges, classes, middle)
            ax.set_title(title)
        part = f"\n({len(found.hops)} of {found.found} nodes: the nearest, and those with the surest edges)"
        shown = part if len(found.hops) < found.found else ""
        axes[0].figure.suptitle(f"node {name} and neighbors within {hops} hop{'s' * (hops > 1)}{shown}")
        _legend(axes, run, classes, color)
    return axes


def _draw(
    ax: Axes, run: Run, found: Neighborhood, edges: Mapping[str, Sequence[Edge]], classes: dict[int, int], middle: int
) -> None:
    from matplotlib.patheffects import withStroke

    places = found.places(classes)
    for kind, some in edges.items():
        for number, (one, other) in enumerate(some):
            x, y = zip(places[one], places[other], strict=True)
            ax.plot(x, y, zorder=1, label=f"{kind} edge" if number == 0 else None, **LOOKS[kind])
    for node, place in places.items():
        look = {**_look(classes[node]), "s": 60, "edgecolors": "white"}
        if node == middle:
            look |= {"s": 110, "edgecolors": "black", "linewidths": 1.6}
        ax.scatter(place[0], place[1], zorder=2, **look)
    if len(places) <= MOST_NAMES:
        halo = [withStroke(linewidth=2, foreground="white")]
        about: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 6.5, "path_effects": halo}
        for node, text in _names(run, list(places)).items():
            ax.annotate(text, places[node], xytext=(0, 9 if node == middle else 6), zorder=3, **about)
    ax.set_aspect("equal")
    ax.margins(0.12)
    ax.set_axis_off()


def _names(run: Run, nodes: Sequence[int]) -> dict[int, str]:
    ids = node_ids_of(run.data)
    return {node: as_label(node if ids is None else ids[node], 12) for node in nodes}


def _look(label: int) -> dict[str, Any]:
    if label < 0:
        return {"c": UNKNOWN, "marker": "o"}
    return {"c": CLASS_COLORS[label % len(CLASS_COLORS)], "marker": MARKERS[label % len(MARKERS)]}


def _legend(axes: Any, run: Run, classes: Mapping[int, int], color: str) -> None:
    """One legend under both axes: kinds of edges, then classes."""
    from matplotlib.lines import Line2D

    handles, labels = axes[1].get_legend_handles_labels()
    names = class_names_of(run.data)
    for label in sorted(set(classes.values())):
        look = _look(label)
        handles.append(Line2D([], [], linestyle="", marker=look["marker"], color=look["c"]))
        what = "no label" if label < 0 else as_label(names[label] if names else label, 14)
        labels.append(what if label < 0 else f"{color} {what}")
    axes[0].figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7)
