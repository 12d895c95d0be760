"""Floods of random edges at test time, for models that were trained without them, and for models trained with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.tasks import add_noise_edges
from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.paper.compared import (
    HEADINGS,
    MODELS,
    PERCENT,
    Case,
    Entry,
    accuracy_chart,
    best_in_each,
    compared,
    jobs_of,
    name_of,
    robust_jobs,
    variant_of,
)
from gumbel_mpnn.paper.noise import scores_with_noise
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.remarks import gains, remarks_of, table_of, tests_of
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

DATASETS = ("cora", "citeseer", "pubmed")
COUNTS = (0, 100, 500, 1_000, 3_000, 10_000, 25_000, 50_000)
"""Numbers of random edges at test time, each at a test node."""
TRAINED_COUNTS = (10_000, 50_000)
"""Numbers of random edges that models are also trained with."""
CLEAN, FLOODED = "without random edges", "with the random edges"


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

    of_paper = False
    name = "flood"
    title = "Floods of random edges"
    percent = PERCENT
    headings: Mapping[str, str] = {**HEADINGS, "trained": "trained", "edges": "random edges"}
    from_models = f"flood-{'-'.join(map(str, COUNTS))}"
    charts = tuple(
        accuracy_chart(
            "edges",
            "random edges added at test nodes",
            f"{dataset}, trained without them",
            log_x=True,
            dataset=(dataset,),
            trained=(CLEAN,),
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

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each graph, kind of training, number of random edges and model.

        The p-values of a model are corrected for the number of cases on a graph.
        """
        clean = {job: run for job, run in results.items() if job.transform is None}
        flooded = {job: run for job, run in results.items() if job.transform is not None}
        return compared(self._with_noise(clean) | best_in_each(flooded, _flooded_case), within="dataset")

    def needed_from(self, job: Job) -> str:
        """Return `from_models` for jobs without random edges in training; records of the others are enough."""
        return self.from_models if job.transform is None else ""

    def measure(self, run: Run) -> dict[str, dict[str, list[float]]]:
        """Return the test and validation metrics of every run by the number of random edges."""
        clean = {part: [getattr(record, f"{part}_or_nan") for record in run.records] for part in ("test", "val")}
        return {
            part: {str(count): list(scores_with_noise(run, count, part)) if count else clean[part] for count in COUNTS}
            for part in clean
        }

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return verdicts of our models, and a table of the lowest results of models trained without random edges."""
        tests = tests_of([row for row in rows if row["trained"] == CLEAN], "edges")
        figures: dict[tuple[str, str], tuple[float | None, ...]] = {}
        for (dataset, model), mine in tests.items():
            gcn, mlp = (tests.get((dataset, other), {}) for other in ("gcn", "mlp"))
            to_mlp = [test - mlp[edges] for edges, test in mine.items() if edges in mlp]
            to_gcn = mine[0,] - gcn[0,] if gcn else None
            figures[dataset, model] = (mine[0,], to_gcn, min(mine.values()), min(to_mlp, default=None))
        names = ("no random edges, %", "less GCN", "lowest of all numbers, %", "lowest difference to MLP")
        return remarks_of(gains(rows), table_of(names, figures))

    def _with_noise(self, results: Mapping[Job, Run | None]) -> dict[Case, dict[str, Entry | None]]:
        """Return the entries of every number of edges; variants are chosen once, on validation nodes with noise."""
        found: dict[tuple[str, str], list[tuple[str, Run, Any]]] = {}
        for job, run in results.items():
            variants = found.setdefault((job.dataset, name_of(job)), [])
            if run is not None:
                variants.append((variant_of(job), run, self.taken(run)))
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
