"""Graphs with missing edges, and tables without any."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.generated import TABLES
from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.paper.base import Job, quickened
from gumbel_mpnn.paper.compared import (
    HEADINGS,
    OURS,
    PERCENT,
    PLAIN,
    Case,
    accuracy_chart,
    best_in_each,
    compared,
    jobs_of,
)
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

DATASETS = ("cora", "citeseer", "pubmed")
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
MODELS = (*PLAIN, "drop-edge", "knn", *OURS)


@dataclass(frozen=True)
class WithoutEdges:
    """Transform that removes a share of the edges at random; a larger share removes the same edges and more."""

    share: float

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

    of_paper = False
    name = "missing"
    title = "Missing edges"
    percent = (*PERCENT, "removed")
    headings: Mapping[str, str] = {**HEADINGS, "removed": "edges removed, %"}
    charts = tuple(accuracy_chart("removed", "edges removed, %", name, dataset=(name,)) for name in DATASETS)

    def plan(self) -> list[Job]:
        """Return jobs of all models on each graph without some of its edges."""
        return [job for dataset in DATASETS for share in SHARES for job in _jobs(dataset, share)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on one graph without half of its edges."""
        return [quickened(job) for job in _jobs(DATASETS[0], 0.5)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each graph, share of removed edges and model."""
        return compared(best_in_each(results, _case))


class NoGraph(Experiment):
    """Test accuracy without edges: what a model makes of features alone."""

    of_paper = False
    name = "no-graph"
    title = "Features alone"
    percent = PERCENT
    headings: Mapping[str, str] = HEADINGS

    def plan(self) -> list[Job]:
        """Return jobs of an MLP, kNN-GCN, Gumbel-MPNN, `auto` and controls on graphs without edges and on tables."""
        return [job for dataset in (*DATASETS, "blogcatalog", *TABLES) for job in self._jobs(dataset)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on a graph and on a table."""
        return [quickened(job) for dataset in (DATASETS[0], TABLES[0]) for job in self._jobs(dataset)]

    def _jobs(self, dataset: str) -> Iterator[Job]:
        models = ("mlp", "knn", *OURS)
        if dataset in TABLES:
            return jobs_of(models, dataset, data=("data.features=standardized",))
        return jobs_of(models, dataset, transform=WithoutEdges(1.0))

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each data set and model."""
        return compared(best_in_each(results, lambda job: (("dataset", job.dataset),)))


def _jobs(dataset: str, share: float) -> Iterator[Job]:
    return jobs_of(MODELS, dataset, transform=WithoutEdges(share))


def _case(job: Job) -> Case:
    assert isinstance(job.transform, WithoutEdges)
    return ("dataset", job.dataset), ("removed", round(100 * job.transform.share))
