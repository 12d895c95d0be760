"""Poisoned graphs: models trained on edges that an attack has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from experiments.attacked import ATTACKS, META, NETTACK
from experiments.charts import Chart
from experiments.experiment import Experiment, Job, Results
from experiments.published import published
from experiments.rows import Columns, lines_of, paragraphs
from experiments.studies.compared import (
    HEADINGS,
    MODELS,
    POSITIONS,
    WARY,
    WITH_POSITIONS,
    Case,
    best_in_each,
    compared,
    gains,
    jobs_of,
    robust_jobs,
    table_of,
    table_of_cases,
    tests_of,
    with_either,
)
from gumbel_mpnn.report import Row

DATASETS = ("attacked-cora", "attacked-citeseer", "attacked-polblogs")
WITHOUT_FEATURES = ("attacked-polblogs",)
CLEAN = "clean"
QUICK_ATTACKS = ("", "meta-0.25")
SEEDS = 10
"""The graphs have one split."""
OF_FEATURES = ("jaccard", "gnn-guard")
"""Models that compare features."""
AUTO_WITH_POSITIONS = f"auto{WITH_POSITIONS}"
DRAWN = ("mlp", "gcn", "sage", "jaccard", "gnn-guard", "auto", AUTO_WITH_POSITIONS)
"""Models in the figure, as many as there are colors."""
SHOWN = ("gcn", "jaccard", "gnn-guard", "frozen", "gumbel-mpnn", "auto", AUTO_WITH_POSITIONS, "auto-wary", "robust")
"""Models in the table for people."""
STRENGTHS_SHOWN = (0, 5, 15, 25, 3)
"""Strengths of attacks there: in per cent of the edges, or in edges for each target."""
BOTH_WAYS = ("auto-frozen", "auto")
"""`auto` after its control, which are also trained with positions among communities beside the features."""


class Poison(Experiment):
    """Test accuracy after metattack and nettack: plain models, known defenses, Gumbel-MPNN, `auto` and controls."""

    name = "poison"
    title = "Poisoned edges"
    headings: Mapping[str, str] = {
        **HEADINGS,
        "strength": "edges changed (share or per target)",
        "paper": "published %",
        "paper_pm": "±",
    }
    charts = tuple(
        Chart(
            "strength",
            "edges changed by metattack, %",
            dataset.removeprefix("attacked-"),
            where={"dataset": (dataset,), "attack": (CLEAN, "metattack"), "model": DRAWN},
        )
        for dataset in DATASETS
    )

    def plan(self) -> list[Job]:
        """Return jobs of all models on every graph; models that compare features are left out where there are none."""
        return [job for dataset in DATASETS for attack in ATTACKS for job in _jobs(dataset, attack)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on one graph, clean and after the strongest metattack."""
        return [job for attack in QUICK_ATTACKS for job in _jobs(DATASETS[0], attack)]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each graph, attack and model, and one for each published model that is not ours.

        The p-values of a model are corrected for the number of attacks on a graph.
        """
        known = published(self.name)
        cases = {case: with_either(entries) for case, entries in best_in_each(results, case_of).items()}
        rows: list[Row] = [{**row, **_published(known, row)} for row in compared(cases, within="dataset")]
        return rows + [row for case in cases for row in _only_published(known, case, rows)]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the results of some models in some cases, means over rates of metattack, and the verdicts of ours."""
        means: dict[tuple[str, str], float | None] = {}
        for key, tests in tests_of(rows, "attack", "strength").items():
            rates = [test for (attack, _), test in tests.items() if attack in (CLEAN, "metattack")]
            means[key] = fmean(rates) if len(rates) == 1 + len(META) else None
        some = [row for row in rows if row["strength"] in STRENGTHS_SHOWN]
        return paragraphs(
            table_of_cases(some, ("dataset", "attack", "strength"), SHOWN),
            table_of("Mean of the clean graph and all five rates of metattack", means, SHOWN),
            lines_of(gains(rows)),
        )


def _jobs(dataset: str, attack: str) -> Iterator[Job]:
    left_out = OF_FEATURES if dataset in WITHOUT_FEATURES else ()
    wary = WARY if attack in NETTACK else ()
    models = [model for model in MODELS if model not in left_out]
    jobs = [*jobs_of([*models, *wary], dataset, seeds=SEEDS)]
    if dataset not in WITHOUT_FEATURES:
        jobs += robust_jobs(dataset, seeds=SEEDS)
        jobs += jobs_of(BOTH_WAYS, dataset, data=(POSITIONS,), seeds=SEEDS)
    yield from (replace(job, attack=attack) for job in jobs)


def case_of(job: Job) -> Case:
    """Return the columns of a job: data set, kind of attack, and its strength."""
    kind, _, strength = job.attack.partition("-")
    if kind == "":
        kind, number = CLEAN, 0
    elif kind == "meta":
        kind, number = "metattack", round(100 * float(strength))
    else:
        number = int(strength)
    return ("dataset", job.dataset), ("attack", kind), ("strength", number)


def _published(known: Mapping[str, Any], row: Mapping[str, Any]) -> Columns:
    value, error = _of_case(known, row).get(row["model"], (None, None))
    return {"paper": value, "paper_pm": error}


def _only_published(known: Mapping[str, Any], case: Case, rows: list[Row]) -> Iterator[Row]:
    """Yield rows of published models that were not trained here."""
    like = next(row for row in rows if row.items() >= dict(case).items())
    trained = {row["model"] for row in rows}
    for model, (value, error) in _of_case(known, dict(case)).items():
        if model not in trained:
            yield {**dict.fromkeys(like), **dict(case), "model": model, "paper": value, "paper_pm": error}


def _of_case(known: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = known.get(case["dataset"], {}).get(f"{case['attack']}-{case['strength']}", {})
    return found
