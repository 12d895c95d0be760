"""Bottleneck task: two cliques joined by one edge, for several sizes of the cliques and widths of the models."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.paper.base import Job, figures
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run

MODELS = ("gcn", "sdrf", "gumbel-mpnn")
SIZES = ("bottleneck-10", "bottleneck-50", "bottleneck-100", "bottleneck-200")
"""Other sizes; `bottleneck` has 20 nodes on each side."""
WIDTHS = (16, 32, 128, 256)
"""Other widths; the presets have 64."""
CONTROL = "rewiring.lr=1e-9"
"""Setting of the control: a Gumbel-MPNN with the same candidates, whose scorer never learns."""


class Bottleneck(Experiment):
    """GCN, GCN on the graph of SDRF, and Gumbel-MPNN with equal depth and width, tested on unseen pairs.

    The control shows what the candidates are worth if nothing is learned about them.
    """

    name = "bottleneck"
    title = "Labels beyond a bottleneck"
    headings: Mapping[str, str] = {
        "nodes": "nodes a side",
        "hidden": "width",
    }
    charts = tuple(
        Chart(
            x=x,
            y="test",
            series=("model", "scorer"),
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
        """Return jobs for all models with the sizes of the presets, with other sizes, the control, and other widths."""
        sizes = [Job(dataset, model) for dataset in ("bottleneck", *SIZES) for model in MODELS]
        widths = [
            Job("bottleneck", model, overrides=(f"model.hidden_channels={width}",))
            for width in WIDTHS
            for model in MODELS
        ]
        control = [Job(dataset, "gumbel-mpnn", overrides=(CONTROL,)) for dataset in ("bottleneck", *SIZES)]
        return sizes + control + widths

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each model and size."""
        return [
            {
                "model": job.model,
                "scorer": "fixed" if CONTROL in job.overrides else "",
                "varied": _varied(job),
                "nodes": int(run.data.batch.bincount()[0]) // 2,
                "layers": run.settings.options["num_layers"],
                "hidden": run.settings.options["hidden_channels"],
                **figures(run),
            }
            for job, run in results.items()
            if run is not None
        ]


def _varied(job: Job) -> str:
    """Return the size in which a job differs from the presets."""
    if job.dataset in SIZES:
        return "nodes"
    return "width" if any(one.startswith("model.hidden_channels") for one in job.overrides) else ""
