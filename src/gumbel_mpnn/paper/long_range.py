"""LeafCount and Tree-NeighborsMatch: long-range tasks on trees, with few layers and rewiring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import DataError, unknown_name
from gumbel_mpnn.baselines import SDRFOfEachGraph
from gumbel_mpnn.data.generated import LEAF_COUNT_DEPTHS, MATCH_DEPTHS
from gumbel_mpnn.data.tasks.forest import full_tree
from gumbel_mpnn.paper.base import Job, figures, published
from gumbel_mpnn.paper.page import RESULTS, Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.trees import RewiredTree, draw_rewired_tree
from gumbel_mpnn.runs import Run

DEPTHS: Mapping[str, int] = {**LEAF_COUNT_DEPTHS, **MATCH_DEPTHS}
PAPER = "leaf-count"
"""The task that the paper reports."""
SDRF_OF_EACH_TREE = SDRFOfEachGraph()


class LongRange(Experiment):
    """A GCN with too few layers, one with enough, and with few layers also SDRF (LeafCount only) and Gumbel-MPNN."""

    name = "long-range"
    percent = (*RESULTS, "chance")
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
        """Return jobs for each task, with enough layers for two hops per layer and for one hop per layer.

        SDRF is a GCN on trees that SDRF has rewired, each on its own.
        """
        return [
            Job(dataset, model, overrides=(f"model.num_layers={layers}",), transform=transform)
            for dataset in self.datasets
            for few, enough in [_layers(dataset)]
            for model, layers, transform in (
                ("gcn", few, None),
                ("gcn", enough, None),
                *([("gcn", few, SDRF_OF_EACH_TREE)] if dataset in LEAF_COUNT_DEPTHS else []),
                ("gumbel-mpnn", few, None),
            )
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each task and model."""
        return [_row(job, run) for job, run in results.items() if run is not None]

    def draw(self, rows: Sequence[Row], runs: Sequence[Run], root: Path | None, paths: Sequence[Path]) -> bool:
        """Draw a tree of LeafCount before and after rewiring, if its learned graph is stored."""
        rewired = [run for run in runs if run.settings.dataset == PAPER and run.settings.rewiring is not None]
        for run in rewired:
            with suppress(DataError):  # the model and its graph were deleted
                draw_rewired_tree(RewiredTree(**run.stored("tree", partial(_first_test_tree, run))), paths)
                return True
        return False

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


def _first_test_tree(run: Run) -> dict[str, Any]:
    """Return the first test tree of the first run as it was learned, as plain values of a `RewiredTree`."""
    first, data = run.records[0], run.data
    root = int(data.test_mask[:, first.split].nonzero()[0])
    nodes = (data.batch == data.batch[root]).nonzero().squeeze(1)
    bits = data.x[nodes, -2:]
    parent, _ = full_tree(int(bits.sum()))
    edges = replace(run, records=(first,)).rewire().edge_index.T - nodes[0]  # the nodes of a tree are consecutive
    inside = ((edges >= 0) & (edges < len(nodes))).all(1) & (edges[:, 0] < edges[:, 1])
    return asdict(
        RewiredTree(
            parent=parent.tolist(),
            bits=[int(bit) if is_leaf else -1 for is_leaf, bit in zip(bits.sum(1), bits[:, 1], strict=True)],
            edges=edges[inside].tolist(),
        )
    )


def _row(job: Job, run: Run) -> Row:
    layers, model = run.settings.options["num_layers"], job.model if job.transform is None else "sdrf"
    paper = published("long-range").get(model, {}).get(str(layers)) if job.dataset == PAPER else None
    return {
        "dataset": job.dataset,
        "depth": DEPTHS[job.dataset],
        "model": model,
        "layers": layers,
        **figures(run),
        "chance": 100 / (int(run.data.y.max()) + 1),
        "paper": paper,
        "to_paper": None if paper is None else 100 * run.test.mean - paper,
    }
