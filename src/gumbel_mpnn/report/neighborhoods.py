"""A figure of two classes: a few nodes with their neighbors, and the neighborhood distributions of all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn.report.chart import saved_figure
from gumbel_mpnn.report.style import PALETTE

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
FIRST, SECOND = PALETTE[2], PALETTE[0]
"""Green and blue, as in the paper."""
OTHERS = tuple(color for color in PALETTE if color not in (FIRST, SECOND))
SIZE = 4.0  # area of the marker of a place with one node
LEGEND_SIZE = 25.0


@dataclass(frozen=True)
class TwoClasses:
    """What the figure shows."""

    dataset: str
    names: Sequence[str]
    classes: tuple[int, int]
    shown: tuple[int, int, int, int]
    """Nodes 1 to 4 of the left panel: 1 and 3 are of the first class, 2 and 4 of the second."""
    edges: IntArray
    """Edges [E, 2] at the four nodes."""
    labels: IntArray
    """Class of each node, [N]."""
    places: FloatArray
    """Neighborhood distribution of each node in two dimensions, [N, 2]."""
    explained: tuple[float, float]
    """Share of the variance that each of the two dimensions has."""

    def color(self, label: int) -> str:
        """Return the color of a class."""
        if label in self.classes:
            return (FIRST, SECOND)[self.classes.index(label)]
        rest = [other for other in range(len(self.names)) if other not in self.classes]
        return OTHERS[rest.index(label) % len(OTHERS)]

    def layout(self) -> dict[int, tuple[float, float]]:
        """Return the places of the four nodes (corners of a square) and of their neighbors (around them)."""
        corners = dict(zip(self.shown, ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)), strict=True))
        places = dict(corners)
        for node, (x, y) in corners.items():
            alone = [n for n in self._neighbors(node) if n not in corners and len(self._centres(n)) == 1]
            for number, neighbor in enumerate(alone):
                angle = 2 * np.pi * (number + 0.5) / len(alone)
                places[neighbor] = (x + 0.3 * float(np.cos(angle)), y + 0.3 * float(np.sin(angle)))
        for node in np.unique(self.edges).tolist():
            if node not in places:  # a neighbor of several of the four
                places[node] = tuple(np.mean([corners[centre] for centre in self._centres(node)], axis=0).tolist())
        return places

    def _neighbors(self, node: int) -> list[int]:
        ends = self.edges[(self.edges == node).any(1)]
        return sorted(set(ends.flatten().tolist()) - {node})

    def _centres(self, node: int) -> list[int]:
        return [centre for centre in self.shown if centre in self._neighbors(node)]


def draw_two_classes(picture: TwoClasses, paths: Iterable[Path]) -> None:
    """Draw the four nodes on the left and one panel for each class on the right, and save it to each of `paths`."""
    with saved_figure(paths, 3, (13.2, 4.0)) as axes:
        _draw_graph(axes[0], picture)
        for place, label in zip(axes[1:], picture.classes, strict=True):
            _draw_class(place, picture, label)
        axes[2].sharex(axes[1])
        axes[2].sharey(axes[1])
        axes[0].figure.tight_layout()


def _draw_graph(axes: Any, picture: TwoClasses) -> None:
    places = picture.layout()
    for one, other in picture.edges.tolist():
        axes.plot(*zip(places[one], places[other], strict=True), color="#bbbbbb", linewidth=0.9, zorder=1)
    for label in sorted({int(picture.labels[node]) for node in places if picture.labels[node] >= 0}):
        nodes = [node for node in places if picture.labels[node] == label]
        sizes = [160 if node in picture.shown else 40 for node in nodes]
        xy = zip(*(places[node] for node in nodes), strict=True)
        axes.scatter(*xy, c=picture.color(label), s=sizes, label=picture.names[label], zorder=2)
    _number(axes, picture, places, picture.shown, "center", "white")
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=7, fontsize=8, title="class")
    for handle in legend.legend_handles:
        handle.set_sizes([LEGEND_SIZE])
    axes.set_title(f"{picture.dataset}: four nodes with all their neighbors")
    axes.set_axis_off()


def _draw_class(axes: Any, picture: TwoClasses, label: int) -> None:
    """Draw the places of all nodes of a class; the area of a marker is the number of nodes at this place."""
    mine = picture.places[picture.labels == label]
    spots, count = np.unique(mine.round(6), axis=0, return_counts=True)
    axes.scatter(*spots.T, s=SIZE * count, c=picture.color(label), alpha=0.45, linewidths=0, clip_on=False)
    own = [node for node in picture.shown if picture.labels[node] == label]
    _number(axes, picture, dict(enumerate(picture.places)), own, "bottom", "black")
    axes.scatter(*picture.places[own].T, s=14, c="black", marker="x", linewidths=1)
    first, second = (100 * share for share in picture.explained)
    axes.set_xlabel(f"first principal axis ({first:.0f} % of the variance)")
    axes.set_ylabel(f"second principal axis ({second:.0f} %)")
    axes.set_title(f"neighborhoods of class {picture.names[label]}: {len(mine)} nodes")


def _number(axes: Any, picture: TwoClasses, places: Any, nodes: Iterable[int], vertical: str, color: str) -> None:
    for node in nodes:
        text = str(picture.shown.index(node) + 1)
        axes.annotate(text, tuple(places[node]), ha="center", va=vertical, color=color, weight="bold", zorder=3)
