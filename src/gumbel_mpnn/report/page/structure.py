"""What rewiring changed in a graph: pairs of nodes, degrees, classes of neighbors and measures, before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.measures import MEASURES, measure, neighborhood_distributions, node_degrees, undirected_edges
from gumbel_mpnn.measures.homophily import OF_PAIRS
from gumbel_mpnn.measures.neighborhoods import neighbor_label_counts
from gumbel_mpnn.measures.structure import class_count
from gumbel_mpnn.report.pairs import Pairs
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.util.files import none_if_nan

WHOLE_DEGREES = 30
"""Up to this degree there is a bar for each degree, above it the widths grow."""
MOST_CLASSES = 50
"""More classes have no matrices."""


def structure_of(run: Run, pairs: Pairs) -> dict[str, Any]:
    """Counts of edges, degrees, matrices of classes and measures of the given and the learned graph.

    `unseen` has the same matrices for edges between nodes that a run did not train on. There every run counts with its
    own graph and split, since the mean graph has learned from the training nodes of all splits.
    """
    data = run.data
    before, after = (_with_edges(data, pairs.ends[:, kind]) for kind in (pairs.given, pairs.learned))
    values = [measure(graph) for graph in (before, after)]
    num_classes = class_count(data.y)
    few = num_classes <= MOST_CLASSES
    found: dict[str, Any] = {
        "counts": {
            "kept": int((pairs.given & pairs.learned).sum()),
            "dropped": int((pairs.given & ~pairs.learned).sum()),
            "added": int((~pairs.given & pairs.learned).sum()),
            "candidates": int((~pairs.given).sum()),
        },
        "degrees": _degrees(before, after),
        "classes": [str(name) for name in data.get("class_names") or range(num_classes)][:num_classes],
        "all": {"before": _classes(before), "after": _classes(after)} if few else None,
        "unseen": None,
        "measures": [
            {"name": known.heading, "before": values[0][name], "after": values[1][name]}
            for name, known in MEASURES.items()
        ],
        "pairs": [],
        "sentence": "",
    }
    if run.settings.rewiring is not None:
        kinds = run.measure_pairs()
        found["unseen"] = _unseen(run, before) if few else None
        found["sentence"] = kinds.sentence()
        found["pairs"] = [
            {"kind": kind, "name": MEASURES[name].heading, "before": of.before[name], "after": of.after[name]}
            for kind, of in kinds.kinds.items()
            for name in ("num_edges", *OF_PAIRS)
        ]
    return found


def _with_edges(data: Data, edges: NDArray[np.int64] | Tensor) -> Data:
    """The labels of a graph with other edges."""
    return Data(edge_index=torch.as_tensor(edges), y=data.y.cpu(), num_nodes=data.num_nodes)


def _degrees(before: Data, after: Data) -> dict[str, Any]:
    """Histograms over the same bins; a bin is from its edge up to the next one."""
    degrees = [node_degrees(graph).numpy() for graph in (before, after)]
    most = int(max(degree.max(initial=0) for degree in degrees))
    bins = np.arange(min(most, WHOLE_DEGREES) + 2)
    if most > WHOLE_DEGREES:
        bins = np.unique([0, *np.geomspace(1, most + 1, WHOLE_DEGREES).round().astype(int)])
    counts = [np.histogram(degree, [*bins[:-1], bins[-1] - 1e-9])[0].tolist() for degree in degrees]
    return {
        "bins": bins.tolist(),
        "before": counts[0],
        "after": counts[1],
        "mean": [round(float(degree.mean()), 3) for degree in degrees],
        "isolated": [int((degree == 0).sum()) for degree in degrees],
    }


def _classes(graph: Data) -> dict[str, Any]:
    """Number of edges between each two classes, and the mean share of each class among the neighbors of a class.

    An edge within a class counts once.
    """
    y, edges, num_classes = graph.y, undirected_edges(graph), class_count(graph.y)
    counts = neighbor_label_counts(y[edges][:, (y[edges] >= 0).all(0)], torch.arange(num_classes), num_classes)
    counts.diagonal().floor_divide_(2)
    rows = neighborhood_distributions(graph, own_label=False)
    usable = (y >= 0) & (rows.sum(1) > 0)
    total = rows.new_zeros(num_classes, rows.shape[1]).index_add(0, y[usable], rows[usable])
    number = y[usable].bincount(minlength=num_classes).clamp(min=1)
    return {"edges": counts.tolist(), "neighbors": _rounded(total / number[:, None])}


def _unseen(run: Run, given: Data) -> dict[str, Any]:
    """The matrices for edges between nodes outside the training nodes of a run, mean over the runs."""
    masks = by_split(run.data.train_mask.cpu())
    sums: dict[str, dict[str, NDArray[np.float64]]] = {}
    for record, learned in zip(run.records, run.graphs(), strict=True):
        outside = ~masks[:, record.split]
        for when, graph in (("before", given), ("after", learned.cpu())):
            edges = undirected_edges(graph)
            part = _with_edges(run.data, edges[:, outside[edges].all(0)])
            for name, matrix in _classes(part).items():
                of = sums.setdefault(when, {})
                of[name] = of.get(name, 0) + np.array(matrix, dtype=np.float64) / run.n
    return {when: {name: _rounded(matrix) for name, matrix in of.items()} for when, of in sums.items()}


def _rounded(matrix: Any) -> list[list[float | None]]:
    return [[none_if_nan(round(float(value), 4)) for value in row] for row in matrix.tolist()]
