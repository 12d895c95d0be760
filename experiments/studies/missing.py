"""Graphs with missing edges, and tables without any."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch_geometric.data import Data

from experiments.charts import Chart
from experiments.experiment import PLAIN, Experiment, Job, Results
from experiments.rows import MODEL_NAMES, lines_of, paragraphs
from experiments.studies.compared import (
    HEADINGS,
    OURS,
    Case,
    best_in_each,
    compared,
    gains,
    jobs_of,
    table_of,
    table_of_cases,
    tests_of,
)
from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.report import Row
from gumbel_mpnn.util import counted

DATASETS = ("cora", "citeseer", "pubmed")
TABLES = ("wine", "breast-cancer", "digits")
"""Tables that come with scikit-learn, without edges."""
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
MODELS = (*PLAIN, "drop-edge", "knn", *OURS)


@dataclass(frozen=True)
class WithoutEdges:
    """Transform that removes a share of the edges at random; a larger share removes the same edges and more."""

    share: float

    @property
    def name(self) -> str:
        """Name for `--only`."""
        return f"without-{self.share:g}"

    def __call__(self, data: Data) -> Data:
        """Return a copy in which both directions of an edge are removed together."""
        edges = undirected_edges(data)
        order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(0))
        left = edges[:, order[round(self.share * edges.shape[1]) :].sort().values]
        out = copy.copy(data)
        out.num_nodes = data.num_nodes
        out.edge_index = torch.cat([left, left.flip(0)], dim=1)
        return out


class Missing(Experiment):
    """Test accuracy if 10 to 90 % of the edges are missing, in training and at test time."""

    name = "missing"
    title = "Missing edges"
    headings: Mapping[str, str] = {**HEADINGS, "removed": "edges removed, %"}
    charts = tuple(Chart("removed", "edges removed, %", name, where={"dataset": (name,)}) for name in DATASETS)

    def plan(self) -> list[Job]:
        """Return jobs of all models on each graph without some of its edges."""
        return [
            job
            for dataset in DATASETS
            for share in SHARES
            for job in jobs_of(MODELS, dataset, transform=WithoutEdges(share))
        ]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on one graph without half of its edges."""
        return list(jobs_of(MODELS, DATASETS[0], transform=WithoutEdges(0.5)))

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each graph, share of removed edges and model."""
        return compared(best_in_each(results, _case))

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the results in each case, means over the shares of removed edges, and the verdicts of our models."""
        means = {
            key: fmean(tests.values()) if len(tests) == len(SHARES) else None
            for key, tests in tests_of(rows, "removed").items()
        }
        return paragraphs(
            table_of_cases(rows, ("dataset", "removed"), MODELS),
            table_of("Mean over all shares", means, MODELS),
            lines_of(gains(rows)),
        )


class NoGraph(Experiment):
    """Test accuracy without edges: what a model makes of features alone."""

    name = "no-graph"
    title = "Features alone"
    headings: Mapping[str, str] = HEADINGS

    def plan(self) -> list[Job]:
        """Return jobs of an MLP, kNN-GCN, Gumbel-MPNN, `auto` and controls on graphs without edges and on tables."""
        return [job for dataset in (*DATASETS, "blogcatalog", *TABLES) for job in self._jobs(dataset)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on a graph and on a table."""
        return [job for dataset in (DATASETS[0], TABLES[0]) for job in self._jobs(dataset)]

    def _jobs(self, dataset: str) -> Iterator[Job]:
        models = ("mlp", "knn", *OURS)
        if dataset in TABLES:
            return jobs_of(models, dataset, data=("data.features=standardized",))
        return jobs_of(models, dataset, transform=WithoutEdges(1.0))

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each data set and model."""
        return compared(best_in_each(results, lambda job: (("dataset", job.dataset),)))

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the results on each data set, and how often our models are above both the MLP and kNN-GCN."""
        sentences = [*gains(rows, "data set"), *(_above_both(model, rows) for model in ("gumbel-mpnn", "auto"))]
        return paragraphs(table_of_cases(rows, ("dataset",), MODELS), lines_of(sentences))


def _above_both(model: str, rows: Sequence[Row]) -> str:
    """Return how often a model is above the better of MLP and kNN-GCN."""
    tests = tests_of(rows)
    errors = {str(row["dataset"]): float(row["stderr"] or 0) for row in rows if row["model"] == model}
    leads = {
        dataset: tests[dataset, model][()] - max(tests[dataset, other][()] for other in ("mlp", "knn"))
        for dataset in errors
        if all((dataset, name) in tests for name in (model, "mlp", "knn"))
    }
    above = sum(lead > 0 for lead in leads.values())
    below = sum(lead < -errors[dataset] for dataset, lead in leads.items())
    return (
        f"{MODEL_NAMES[model]} is above both MLP and kNN-GCN on {above} of {counted(len(leads), 'data set')}, and below"
        f" the better of them by more than its standard error on {below}."
        if leads
        else ""
    )


def _case(job: Job) -> Case:
    assert isinstance(job.transform, WithoutEdges)
    return ("dataset", job.dataset), ("removed", round(100 * job.transform.share))
