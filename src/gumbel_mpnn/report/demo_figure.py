"""The demo's picture: the graph as it is given, and how the models did on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn.report.style import PALETTE, figure_style
from gumbel_mpnn.runs import Run

SHOWN_NODES = 150


def demo_figure(data: Data, runs: Sequence[Run], path: Path) -> None:
    """Draw the demo graph and the test accuracy of every run, and save the figure."""
    with figure_style():
        import matplotlib.pyplot as plt

        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=[1.2, 1])
        _draw_graph(left, data)
        _draw_scores(right, runs)
        figure.savefig(path)
        plt.close(figure)


def _draw_graph(axes: Any, data: Data) -> None:
    """Some nodes, grouped by class, with the edges among them: trustworthy ones dark, random ones pale."""
    rng = np.random.default_rng(0)
    shown = rng.permutation(int(data.num_nodes))[:SHOWN_NODES]
    place = np.full(int(data.num_nodes), -1)
    place[shown] = np.arange(len(shown))
    label = data.y.numpy()[shown]
    angle = 2 * np.pi * label / (label.max() + 1)
    xy = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.33 * rng.normal(size=(len(shown), 2))
    source, target = place[data.edge_index.numpy()]
    inside = (source >= 0) & (target > source)
    core = data.edge_is_core.numpy()[inside]
    ends = np.stack([xy[source[inside]], xy[target[inside]]], 1)
    for among, color, width, name in ((~core, "#cccccc", 0.4, "random edge"), (core, "#222222", 1.0, "core edge")):
        segments = np.concatenate([ends[among], np.full((int(among.sum()), 1, 2), np.nan)], 1).reshape(-1, 2)
        axes.plot(*segments.T, color=color, linewidth=width, label=name, zorder=1)
    axes.scatter(*xy.T, c=[PALETTE[c] for c in label], s=14, zorder=2)
    share = float(data.edge_is_core.float().mean())
    axes.set_title(
        f"{SHOWN_NODES} of {data.num_nodes} nodes, colored by class\n{100 * share:.0f} % of all edges are core"
    )
    axes.legend(loc="upper left", fontsize=7)
    axes.set_axis_off()


def _draw_scores(axes: Any, runs: Sequence[Run]) -> None:
    for k, run in enumerate(runs):
        scores = np.array([100 * record.test for record in run.records])
        spread = np.linspace(-0.15, 0.15, len(scores)) if len(scores) > 1 else np.zeros(1)
        axes.plot(k + spread, scores, "o", color=PALETTE[k], markersize=4, alpha=0.7)
        axes.hlines(scores.mean(), k - 0.25, k + 0.25, color=PALETTE[k], linewidth=2)
        axes.annotate(f"{scores.mean():.1f}", (k + 0.28, scores.mean()), va="center")
    axes.set_xticks(range(len(runs)), [run.settings.model.upper() for run in runs])
    axes.set_xlim(-0.6, len(runs) - 0.3)
    axes.set_ylabel("test accuracy, %")
    axes.set_title(f"every dot is one split, the bar their mean\n({runs[0].n} runs each)")
