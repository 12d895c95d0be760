"""The paper's first figure on real graphs: classes with similar and with different neighborhoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import MissingDataError
from gumbel_mpnn.data import load
from gumbel_mpnn.data.names import class_names_of
from gumbel_mpnn.graph import pairs_of, undirected_keys
from gumbel_mpnn.measures import decompose, neighborhood_distributions
from gumbel_mpnn.paper.page import Analysis
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.neighborhoods import TwoClasses, draw_two_classes
from gumbel_mpnn.runs import Run

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

    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """Return one row for each class.

        A mixture with weights w has 1/Σw² effective components: as many as there are if all are equally frequent, and
        almost 1 if nearly all nodes are in one of them. The classes with the fewest and the most are marked.
        """
        try:
            data = load(dataset, root=root, features=False)
        except MissingDataError:
            names = ("nodes", "components", "effective", "std", "shown")
            return [{"dataset": dataset, "label": "no data", **dict.fromkeys(names)}]
        mixtures = decompose(data, own_label=False, cache=True).mixtures
        effective = {label: 1 / float(np.square(one.weights).sum()) for label, one in enumerate(mixtures) if one}
        shown = {min(effective, key=effective.__getitem__): FEWEST}
        shown |= {max(effective, key=effective.__getitem__): MOST}
        distributions = neighborhood_distributions(data, own_label=False)
        return [
            {
                "dataset": dataset,
                "label": _class_names(data)[label],
                "nodes": int((data.y == label).sum()),
                "components": len(one.weights),
                "effective": effective[label],
                "std": float(distributions[data.y == label].std(0).mean()),
                "shown": shown.get(label, ""),
            }
            for label, one in enumerate(mixtures)
            if one
        ]

    def draw(self, rows: Sequence[Row], runs: Sequence[Run], root: Path | None, paths: Sequence[Path]) -> bool:
        """Draw the two classes of the data set with the lowest number of effective components."""
        known = [row for row in rows if row["shown"] == FEWEST]
        if not known:
            return False
        dataset = min(known, key=lambda row: float(row["effective"] or 0))["dataset"]
        label = {row["shown"]: row["label"] for row in rows if row["dataset"] == dataset}
        data = load(str(dataset), root=root, features=False)
        names = _class_names(data)
        classes = names.index(str(label[FEWEST])), names.index(str(label[MOST]))
        draw_two_classes(two_classes(data, classes, str(dataset)), paths)
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
    names = class_names_of(data)
    return [str(name) for name in names] if names else [str(label) for label in range(int(data.y.max()) + 1)]
