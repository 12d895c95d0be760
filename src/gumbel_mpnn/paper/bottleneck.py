"""Two dense sides joined by one edge: what a model tells of the other side, over the sides' size and its own width."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import Job, figures
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run

MODELS = ("gcn", "sdrf", "gumbel-mpnn")
SIZES = ("bottleneck-10", "bottleneck-50", "bottleneck-100")
"""Beside the 20 nodes a side of `bottleneck`."""
WIDTHS = (16, 32, 128, 256)
"""Beside the 64 of the presets."""


class Bottleneck(Experiment):
    """GCN, GCN on SDRF's graph and Gumbel-MPNN of the same depth and width, on pairs not seen in training."""

    name = "bottleneck"
    title = "Labels beyond a bottleneck"
    headings: Mapping[str, str] = {
        "varied": "varied",
        "nodes": "nodes a side",
        "layers": "layers",
        "hidden": "width",
        "test": "test %",
        "stderr": "std error",
        "n": "runs",
    }
    charts = tuple(
        Chart(
            x=x,
            y="test",
            series=("model",),
            x_label=label,
            y_label="test accuracy, %",
            title=title,
            where={"varied": ("", varied)},
            log_x=True,
        )
        for x, varied, label, title in (
            ("nodes", "nodes", "nodes on each side; five classes", "Labels beyond a bottleneck: larger sides"),
            (
                "hidden",
                "width",
                "hidden channels; 20 nodes on each side, five classes",
                "Labels beyond a bottleneck: wider models",
            ),
        )
    )

    def plan(self) -> list[Job]:
        """All models with the same backbone settings: the size of the presets, other sizes, other widths."""
        sizes = [Job(dataset, model) for dataset in ("bottleneck", *SIZES) for model in MODELS]
        widths = [
            Job("bottleneck", model, overrides=(f"model.hidden_channels={width}",))
            for width in WIDTHS
            for model in MODELS
        ]
        return sizes + widths

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """One row for each model and size."""
        return [
            {
                "model": job.model,
                "varied": "width" if job.overrides else "nodes" if job.dataset in SIZES else "",
                "nodes": int(run.data.batch.bincount()[0]) // 2,
                "layers": run.settings.options["num_layers"],
                "hidden": run.settings.options["hidden_channels"],
                **figures(run),
            }
            for job, run in results.items()
            if run is not None
        ]
