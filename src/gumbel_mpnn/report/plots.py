"""Plots of a run: training curves, confusion matrix, edge probabilities, degrees, and the neighborhood of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from gumbel_mpnn.report.graphs import WHOLE_DEGREES, class_names, degree_histograms, node_ids, pairs_of
from gumbel_mpnn.report.style import PALETTE, shared_style
from gumbel_mpnn.util.errors import UserError, check_at_least, unknown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gumbel_mpnn.runs.run import Run

METRIC, LOSS, OTHER = PALETTE[0], PALETTE[1], PALETTE[2]
MOST_COUNTS = 12
"""The cells of a confusion matrix of more classes are too small for numbers."""
BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "fontsize": 7}
"""Place of a legend."""
KEPT, DROPPED, ADDED = "kept", "dropped", "added"
EDGES: dict[str, dict[str, Any]] = {
    KEPT: {"color": "#555555", "linewidth": 1.2, "linestyle": "-"},
    DROPPED: {"color": PALETTE[1], "linewidth": 1.2, "linestyle": ":"},
    ADDED: {"color": PALETTE[2], "linewidth": 1.6, "linestyle": "--"},
}
CLASS_COLORS = (PALETTE[0], PALETTE[4], PALETTE[3], PALETTE[5])
"""Colors of classes, without those of dropped and added edges."""
MARKERS = "osD^vPX*"
"""A class has a marker of its own, so that a color can serve several classes."""
MOST_NAMES = 40


def plot_run(run: Run, what: str | None = None, ax: Axes | None = None) -> Any:
    """Draw one plot of a run or all plots side by side; `Run.plot` describes the arguments."""
    model = f"model {run.settings.model!r}"
    reasons = {
        "confusion": "" if run.data.test_mask.any() else "these runs have no test nodes",
        "probabilities": f"{model} learns no edge probabilities" if run.settings.rewiring is None else "",
        "degrees": "" if run.rewires else f"{model} does not rewire the graph",
    }
    names = [name for name in PLOTS if not reasons.get(name)]
    if what is None and ax is not None:
        raise UserError(f"ax takes a single plot: name one of {', '.join(PLOTS)}, or leave out ax")
    if what is not None and what not in PLOTS:
        raise unknown_name("plot", what, PLOTS)
    if what is not None and what not in names:
        raise UserError(f"{reasons[what]}: plot {' or '.join(map(repr, names))}")
    shown = names if what is None else [what]
    with shared_style():
        axes = _new_axes(len(shown)) if ax is None else [ax]
        for place, name in zip(axes, shown, strict=True):
            PLOTS[name](run, place)
    return axes if what is None else axes[0]


def _new_axes(count: int, size: float = 4.2) -> Any:
    """Axes of a new figure, [count], two in a row."""
    import matplotlib.pyplot as plt

    rows, columns = -(-count // 2), min(count, 2)
    figure = plt.figure(figsize=(size * columns, size * rows), layout="constrained")
    return np.array([figure.add_subplot(rows, columns, place + 1) for place in range(count)])


def _as_label(text: object, most: int = 14) -> str:
    """Text of the user for a figure: short, on one line, and with dollar signs that do not begin a formula."""
    words = " ".join(str(text).split())
    return (words if len(words) <= most else words[: most - 1] + "…").replace("$", r"\$")


def _draw_curves(run: Run, ax: Axes) -> None:
    """Validation metric of every run with the chosen epochs, and mean losses on a second axis."""
    history = run.history
    by_epoch = history.pivot_table(index="epoch", columns=["split", "seed"], values=["train_loss", "val", "val_loss"])
    together = by_epoch.dropna()  # a mean over fewer and fewer runs would jump where one ends
    if "val" in by_epoch:  # there are validation nodes
        ax.plot(by_epoch.index, 100 * by_epoch["val"], color=METRIC, linewidth=0.6, alpha=0.4)
        mean = 100 * together["val"].mean(axis=1)
        ax.plot(together.index, mean, color=METRIC, linewidth=1.8, label="validation, mean")
        chosen = [(record.best_epoch, 100 * record.val) for record in run.records if record.val is not None]
        ax.plot(*zip(*chosen, strict=True), "o", color="black", markersize=3.5, zorder=3, label="chosen epoch")
    losses = ax.twinx()
    losses.spines["right"].set_visible(True)
    for name, style, label in (("train_loss", "--", "training loss"), ("val_loss", ":", "validation loss")):
        if name in together:
            losses.plot(together.index, together[name].mean(axis=1), style, color=LOSS, linewidth=1.3, label=label)
    ax.set_xlabel("epoch")
    ax.set_ylabel(f"validation {run.metric}, %", color=METRIC)
    losses.set_ylabel("loss, mean of the runs", color=LOSS)
    ax.set_title(f"training of {run.n} run{'s' * (run.n > 1)}")
    lines = [line for each in (ax, losses) for line in each.get_legend_handles_labels()[0]]
    losses.legend(handles=lines, ncols=2, **BELOW)


def _draw_confusion(run: Run, ax: Axes) -> None:
    """Shares of each true class by predicted class, with counts."""
    count = run.confusion_matrix().numpy()
    share = count / np.maximum(count.sum(1, keepdims=True), 1)
    labels = list(map(_as_label, class_names(run.data, len(count))))
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    if len(count) <= MOST_COUNTS:
        for (row, column), value in np.ndenumerate(count):
            color = "white" if share[row, column] > 0.5 else "black"
            ax.text(column, row, f"{value:,}", ha="center", va="center", fontsize=7, color=color)
    slanted = max(map(len, labels)) > 3
    ax.set_xticks(range(len(count)), labels, rotation=45 if slanted else 0, ha="right" if slanted else "center")
    ax.set_yticks(range(len(count)), labels)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.spines[:].set_visible(False)
    right = 100 * np.trace(count) / count.sum()
    ax.set_title(f"test nodes: {right:.1f} % right" + f" ({run.n} runs added)" * (run.n > 1))
    ax.figure.colorbar(image, ax=ax, label="share of the true class", fraction=0.045)


def _draw_probabilities(run: Run, ax: Axes) -> None:
    """Histogram of the learned probabilities of given edges and of candidates."""
    pairs = pairs_of(run)
    for given, name, color, style in ((True, "given edges", METRIC, "-"), (False, "candidates", LOSS, "--")):
        kind = pairs[pairs["given"] == given]
        if len(kind):
            label = f"{name}: {len(kind):,}, {kind['learned'].sum():,} of them at ½ or more"
            counts, bins = np.histogram(kind["probability"], 40, (0, 1))
            ax.stairs(counts, bins, label=label, linewidth=1.5, color=color, linestyle=style)
    ax.axvline(0.5, color="#999999", linewidth=0.8)
    ax.set(yscale="log", xlim=(0, 1), ylabel="pairs of nodes", title="learned edge probabilities")
    ax.set_ylim(bottom=0.7)
    ax.set_xlabel("probability of the edge" + ", mean of the runs" * (run.n > 1))
    ax.legend(**BELOW)


def _draw_degrees(run: Run, ax: Axes) -> None:
    """Histogram of the degrees in the given and in the learned graph."""
    found = degree_histograms(run.data, run.rewire())
    bins = np.array(found["bins"]) - 0.5
    if bins[-1] > WHOLE_DEGREES + 1:
        ax.set_xscale("symlog", linthresh=1)
        ax.xaxis.set_major_formatter("{x:g}")
    # The first line is wide, so that it is seen under the second where the degrees are the same.
    looks = (("before", "given", METRIC, "-", 3), ("after", "learned", OTHER, "--", 1.5))
    for (when, name, color, style, width), mean, isolated in zip(looks, found["mean"], found["isolated"], strict=True):
        label = f"{name} graph: mean {mean:.1f}, {isolated:,} isolated"
        ax.stairs(found[when], bins, label=label, linewidth=width, color=color, linestyle=style)
    ax.set_xlim(left=-0.5)
    ax.set(xlabel="degree", ylabel="nodes", title="degrees before and after")
    ax.legend(**BELOW)


PLOTS: Mapping[str, Callable[[Run, Axes], None]] = {
    "curves": _draw_curves,
    "confusion": _draw_confusion,
    "probabilities": _draw_probabilities,
    "degrees": _draw_degrees,
}


def plot_neighborhood(
    run: Run,
    node: object,
    hops: int = 1,
    *,
    threshold: float = 0.5,
    most: int = 30,
) -> Any:
    """Draw the neighborhood of a node in the given graph and after rewiring, side by side.

    Kept edges are gray, dropped ones are dotted and orange, added ones are dashed and green. Directions are not shown.
    Colors and markers of the nodes are their classes, gray if unknown.

    Args:
        run: Runs of a model that rewires the graph.
        node: Id of the node or, if the graph has no `node_ids`, its number.
        hops: Largest distance from the node, over edges before or after rewiring.
        threshold: Edges with a smaller probability are dropped or not added.
        most: Largest number of nodes. Of more, the nearest are shown, and of equally distant ones those whose edges the
            model is surest of. The title says so.

    Returns:
        Array of the two axes.
    """
    check_at_least(1, hops=hops, most=most)
    if not run.rewires:
        raise UserError(f"model {run.settings.model!r} does not rewire the graph: use plot('curves')")
    ids = node_ids(run.data)
    if str(node) not in ids:
        what = f"a number from 0 to {len(ids) - 1}" if run.data.get("node_ids") is None else "one of run.data.node_ids"
        raise UserError(f"there is no node {node!r}: give {what}")
    middle, edges = ids.index(str(node)), _edges(run, threshold)
    near, found = _neighbors(edges, middle, len(ids), hops, most)
    edges = edges[edges["one"].isin(near) & edges["other"].isin(near)]
    nodes = _rings(near, {one: int(run.data.y[one]) for one in near})
    nodes["name"] = [_as_label(ids[one], 12) for one in nodes.index]
    classes = class_names(run.data, nodes["label"].max() + 1)
    counts = ", ".join(f"{(edges['kind'] == kind).sum()} {kind}" for kind in EDGES)
    with shared_style():
        axes = _new_axes(2, size=4.8)
        for ax, some in zip(axes, (edges[edges["kind"] != ADDED].assign(kind=KEPT), edges), strict=True):
            _draw_neighborhood(ax, nodes, some, middle, classes)
        axes[0].set_title("given graph")
        axes[1].set_title(f"rewired: {counts}")
        part = f"\n({len(near)} of {found} nodes: the nearest, and those with the surest edges)" * (len(near) < found)
        within = f"neighbors within {hops} hop{'s' * (hops > 1)}"
        axes[0].figure.suptitle(f"node {nodes['name'][middle]} and {within}{part}")
        handles = axes[1].get_legend_handles_labels()[0]
        axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=7)
    return axes


def _edges(run: Run, threshold: float) -> pd.DataFrame:
    """Edges before or after rewiring, each once: their ends, their kind, and how far their probability is from ½."""
    pairs = pairs_of(run)
    ends = pairs[["source", "target"]]
    found = pd.DataFrame({"one": ends.min(axis=1), "other": ends.max(axis=1), "before": pairs["given"]})
    found = found.assign(after=pairs["probability"] >= threshold, sure=(pairs["probability"] - 0.5).abs())
    found = found[found["before"] | found["after"]].groupby(["one", "other"], as_index=False).max()
    found["kind"] = np.where(found["before"], np.where(found["after"], KEPT, DROPPED), ADDED)
    return found


def _neighbors(edges: pd.DataFrame, middle: int, count: int, hops: int, most: int) -> tuple[dict[int, int], int]:
    """Distance of the nodes to show, and how many nodes there are within `hops`."""
    one, other, sure = (edges[name].to_numpy() for name in ("one", "other", "sure"))
    graph = coo_array((np.ones(len(edges)), (one, other)), shape=(count, count)).tocsr()
    distance = dijkstra(graph, directed=False, indices=middle, unweighted=True, limit=hops)
    surest = np.zeros(count)
    for near, far in ((one, other), (other, one)):
        onward = distance[near] < distance[far]
        np.maximum.at(surest, far[onward], sure[onward])
    reached = np.flatnonzero(distance <= hops)
    order = reached[np.lexsort((reached, -surest[reached], distance[reached]))]
    return {int(node): int(distance[node]) for node in np.sort(order[:most])}, len(order)


def _rings(near: Mapping[int, int], classes: Mapping[int, int]) -> pd.DataFrame:
    """Places of the nodes, a row each: the first in the middle, the others on rings by distance, sorted by class."""
    nodes = pd.DataFrame({"ring": pd.Series(near), "label": pd.Series(classes)}).sort_values(["ring", "label"])
    ring = nodes["ring"]
    angle = 2 * np.pi * (nodes.groupby("ring").cumcount() + 0.5 * (ring % 2)) / ring.map(ring.value_counts())
    return nodes.assign(x=ring * np.cos(angle), y=ring * np.sin(angle))


def _draw_neighborhood(ax: Axes, nodes: pd.DataFrame, edges: pd.DataFrame, middle: int, classes: list[str]) -> None:
    from matplotlib.patheffects import withStroke

    for kind, some in edges.groupby("kind"):
        ends = some[["one", "other"]].to_numpy().T
        x, y = (nodes[axis].to_numpy()[nodes.index.get_indexer(ends.ravel())].reshape(ends.shape) for axis in "xy")
        lines = ax.plot(x, y, zorder=1, **EDGES[str(kind)])
        lines[0].set_label(f"{kind} edge")
    for label, of_class in nodes.groupby("label"):
        color, marker, name = "#bbbbbb", "o", "no label"
        if label >= 0:
            color, marker = CLASS_COLORS[label % len(CLASS_COLORS)], MARKERS[label % len(MARKERS)]
            name = f"class {_as_label(classes[label])}"
        ax.scatter(of_class["x"], of_class["y"], 60, c=color, marker=marker, edgecolors="w", label=name, zorder=2)
    ax.scatter(nodes["x"][middle], nodes["y"][middle], 200, facecolors="none", edgecolors="black", zorder=2)
    halo = [withStroke(linewidth=2, foreground="white")]
    about: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 6.5, "path_effects": halo}
    for node in nodes.itertuples() if len(nodes) <= MOST_NAMES else ():
        ax.annotate(node.name, (node.x, node.y), xytext=(0, 9 if node.Index == middle else 6), zorder=3, **about)
    ax.set_aspect("equal")
    ax.margins(0.12)
    ax.set_axis_off()
