"""Bottleneck task: two cliques joined by one edge, for several sizes of the cliques and widths of the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.charts import Chart
from experiments.experiment import Experiment, Job, Results
from experiments.rows import MODEL_NAMES, figures, grid, paragraphs, score
from gumbel_mpnn.report import Row

MODELS = ("gcn", "sdrf", "gumbel-mpnn")
SIZES = ("bottleneck-10", "bottleneck-50", "bottleneck-100", "bottleneck-200")
"""Other sizes; `bottleneck` has 20 nodes on each side."""
WIDTHS = (16, 32, 128, 256)
"""Other widths; the presets have 64."""
REWIRED, CONTROL = "gumbel-mpnn", "frozen"
"""Gumbel-MPNN, and the same with the same candidates, whose scorer never learns."""
FIXED = "fixed"


class Bottleneck(Experiment):
    """GCN, GCN on the graph of SDRF, and Gumbel-MPNN with equal depth and width, tested on unseen pairs.

    The control shows what the candidates are worth if nothing is learned about them.
    """

    name = "bottleneck"
    title = "Labels beyond a bottleneck"
    headings: Mapping[str, str] = {"nodes": "nodes a side", "hidden": "width"}
    charts = (
        Chart(
            "nodes",
            "nodes on each side; five classes",
            "Labels beyond a bottleneck: larger sides",
            series=("model", "scorer"),
            where={"varied": ("", "nodes")},
            log_x=True,
        ),
        Chart(
            "hidden",
            "hidden channels; 20 nodes on each side, five classes",
            "Labels beyond a bottleneck: wider models",
            series=("model", "scorer"),
            where={"varied": ("", "width")},
            log_x=True,
        ),
    )

    def plan(self) -> list[Job]:
        """Return jobs for all models with the sizes of the presets, with other sizes, the control, and other widths."""
        sizes = [Job(dataset, model) for dataset in ("bottleneck", *SIZES) for model in MODELS]
        control = [Job(dataset, CONTROL) for dataset in ("bottleneck", *SIZES)]
        widths = [
            Job("bottleneck", model, overrides=(f"model.hidden_channels={width}",))
            for width in WIDTHS
            for model in MODELS
        ]
        return sizes + control + widths

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each model and size."""
        return [
            {
                "model": REWIRED if job.model == CONTROL else job.model,
                "scorer": FIXED if job.model == CONTROL else "",
                "varied": _varied(job),
                "nodes": int(run.data.batch.bincount()[0]) // 2,
                "layers": run.settings.options["num_layers"],
                "hidden": run.settings.options["hidden_channels"],
                **figures(run),
            }
            for job, run in results.items()
            if run is not None
        ]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each size, with the models as columns."""
        names = [{**row, "model": _name(row)} for row in rows]
        names.sort(key=lambda row: (int(row["hidden"] or 0) != 64, row["nodes"], row["hidden"]))
        return paragraphs(
            "Test accuracy in percent ± standard error; chance is 20 %. In the control the scorer never learns.",
            grid(names, ("nodes", "hidden"), "model", score, self.headings),
        )


def _varied(job: Job) -> str:
    """Return the size in which a job differs from the presets."""
    if job.dataset in SIZES:
        return "nodes"
    return "width" if any(one.startswith("model.hidden_channels") for one in job.overrides) else ""


def _name(row: Row) -> str:
    return "control" if row["scorer"] == FIXED else MODEL_NAMES[str(row["model"])]
