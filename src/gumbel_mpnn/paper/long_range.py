"""LeafCount and Tree-NeighborsMatch: long-range tasks on trees, with few layers and rewiring."""

from __future__ import annotations

from collections.abc import Mapping

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.data.generated import LEAF_COUNT_DEPTHS, MATCH_DEPTHS
from gumbel_mpnn.paper.base import Job, figures, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

DEPTHS: Mapping[str, int] = {**LEAF_COUNT_DEPTHS, **MATCH_DEPTHS}
PAPER = "leaf-count"
"""The task that the paper reports."""


class LongRange(Experiment):
    """A GCN with too few layers, a GCN with enough layers, and Gumbel-MPNN with few layers."""

    name = "long-range"
    headings: Mapping[str, str] = {
        "dataset": "task",
        "chance": "chance %",
        "paper": "paper %",
        "to_paper": "ours − paper",
    }

    def __init__(self, datasets: tuple[str, ...] = (PAPER, "tree-neighbors-match")) -> None:
        self.datasets = datasets
        self.title = f"What the root of a tree knows of its leaves: {', '.join(datasets)}"

    def on(self, dataset: str) -> LongRange:
        """Return the experiment on a single task, at the depth given by its name."""
        if dataset not in DEPTHS:
            raise unknown_name("task on trees", dataset, DEPTHS)
        return LongRange((dataset,))

    def plan(self) -> list[Job]:
        """Return jobs for each task, with enough layers for two hops per layer and for one hop per layer."""
        return [
            Job(dataset, model, overrides=(f"model.num_layers={layers}",))
            for dataset in self.datasets
            for few, enough in [_layers(dataset)]
            for model, layers in (("gcn", few), ("gcn", enough), ("gumbel-mpnn", few))
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each task and model."""
        return [_row(job, run) for job, run in results.items() if run is not None]

    def numbers(self) -> list[PaperNumber]:
        """Return the paper's three numbers, which have no ±."""
        return [
            PaperNumber(
                PAPER,
                f"test %, {layers} layers",
                value,
                {"dataset": PAPER, "model": model, "layers": int(layers)},
                "test",
                model,
                error_column="stderr",
                preset="tuned",
                accuracy=True,
            )
            for model, values in published("long-range").items()
            for layers, value in values.items()
        ]


def _layers(dataset: str) -> tuple[int, int]:
    """Return the number of layers from the leaves to the root, with edges between nodes two hops apart and without.

    Tree-NeighborsMatch needs one more layer, in which a leaf combines its value with its key.
    """
    depth, more = DEPTHS[dataset], dataset in MATCH_DEPTHS
    return -(-depth // 2) + more, depth + more


def _row(job: Job, run: Run) -> Row:
    layers = run.settings.options["num_layers"]
    paper = published("long-range")[job.model].get(str(layers)) if job.dataset == PAPER else None
    return {
        "dataset": job.dataset,
        "depth": DEPTHS[job.dataset],
        "model": job.model,
        "layers": layers,
        **figures(run),
        "chance": 100 / (int(run.data.y.max()) + 1),
        "paper": paper,
        "to_paper": None if paper is None else 100 * run.test.mean - paper,
    }
