"""Graphs with missing edges, and tables without any."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.data.generated import TABLES
from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.paper.base import Job, differences
from gumbel_mpnn.paper.compared import (
    HEADINGS,
    OURS,
    PERCENT,
    PLAIN,
    Case,
    Entry,
    accuracy_chart,
    best_in_each,
    compared,
    jobs_of,
)
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.remarks import gains, remarks_of, table_of, tests_of, verdicts
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.runs import Run

DATASETS = ("cora", "citeseer", "pubmed")
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
        return list(_jobs(DATASETS[0], 0.5))

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each graph, share of removed edges and model."""
        return compared(best_in_each(results, _case))

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return verdicts of our models, and a table of means over the shares of removed edges."""
        figures: dict[tuple[str, str], tuple[float | None, ...]] = {}
        for key, tests in tests_of(rows, "removed").items():
            mean = fmean(tests.values()) if len(tests) == len(SHARES) else None
            figures[key] = (mean, tests.get((round(100 * SHARES[-1]),)))
        names = ("mean over all shares, %", f"{100 * SHARES[-1]:.0f} % of the edges removed")
        return remarks_of(gains(rows), table_of(names, figures))


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
        return [job for dataset in (DATASETS[0], TABLES[0]) for job in self._jobs(dataset)]

    def _jobs(self, dataset: str) -> Iterator[Job]:
        models = ("mlp", "knn", *OURS)
        if dataset in TABLES:
            return jobs_of(models, dataset, data=("data.features=standardized",))
        return jobs_of(models, dataset, transform=WithoutEdges(1.0))

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each data set and model."""
        return compared(best_in_each(results, _dataset))

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return verdicts of our models, and on how many data sets they are above both the MLP and kNN-GCN."""
        lines = gains(rows, "data set")
        for model in ("gumbel-mpnn", "auto"):
            lines += _above_both(model, best_in_each(results, _dataset))
        return remarks_of(lines)


def _jobs(dataset: str, share: float) -> Iterator[Job]:
    return jobs_of(MODELS, dataset, transform=WithoutEdges(share))


def _dataset(job: Job) -> Case:
    return (("dataset", job.dataset),)


def _above_both(model: str, cases: Mapping[Case, Mapping[str, Entry | None]]) -> list[str]:
    """Return how often a model is above the better of MLP and kNN-GCN, and the verdicts of paired tests."""
    pairs: dict[Case, tuple[Run, Run]] = {}
    for case, entries in cases.items():
        ours, *others = (entries.get(name) for name in (model, "mlp", "knn"))
        runs = [entry.run for entry in others if entry is not None]
        if ours is not None and len(runs) == len(others):
            pairs[case] = (ours.run, max(runs, key=lambda run: run.test.mean))
    if not pairs:
        return []
    leads = [(ours.test.mean - other.test.mean, ours.test.stderr) for ours, other in pairs.values()]
    above, below = (sum(lead > 0 for lead, _ in leads), sum(lead < -error for lead, error in leads))
    name, tested = MODEL_NAMES[model], list(differences(pairs).values())
    return [
        f"{name} is above both MLP and kNN-GCN on {above} of {counted(len(leads), 'data set')}, and below the better of"
        f" them by more than its standard error on {below}.",
        verdicts(name, "the better of MLP and kNN-GCN", tested, noun="data set"),
    ]


def _case(job: Job) -> Case:
    assert isinstance(job.transform, WithoutEdges)
    return ("dataset", job.dataset), ("removed", round(100 * job.transform.share))
