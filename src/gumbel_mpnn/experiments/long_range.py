"""LeafCount: what two layers can know on a rewired tree of depth four."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn.experiments.base import Job, Row, figures, published
from gumbel_mpnn.runs import Run


class LongRange:
    """A plain GCN that cannot see the leaves, one that can, and a rewired one that brings them near."""

    name = "long-range"
    title = "LeafCount, depth 4"
    headings: Mapping[str, str] = {
        "layers": "layers",
        "test": "test %",
        "stderr": "std error",
        "n": "runs",
        "paper": "paper %",
        "to_paper": "ours − paper",
    }

    def plan(self) -> list[Job]:
        """The root is four hops from the leaves."""
        plain = [Job("leaf-count", "gcn", overrides=(f"model.num_layers={layers}",)) for layers in (2, 4)]
        return [*plain, Job("leaf-count", "gumbel-mpnn")]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """One row for each model."""
        return [_row(job.model, run) for job, run in results.items() if run is not None]


def _row(model: str, run: Run) -> Row:
    layers = run.settings.options["num_layers"]
    paper = published("long-range")[model].get(str(layers))
    to_paper = None if paper is None else 100 * run.test.mean - paper
    return {"model": model, "layers": layers, **figures(run), "paper": paper, "to_paper": to_paper}
