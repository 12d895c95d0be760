"""A figure of the neighborhood of one node before and after rewiring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gumbel_mpnn._util.errors import UserError, check_at_least
from gumbel_mpnn.data.names import class_names_of, node_ids_of
from gumbel_mpnn.report.node_neighborhood import ADDED, DROPPED, KEPT, Edge, Neighborhood, neighborhood_of, node_number
from gumbel_mpnn.report.run_plots import new_axes
from gumbel_mpnn.report.style import PALETTE, as_label, shared_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gumbel_mpnn.runs import Run

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
