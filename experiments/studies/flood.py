"""Floods of random edges at test time, for models that were trained without them, and for models trained with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from experiments.charts import Chart
from experiments.experiment import Experiment, Job, Results
from experiments.paper.noise import scores_with_noise
from experiments.rows import lines_of, paragraphs
from experiments.studies.compared import (
    HEADINGS,
    MODELS,
    Case,
    Entry,
    best_in_each,
    compared,
    gains,
    jobs_of,
    name_of,
    robust_jobs,
    table_of,
    table_of_cases,
    tests_of,
    variant_of,
)
from gumbel_mpnn.data import add_noise_edges
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

DATASETS = ("cora", "citeseer", "pubmed")
COUNTS = (0, 100, 500, 1_000, 3_000, 10_000, 25_000, 50_000)
"""Numbers of random edges at test time, each at a test node."""
TRAINED_COUNTS = (10_000, 50_000)
"""Numbers of random edges that models are also trained with."""
CLEAN, FLOODED = "without random edges", "with the random edges"
SHOWN = ("mlp", "gcn", "sage", "jaccard", "gnn-guard", "frozen", "gumbel-mpnn", "auto", "robust", "robust, frozen")
"""Models in the table for people."""
COUNTS_SHOWN = (0, 1_000, 10_000, 50_000)
"""Numbers of random edges there."""


@dataclass(frozen=True)
class Flooded:
    """Transform that adds this number of random edges, which end at any node."""

    count: int

    @property
    def name(self) -> str:
        """Name for `--only`."""
        return f"flooded-{self.count}"

    def __call__(self, data: Data) -> Data:
        """Return a copy with both directions of each new edge."""
        return add_noise_edges(data, self.count, nodes=torch.arange(len(data.y)))


class Flood(Experiment):
    """Test accuracy with up to 50,000 random edges: plain models, defenses, Gumbel-MPNN, `auto` and controls."""

    name = "flood"
    title = "Floods of random edges"
    headings: Mapping[str, str] = {**HEADINGS, "trained": "trained", "edges": "random edges"}
    measured = f"flood-{'-'.join(map(str, COUNTS))}"
    charts = tuple(
        Chart(
            "edges",
            "random edges added at test nodes",
            f"{dataset}, trained without them",
            where={"dataset": (dataset,), "trained": (CLEAN,)},
            log_x=True,
        )
        for dataset in DATASETS
    )

    def plan(self) -> list[Job]:
        """Return jobs of all models on each graph, without random edges and with some."""
        flooded = [jobs_of(MODELS, dataset, transform=Flooded(n)) for dataset in DATASETS for n in TRAINED_COUNTS]
        return [*chain.from_iterable(map(_clean_jobs, DATASETS)), *chain.from_iterable(flooded)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on one graph, of which two with random edges in training."""
        flooded = jobs_of(("gcn", "gumbel-mpnn"), DATASETS[0], transform=Flooded(TRAINED_COUNTS[0]))
        return [*_clean_jobs(DATASETS[0]), *flooded]

    def measures(self, job: Job) -> bool:
        """Models that are trained with random edges are tested with these alone, so that records are enough."""
        return job.transform is None

    def measure(self, run: Run) -> dict[str, dict[str, list[float]]]:
        """Return the test and validation metrics of every run by the number of random edges."""
        clean = {part: [getattr(record, f"{part}_or_nan") for record in run.records] for part in ("test", "val")}
        return {
            part: {str(count): list(scores_with_noise(run, count, part)) if count else clean[part] for count in COUNTS}
            for part in clean
        }

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each graph, kind of training, number of random edges and model.

        The p-values of a model are corrected for the number of cases on a graph.
        """
        clean = {job: run for job, run in results.items() if job.transform is None}
        flooded = {job: run for job, run in results.items() if job.transform is not None}
        return compared(self._with_noise(clean) | best_in_each(flooded, _flooded_case), within="dataset")

    def _with_noise(self, results: Results) -> dict[Case, dict[str, Entry | None]]:
        """Return the entries of every number of edges; variants are chosen once, on validation nodes with noise."""
        found: dict[tuple[str, str], list[tuple[str, Run, Any]]] = {}
        for job, run in results.items():
            variants = found.setdefault((job.dataset, name_of(job)), [])
            if run is not None:
                variants.append((variant_of(job), run, self.kept(run)))
        cases: dict[Case, dict[str, Entry | None]] = {}
        for dataset in dict.fromkeys(dataset for dataset, _ in found):
            for count in COUNTS:
                case = (("dataset", dataset), ("trained", CLEAN), ("edges", count))
                cases[case] = {
                    name: _at(count, *max(variants, key=_mean_on_validation)) if variants else None
                    for (of, name), variants in found.items()
                    if of == dataset
                }
        return cases

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the results of some models in some cases, how far they are below an MLP, and the verdicts of ours."""
        tests = tests_of([row for row in rows if row["trained"] == CLEAN], "edges")
        to_mlp: dict[tuple[str, str], float | None] = {}
        for (dataset, model), mine in tests.items():
            mlp = tests.get((dataset, "mlp"), {})
            to_mlp[dataset, model] = min((test - mlp[n] for n, test in mine.items() if n in mlp), default=None)
        some = [row for row in rows if row["edges"] in COUNTS_SHOWN]
        return paragraphs(
            table_of_cases(some, ("dataset", "trained", "edges"), SHOWN),
            table_of("Lowest difference to the MLP over all numbers of random edges", to_mlp, SHOWN),
            lines_of(gains(rows)),
        )


def _clean_jobs(dataset: str) -> Iterator[Job]:
    """Yield the jobs without random edges in training."""
    yield from jobs_of(MODELS, dataset)
    yield from robust_jobs(dataset)


def _flooded_case(job: Job) -> Case:
    assert isinstance(job.transform, Flooded)
    return ("dataset", job.dataset), ("trained", FLOODED), ("edges", job.transform.count)


def _mean_on_validation(variant: tuple[str, Run, Any]) -> float:
    """Mean validation metric over all numbers of noise edges."""
    return fmean(fmean(values) for values in variant[2]["val"].values())


def _at(count: int, variant: str, run: Run, scores: Mapping[str, Mapping[str, list[float]]]) -> Entry:
    """Return the runs with their metrics at a number of noise edges in place of those without noise."""
    return Entry.of(run, variant).with_results(scores["test"][str(count)], scores["val"][str(count)])
