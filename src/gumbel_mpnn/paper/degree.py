"""Degree as a goal: the mean degree of the given graph plus 5, compared with that of the learned graph."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from torch_geometric.data import Data

from gumbel_mpnn.measures import MEASURES, measure
from gumbel_mpnn.paper.base import STRUCTURE_DATASETS, Job, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.paper.structure import (
    GIVEN,
    HEADINGS,
    LEARNED,
    Measured,
    by_dataset,
    over_runs,
    paper_jobs,
    published_learned,
    row_of,
    with_spread,
)
from gumbel_mpnn.report import Row
from gumbel_mpnn.rewiring.regularizers.degree import ABOVE_MEAN
from gumbel_mpnn.runs import Run

GOAL = ("rewiring.regularizer=degree", "rewiring.regularizer_weight=1.0", "rewiring.target_degree=0")
"""The weight is high: a node that lacks five neighbors adds 25 to a cross-entropy of about 1."""
DEGREES = ("degree_min", "degree_mean", "degree_max")
MEASURED = with_spread({name: MEASURES[name].heading for name in DEGREES} | {"expected": "expected mean degree"})
COLUMNS = (*MEASURED, "goal", "best_epoch", "test", "n")


class DegreeGoal(Experiment):
    """Degrees of the given and of the learned graphs, and the published ones."""

    name = "degree"
    title = "Learning a mean degree that is higher by five"
    percent = ("test",)
    headings: Mapping[str, str] = {
        **HEADINGS,
        **MEASURED,
        "goal": "goal for the mean",
        "best_epoch": "number of the epoch",
    }
    from_models = "degree-of-runs"

    def plan(self) -> list[Job]:
        """Return jobs with the paper's presets and the degree as the regularizer."""
        return paper_jobs(STRUCTURE_DATASETS, self.name, GOAL)

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return rows for the given graph, for the learned graphs, and for the paper's two graphs."""
        return [row for dataset, runs in by_dataset(results).items() for row in self._rows(dataset, runs)]

    def measure(self, run: Run) -> list[Measured]:
        """Return the degrees of the graph of each run."""
        return [_degrees_of(graph) for graph in run.graphs(threshold=0.0)]

    def numbers(self) -> list[PaperNumber]:
        """Return the degrees of learned graphs; those of given graphs belong to `measures`."""
        return published_learned("degree", {name: MEASURES[name].heading for name in DEGREES})

    def _rows(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        before = next((measure(run.data, DEGREES) for run in runs.values()), {})
        papers = {"given, paper": published("measures"), "learned, paper": published("degree")}
        return [
            row_of(dataset, GIVEN if runs else "no data", before, COLUMNS),
            *(row_of(dataset, LEARNED, self._learned(job, run, before), COLUMNS, job) for job, run in runs.items()),
            *(row_of(dataset, graph, table.get(dataset, {}), COLUMNS) for graph, table in papers.items()),
        ]

    def _learned(self, job: Job, run: Run, before: Measured) -> Row:
        return {
            **over_runs(self.taken(run), counts=["degree_min", "degree_max"]),
            "goal": float(before["degree_mean"] or 0) + ABOVE_MEAN,
            "best_epoch": fmean(record.best_epoch for record in run.records),
            "test": 100 * run.test.mean,
            "n": run.n,
        }


def _degrees_of(graph: Data) -> Measured:
    """Return degrees by all pairs of a graph: of edges with a probability of at least one half, and expected.

    A degree is the number of edges to a node. The expected one is the sum of their probabilities.
    """
    nodes = int(graph.num_nodes or 0)
    likely = graph.edge_probability >= 0.5
    degree = graph.edge_index[1, likely].bincount(minlength=nodes)
    return {
        "degree_min": int(degree.min()),
        "degree_mean": float(degree.double().mean()),
        "degree_max": int(degree.max()),
        "expected": float(graph.edge_probability.double().sum()) / nodes,
    }
