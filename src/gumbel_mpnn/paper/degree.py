"""Degree as a goal: the mean degree of the given graph plus 5, compared with that of the learned graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import fmean

import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import MEASURES, measure
from gumbel_mpnn.paper.base import STRUCTURE_DATASETS, Job, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber, of_learned_graphs
from gumbel_mpnn.report import Row
from gumbel_mpnn.rewiring.regularizers.degree import ABOVE_MEAN
from gumbel_mpnn.runs import Run

GOAL = ("rewiring.regularizer=degree", "rewiring.regularizer_weight=1.0", "rewiring.target_degree=0")
"""The weight is high: a node that lacks five neighbors adds 25 to a cross-entropy of about 1."""
MEASURED = ("degree_min", "degree_mean", "degree_max")
COLUMNS = (*MEASURED, "goal", "best_epoch", "test", "n")


class DegreeGoal(Experiment):
    """Degrees of the given and of the learned graph, and the published ones."""

    name = "degree"
    title = "Learning a mean degree that is higher by five"
    headings: Mapping[str, str] = {
        "degree_min": "min degree",
        "degree_mean": "mean degree",
        "degree_max": "max degree",
        "goal": "goal for the mean",
        "best_epoch": "epoch that validation chose",
    }
    from_models = "degree"

    def plan(self) -> list[Job]:
        """Return jobs with the paper's preset and the degree as the regularizer."""
        return [
            Job(dataset, "gumbel-mpnn", "paper", experiment=self.name, overrides=GOAL) for dataset in STRUCTURE_DATASETS
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return rows for the given graph, the learned graph, the expected degrees, and the paper's two graphs."""
        return [row for job, run in results.items() for row in _rows(job.dataset, run)]

    def numbers(self) -> list[PaperNumber]:
        """Return the degrees of learned graphs; those of given graphs belong to `measures`."""
        return of_learned_graphs("degree", {name: known.heading for name, known in MEASURES.items()})


def _rows(dataset: str, run: Run | None) -> list[Row]:
    given, learned = published("measures").get(dataset, {}), published("degree").get(dataset, {})
    rows = []
    if run is None:
        rows.append(_row(dataset, "no data", {}))
    else:
        before = measure(run.data, MEASURED)
        goal = float(before["degree_mean"] or 0) + ABOVE_MEAN
        rows.append(_row(dataset, "given", before))
        chosen = fmean(record.best_epoch for record in run.records)
        known = {"goal": goal, "best_epoch": chosen, "test": 100 * run.test.mean, "n": run.n}
        degrees = run.stored(DegreeGoal.from_models, partial(_degrees, run))
        rows += [_row(dataset, graph, {**values, **known}) for graph, values in degrees.items()]
    return [*rows, _row(dataset, "given, paper", given), _row(dataset, "learned, paper", learned)]


def _degrees(run: Run) -> dict[str, dict[str, int | float | None]]:
    graph = run.rewire(threshold=0.0)
    return {"learned": measure(_likely(graph), MEASURED), "expected": _expected_degrees(graph)}


def _likely(graph: Data) -> Data:
    """Return the graph of all edges with a probability above 0.5."""
    return Data(edge_index=graph.edge_index[:, graph.edge_probability > 0.5], num_nodes=graph.num_nodes)


def _expected_degrees(graph: Data) -> dict[str, int | float | None]:
    """Return expected degrees, which are sums of edge probabilities."""
    degree = torch.zeros(int(graph.num_nodes or 0)).index_add(0, graph.edge_index[1], graph.edge_probability)
    return dict(zip(MEASURED, (float(degree.min()), float(degree.mean()), float(degree.max())), strict=True))


def _row(dataset: str, graph: str, values: Mapping[str, int | float | None]) -> Row:
    return {"dataset": dataset, "graph": graph, **{name: values.get(name) for name in COLUMNS}}
