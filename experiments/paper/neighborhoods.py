"""The paper's first figure on real graphs: classes with similar and with different neighborhoods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from experiments.experiment import Analysis, Results
from experiments.rows import NO_DATA
from gumbel_mpnn.data import load
from gumbel_mpnn.graph import pairs_of, undirected_keys
from gumbel_mpnn.measures import decompose, neighborhood_distributions
from gumbel_mpnn.report import PALETTE, Row, saved_figure
from gumbel_mpnn.util import MissingDataError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
FIRST, SECOND = PALETTE[2], PALETTE[0]
"""Green and blue, as in the paper."""
OTHERS = tuple(color for color in PALETTE if color not in (FIRST, SECOND))
SIZE = 4.0  # area of the marker of a place with one node
LEGEND_SIZE = 25.0
DATASETS = ("cora", "citeseer", "chameleon-unfiltered", "squirrel-unfiltered", "actor")
FEWEST, MOST = "fewest", "most"
DEGREES = (3, 6)
"""Smallest and largest number of neighbors of the nodes that are drawn with their neighbors."""
MOST_NODES = 500
"""Number of nodes of a class, in the order of the file, from which two are chosen."""


class Neighborhoods(Analysis):
    """Components and spread of the neighborhood distributions of each class, without the node's own label."""

    name = "neighborhoods"
    title = "Neighborhoods of two classes after aggregation"
    headings: Mapping[str, str] = {
        "label": "class",
        "effective": "effective components",
        "std": "std",
        "shown": "of its data set",
    }
    digits = 3
    datasets = DATASETS

    def rows(self, dataset: str) -> list[Row]:
        """Return one row for each class.

        A mixture with weights w has 1/Σw² effective components: as many as there are if all are equally frequent, and
        almost 1 if nearly all nodes are in one of them. The classes with the fewest and the most are marked.
        """
        try:
            data = load(dataset, features=False)
        except MissingDataError:
            names = ("nodes", "components", "effective", "std", "shown")
            return [{"dataset": dataset, "label": NO_DATA, **dict.fromkeys(names)}]
        mixtures = decompose(data, own_label=False).mixtures
        effective = {label: 1 / float(np.square(one.weights_).sum()) for label, one in enumerate(mixtures) if one}
        shown = {min(effective, key=effective.__getitem__): FEWEST}
        shown |= {max(effective, key=effective.__getitem__): MOST}
        distributions = neighborhood_distributions(data, own_label=False)
        return [
            {
                "dataset": dataset,
                "label": _class_names(data)[label],
                "nodes": int((data.y == label).sum()),
                "components": one.n_components,
                "effective": effective[label],
                "std": float(distributions[data.y == label].std(0).mean()),
                "shown": shown.get(label, ""),
            }
            for label, one in enumerate(mixtures)
            if one
        ]

    def draw(self, rows: Sequence[Row], results: Results, pictures: Sequence[Path]) -> bool:
        """Draw the two classes of the data set with the lowest number of effective components."""
        known = [row for row in rows if row["shown"] == FEWEST]
        if not known:
            return False
        dataset = min(known, key=lambda row: float(row["effective"] or 0))["dataset"]
        label = {row["shown"]: row["label"] for row in rows if row["dataset"] == dataset}
        try:
            data = load(str(dataset), features=False)
        except MissingDataError:
            return False
        names = _class_names(data)
        classes = names.index(str(label[FEWEST])), names.index(str(label[MOST]))
        draw_two_classes(two_classes(data, classes, str(dataset)), pictures)
        return True


def two_classes(data: Data, classes: tuple[int, int], dataset: str = "") -> TwoClasses:
    """Choose what to draw of two classes: a typical pair of nodes of each, and the principal axes of both classes."""
    rows = neighborhood_distributions(data, own_label=False)
    edges = pairs_of(undirected_keys(data.edge_index, len(data.y)), len(data.y))
    degree = torch.bincount(edges.flatten(), minlength=len(data.y))
    (one, three), (two, four) = (typical_pair(rows, data.y == label, degree) for label in classes)
    shown = (one, two, three, four)
    places, explained = _principal_axes(rows, (data.y[:, None] == torch.tensor(classes)).any(1))
    return TwoClasses(
        dataset=dataset,
        names=_class_names(data),
        classes=classes,
        shown=shown,
        edges=edges[:, torch.isin(edges, torch.tensor(shown)).any(0)].T.numpy(),
        labels=data.y.numpy(),
        places=places.numpy(),
        explained=explained,
    )


def typical_pair(rows: Tensor, members: Tensor, degree: Tensor) -> tuple[int, int]:
    """Return two nodes of a class whose distributions are as far apart as those of two of its nodes usually are.

    Usually is the root of the mean squared distance, √(2 Σ var) of the distributions [N, C] of the members [N]. Only
    nodes with a `degree` [N] in `DEGREES` are considered, or all nodes if there are fewer than two of them.
    """
    usual = (2 * rows[members].var(0).sum()).sqrt()
    small = members & (degree >= DEGREES[0]) & (degree <= DEGREES[1])
    nodes = (small if int(small.sum()) > 1 else members).nonzero().squeeze(1)[:MOST_NODES]
    first, second = torch.triu_indices(len(nodes), len(nodes), offset=1)
    distance = (rows[nodes[first]] - rows[nodes[second]]).norm(dim=1)
    best = int((distance - usual).abs().argmin())
    return int(nodes[first[best]]), int(nodes[second[best]])


def _principal_axes(rows: Tensor, members: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """Project all rows on the two principal axes of `members`; the largest entry of an axis is positive."""
    centre = rows[members].mean(0)
    _, scale, axes = torch.linalg.svd(rows[members] - centre, full_matrices=False)
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    axes = axes * largest.sign()
    share = scale.square() / scale.square().sum()
    return (rows - centre) @ axes[:2].T, (float(share[0]), float(share[1]))


def _class_names(data: Data) -> list[str]:
    names = data.get("class_names")
    return [str(name) for name in names] if names else [str(label) for label in range(int(data.y.max()) + 1)]


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


def draw_two_classes(picture: TwoClasses, pictures: Iterable[Path]) -> None:
    """Draw the four nodes on the left and one panel for each class on the right, and save it to each of `pictures`."""
    with saved_figure(pictures, 3, (13.2, 4.0)) as axes:
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
