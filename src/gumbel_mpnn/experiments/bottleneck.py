"""Two dense sides joined by one edge: what a rewired model tells of the other side."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.experiments.base import Job, Row, figures
from gumbel_mpnn.runs import Run


class Bottleneck:
    """GCN and Gumbel-MPNN of the same depth and width on pairs that were not seen in training."""

    name = "bottleneck"
    title = "Labels beyond a bottleneck"
    headings: Mapping[str, str] = {
        "layers": "layers",
        "hidden": "width",
        "test": "test %",
        "stderr": "std error",
        "n": "runs",
    }

    def plan(self) -> list[Job]:
        """Both models with the same backbone settings."""
        return [Job("bottleneck", model) for model in ("gcn", "gumbel-mpnn")]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """One row for each model."""
        return [
            {
                "model": job.model,
                "layers": run.settings.options["num_layers"],
                "hidden": run.settings.options["hidden_channels"],
                **figures(run),
            }
            for job, run in results.items()
            if run is not None
        ]
