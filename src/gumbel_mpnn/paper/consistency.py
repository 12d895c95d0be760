"""Consistency of the neighborhoods of a class before and after rewiring: their spread and number of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.measures import decompose, std_per_class
from gumbel_mpnn.paper.base import (
    PAPER_DATASETS,
    PAPER_PRESETS,
    STRUCTURE_DATASETS,
    UNFILTERED,
    Columns,
    Job,
    published,
)
from gumbel_mpnn.paper.mixtures import PAPERS
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.paper.structure import (
    GIVEN,
    HEADINGS,
    LEARNED,
    SAMPLE,
    Measured,
    by_dataset,
    over_runs,
    paper_jobs,
    published_learned,
    row_of,
    sample,
    with_spread,
)
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import BusyError, Run

MEASURED = {"std": "std per class", "clusters": "clusters"}
COLUMNS = (*with_spread(MEASURED), "n", "clustered", "paper_std", "paper_clusters")
OF_GIVEN = f"consistency-of-given-{SAMPLE}-{PAPERS:.0e}"
"""Name under which the measures of the given graph are stored with the runs of its first job."""


class Consistency(Experiment):
    """Std per class and clusters of a Gaussian mixture, for the given and the learned graphs."""

    name = "consistency"
    title = "Neighborhoods within a class before and after rewiring"
    percent = ()
    headings: Mapping[str, str] = {
        **HEADINGS,
        **with_spread(MEASURED),
        "clustered": "of them clustered",
        "paper_std": "paper's std",
        "paper_clusters": "paper's clusters",
    }
    digits = 4
    from_models = f"consistency-of-runs-{SAMPLE}-{PAPERS:.0e}"

    def plan(self) -> list[Job]:
        """Return the jobs of Gumbel-MPNN with tuned settings and with the paper's presets.

        The paper uses the unfiltered Squirrel and Chameleon.
        """
        tuned = [Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in (*PAPER_DATASETS, *UNFILTERED)]
        return [*tuned, *paper_jobs(STRUCTURE_DATASETS)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return rows for the given graph of each data set and for the graphs learned from it."""
        return [row for dataset, runs in by_dataset(results).items() for row in self._rows(dataset, runs)]

    def measure(self, run: Run) -> list[Measured]:
        """Measure the graph of each run with the labels of all nodes, including test nodes; nothing is trained.

        The graphs of a few runs are clustered, each with another seed. Learned graphs list both directions of an edge,
        if both are learned, so that neighbors are the nodes whose messages arrive.
        """
        seeds = {record.replica: seed for seed, record in enumerate(sample(run.records))}
        measured: list[Measured] = []
        for record, graph in zip(run.records, run.graphs(), strict=True):
            seed = seeds.get(record.replica)
            clusters = None if seed is None else _clusters(graph, seed, directed=True)
            measured.append({"std": std_per_class(graph, directed=True), "clusters": clusters})
        return measured

    def take(self, job: Job, run: Run) -> None:
        """Store the measures of the learned graphs and, with the first job of each data set, of the given graph."""
        super().take(job, run)
        if job.preset not in PAPER_PRESETS:
            with suppress(BusyError):
                _given(run, wait=False)

    def numbers(self) -> list[PaperNumber]:
        """Return the numbers of learned graphs; those of given graphs belong to `measures` and `mixtures`."""
        return published_learned("consistency", MEASURED)

    def _rows(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        learned = published("consistency").get(dataset, {})
        before = {
            "paper_std": published("measures").get(dataset, {}).get("std_per_class"),
            "paper_clusters": published("mixtures").get(dataset, {}).get("components"),
        }
        after = {"paper_std": learned.get("std"), "paper_clusters": learned.get("clusters")}
        if not runs:
            pairs = ((GIVEN, before), (LEARNED, after))
            return [row_of(dataset, f"{graph}: no data", paper, COLUMNS) for graph, paper in pairs]
        rows = [row_of(dataset, GIVEN, _given(next(iter(runs.values()))) | before, COLUMNS)]
        for job, run in runs.items():
            paper = after if job.preset in PAPER_PRESETS else {}
            rows.append(row_of(dataset, LEARNED, _learned(self.taken(run)) | paper, COLUMNS, job))
        return rows


def _given(run: Run, wait: bool = True) -> Columns:
    """Return the measures of the given graph; its clusters are a mean over as many seeds as runs are clustered."""
    measured: dict[str, Any] = run.stored(OF_GIVEN, partial(_measure_given, run.data), wait=wait)
    clusters: list[Measured] = [{"clusters": count} for count in measured["clusters"]]
    return {"std": measured["std"], **over_runs(clusters, counts=["clusters"])}


def _measure_given(graph: Data) -> dict[str, Any]:
    return {"std": std_per_class(graph), "clusters": [_clusters(graph, seed) for seed in range(SAMPLE)]}


def _learned(measured: list[Measured]) -> Columns:
    clustered = sum(each["clusters"] is not None for each in measured)
    return {**over_runs(measured, counts=["clusters"]), "n": len(measured), "clustered": clustered}


def _clusters(graph: Data, seed: int, directed: bool = False) -> int:
    return decompose(graph, seeds=[seed], directed=directed, reg_covar=PAPERS, cache=True).total
