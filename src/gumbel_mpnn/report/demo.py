"""The demo: models trained on a generated graph, and a figure that compares the graphs and the models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gumbel_mpnn.data import demo_graph
from gumbel_mpnn.report.style import MODEL_NAMES, PALETTE, saved_figure
from gumbel_mpnn.runs.fit import describe, train_spec
from gumbel_mpnn.runs.run import Run

MODELS = ("mlp", "gcn", "sage", "gumbel-mpnn", "auto")
AUTO_BUDGET = ("train.epochs=60", "train.patience=20")
"""Epochs of every rung of `auto`, fewer than those of the other models, so that the demo takes about a minute."""
SHOWN_NODES = 150


def run_demo(runs: Path, device: str = "auto") -> list[Run]:
    """Train every demo model on every split of the demo graph; `auto` in several processes, as `train` does."""
    data = demo_graph()
    specs = (describe(data, model, overrides=AUTO_BUDGET if model == "auto" else ()) for model in MODELS)
    return [train_spec(spec, runs, "demo", device, progress=True) for spec in specs]


def demo_figure(data: Data, runs: Sequence[Run], path: Path) -> None:
    """Draw the given graph, that of Gumbel-MPNN and the test accuracy of every run, and save the figure to `path`."""
    learned = [run.rewire() for run in runs if run.settings.model == "gumbel-mpnn" and run.choice is None]
    graphs = [("as given", data), *(("as learned", graph) for graph in learned)]
    with saved_figure([path], len(graphs) + 1, (4.4 * len(graphs) + 4.4, 4.2)) as axes:
        for place, (title, graph) in zip(axes, graphs, strict=False):
            _draw_graph(place, data, graph, title)
        _draw_scores(axes[-1], runs)
        axes[0].figure.tight_layout()


def _draw_graph(axes: Any, data: Data, graph: Data, title: str) -> None:
    """Draw a sample of the nodes, grouped by class, and the edges of `graph` between them (dark: within a class)."""
    from matplotlib.collections import LineCollection

    rng, nodes = np.random.default_rng(0), int(data.num_nodes or 0)
    shown = rng.permutation(nodes)[:SHOWN_NODES]
    place = np.full(nodes, -1)
    place[shown] = np.arange(len(shown))
    label = data.y.numpy()[shown]
    angle = 2 * np.pi * label / (label.max() + 1)
    xy = np.stack([np.cos(angle), np.sin(angle)], 1) + 0.33 * rng.normal(size=(len(shown), 2))
    source, target = place[graph.edge_index.numpy()]
    ends = np.stack([source, target])[:, (source >= 0) & (target > source)]
    same = label[ends[0]] == label[ends[1]]
    for among, color, name in ((~same, "#c8c8c8", "between classes"), (same, "#222222", "within a class")):
        lines = LineCollection(list(xy[ends[:, among].T]), colors=color, linewidths=0.6, label=name, zorder=1)
        axes.add_collection(lines)
    axes.scatter(*xy.T, c=[PALETTE[c] for c in label], s=14, zorder=2)
    one, other = data.y[graph.edge_index]
    share = 100 * float((one == other).float().mean())
    about = f"{graph.edge_index.shape[1] // 2:,} edges, {share:.0f} % within a class"
    axes.set_title(f"{title}: {about}\n(shown: {SHOWN_NODES} of {nodes} nodes)")
    axes.legend(loc="lower left", fontsize=7)
    axes.set_axis_off()


def _draw_scores(axes: Any, runs: Sequence[Run]) -> None:
    for k, run in enumerate(runs):
        scores = np.array([100 * record.test_or_nan for record in run.records])
        spread = np.linspace(-0.15, 0.15, len(scores)) if len(scores) > 1 else np.zeros(1)
        axes.plot(k + spread, scores, "o", color=PALETTE[k], markersize=4, alpha=0.7)
        axes.hlines(scores.mean(), k - 0.25, k + 0.25, color=PALETTE[k], linewidth=2)
        axes.annotate(f"{scores.mean():.1f}", (k + 0.28, scores.mean()), va="center")
    models = ["auto" if run.choice is not None else run.settings.model for run in runs]
    axes.set_xticks(range(len(runs)), [MODEL_NAMES[model] for model in models], fontsize=7)
    axes.set_xlim(-0.6, len(runs) - 0.3)
    axes.set_ylabel("test accuracy, %")
    axes.set_title(f"every dot is one split, the bar their mean\n({runs[0].n} runs each)")
