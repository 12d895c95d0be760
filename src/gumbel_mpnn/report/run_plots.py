"""Plots of a run: training curves, confusion matrix, edge probabilities and degrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import UserError, unknown_name
from gumbel_mpnn.data.names import class_names_of
from gumbel_mpnn.measures import node_degrees
from gumbel_mpnn.report.style import PALETTE, as_label, shared_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gumbel_mpnn.runs import Run

METRIC, LOSS, OTHER = PALETTE[0], PALETTE[1], PALETTE[2]
MOST_COUNTS = 12
"""The cells of a confusion matrix of more classes are too small for numbers."""
WHOLE_DEGREES = 40
"""Up to this degree there is one bar for each degree, above it their widths grow."""
PANEL = (4.6, 3.6)


def plot_run(run: Run, what: str | None = None, ax: Axes | None = None) -> Any:
    """Draw one plot of a run or all plots side by side; `Run.plot` describes the arguments."""
    if what is None and ax is not None:
        raise UserError(f"ax takes a single plot: name one of {', '.join(PLOTS)}, or leave out ax")
    if what is not None and what not in PLOTS:
        raise unknown_name("plot", what, PLOTS)
    if what is not None:
        with shared_style():
            ax = new_axes(1)[0] if ax is None else ax
            PLOTS[what](run, ax)
        return ax
    names = [name for name in PLOTS if _has(run, name)]
    with shared_style():
        axes = new_axes(len(names), columns=2)
        for place, name in zip(axes, names, strict=True):
            PLOTS[name](run, place)
    return axes


def new_axes(count: int, columns: int = 1, size: tuple[float, float] = PANEL) -> NDArray[Any]:
    """Axes of a new figure, [count]; a place that is left over stays empty."""
    import matplotlib.pyplot as plt

    rows = -(-count // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False, layout="constrained"
    )
    for unused in axes.flatten()[count:]:
        figure.delaxes(unused)
    return np.asarray(axes.flatten()[:count])


def _has(run: Run, name: str) -> bool:
    """Whether the model of a run has this plot, and there is something to draw."""
    if name == "confusion":
        return bool(run.data.test_mask.any())
    if name == "probabilities":
        return run.settings.rewiring is not None
    return name != "degrees" or run.rewires


def _draw_curves(run: Run, ax: Axes) -> None:
    """Validation metric of every run with the chosen epochs, and mean losses on a second axis."""
    history = run.history
    by_epoch = history.pivot_table(index="epoch", columns=["split", "seed"], values=["train_loss", "val", "val_loss"])
    together = by_epoch.dropna()  # a mean over fewer and fewer runs would jump where one ends
    if "val" in by_epoch:  # there are validation nodes
        for curve in by_epoch["val"]:
            ax.plot(by_epoch.index, 100 * by_epoch["val"][curve], color=METRIC, linewidth=0.6, alpha=0.4)
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
    handles, labels = (
        first + second
        for first, second in zip(ax.get_legend_handles_labels(), losses.get_legend_handles_labels(), strict=True)
    )
    losses.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=7)


def _draw_confusion(run: Run, ax: Axes) -> None:
    """Shares of each true class by predicted class, with counts."""
    count = run.confusion_matrix().numpy()
    total = int(count.sum())
    if not total:
        raise UserError("these runs have no test nodes, so there is no confusion matrix: plot 'curves'")
    share = count / np.maximum(count.sum(1, keepdims=True), 1)
    names = class_names_of(run.data) or range(len(count))
    labels = [as_label(name, 14) for name in names][: len(count)]
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    if len(count) <= MOST_COUNTS:
        for (row, column), value in np.ndenumerate(count):
            color = "white" if share[row, column] > 0.5 else "black"
            ax.text(column, row, f"{value:,}", ha="center", va="center", color=color, fontsize=7)
    slanted = max(map(len, labels)) > 3
    ax.set_xticks(range(len(count)), labels, rotation=40 if slanted else 0, ha="right" if slanted else "center")
    ax.set_yticks(range(len(count)), labels)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.spines[:].set_visible(False)
    ax.set_title(f"test nodes: {100 * np.trace(count) / total:.1f} % right" + f" ({run.n} runs added)" * (run.n > 1))
    ax.figure.colorbar(image, ax=ax, label="share of the true class", fraction=0.045)


def _draw_probabilities(run: Run, ax: Axes) -> None:
    """Histogram of the learned probabilities of given edges and of candidates."""
    if run.settings.rewiring is None:
        raise UserError(f"model {run.settings.model!r} learns no edge probabilities: plot 'curves' or 'confusion'")
    learned = run.rewire(threshold=0).cpu()
    once = learned.edge_index[0] <= learned.edge_index[1] if run.settings.data.undirected else slice(None)
    probability, given = learned.edge_probability[once].numpy(), learned.edge_origin[once].numpy()
    bins = np.linspace(0, 1, 41)
    for among, name, color, style in ((given, "given edges", METRIC, "-"), (~given, "candidates", LOSS, "--")):
        if among.any():
            label = f"{name}: {among.sum():,}, {(probability[among] >= 0.5).sum():,} of them at ½ or more"
            look: dict[str, Any] = {"color": color, "linestyle": style, "label": label}
            ax.hist(probability[among], bins.tolist(), histtype="step", linewidth=1.5, **look)
    ax.axvline(0.5, color="#999999", linewidth=0.8)
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability of the edge" + ", mean of the runs" * (run.n > 1))
    ax.set_ylabel("pairs of nodes")
    ax.set_title("learned edge probabilities")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=7)


def _draw_degrees(run: Run, ax: Axes) -> None:
    """Histogram of the degrees in the given and in the learned graph."""
    if not run.rewires:
        raise UserError(f"model {run.settings.model!r} does not rewire the graph: plot 'curves' or 'confusion'")
    before, after = (node_degrees(graph).cpu().numpy() for graph in (run.data, run.rewire()))
    most = max(before.max(), after.max())
    edges = np.arange(min(most, WHOLE_DEGREES) + 2) - 0.5
    if most > WHOLE_DEGREES:
        edges = np.unique([0, *np.geomspace(1, most + 1, WHOLE_DEGREES).round()]) - 0.5
        ax.set_xscale("symlog", linthresh=1)
        ax.xaxis.set_major_formatter("{x:g}")
    # The first line is wide, so that it is seen under the second where the degrees are the same.
    for degree, name, color, style, width in ((before, "given", METRIC, "-", 3), (after, "learned", OTHER, "--", 1.5)):
        label = f"{name} graph: mean {degree.mean():.1f}, {(degree == 0).sum():,} isolated"
        look: dict[str, Any] = {"color": color, "linestyle": style, "linewidth": width, "label": label}
        ax.hist(degree, edges.tolist(), histtype="step", **look)
    ax.set_xlim(left=-0.5)
    ax.set_xlabel("degree")
    ax.set_ylabel("nodes")
    ax.set_title("degrees before and after")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=7)


PLOTS: dict[str, Callable[[Run, Axes], None]] = {
    "curves": _draw_curves,
    "confusion": _draw_confusion,
    "probabilities": _draw_probabilities,
    "degrees": _draw_degrees,
}
