"""Poisoned graphs: models trained on edges that an attack has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from gumbel_mpnn.data.attacked import META, NETTACK
from gumbel_mpnn.paper.base import Columns, Job, override, published
from gumbel_mpnn.paper.compared import (
    HEADINGS,
    MODELS,
    PERCENT,
    POSITIONS,
    WARY,
    WITH_POSITIONS,
    Case,
    accuracy_chart,
    best_in_each,
    compared,
    jobs_of,
    robust_jobs,
    with_either,
)
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.remarks import gains, remarks_of, table_of, tests_of
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

DATASETS = ("attacked-cora", "attacked-citeseer", "attacked-polblogs")
WITHOUT_FEATURES = ("attacked-polblogs",)
CLEAN = "clean"
ATTACKS = ("", *META, *NETTACK)
QUICK_ATTACKS = ("", "meta-0.25")
SEEDS = 10
"""The graphs have one split."""
OF_FEATURES = ("jaccard", "gnn-guard")
"""Models that compare features."""
SHOWN = ("mlp", "gcn", "sage", "jaccard", "gnn-guard", "auto", f"auto{WITH_POSITIONS}")
"""Models in the figure, as many as there are colors."""
BOTH_WAYS = ("auto-frozen", "auto")
"""`auto` after its control, which are also trained with positions among communities beside the features."""


class Poison(Experiment):
    """Test accuracy after metattack and nettack: plain models, known defenses, Gumbel-MPNN, `auto` and controls."""

    of_paper = False
    name = "poison"
    title = "Poisoned edges"
    percent = (*PERCENT, "paper", "paper_pm")
    headings: Mapping[str, str] = {
        **HEADINGS,
        "strength": "edges changed (share or per target)",
        "paper": "published %",
        "paper_pm": "±",
    }
    charts = tuple(
        accuracy_chart(
            "strength",
            "edges changed by metattack, %",
            dataset.removeprefix("attacked-"),
            dataset=(dataset,),
            attack=(CLEAN, "metattack"),
            model=SHOWN,
        )
        for dataset in DATASETS
    )

    def plan(self) -> list[Job]:
        """Return jobs of all models on every graph; models that compare features are left out where there are none."""
        return [job for dataset in DATASETS for attack in ATTACKS for job in self._jobs(dataset, attack)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on one graph, clean and after the strongest metattack."""
        return [job for attack in QUICK_ATTACKS for job in self._jobs(DATASETS[0], attack)]

    def _jobs(self, dataset: str, attack: str) -> Iterator[Job]:
        left_out = OF_FEATURES if dataset in WITHOUT_FEATURES else ()
        wary = WARY if attack in NETTACK else ()
        models = [model for model in MODELS if model not in left_out]
        data = (override("data.attack", attack),) if attack else ()
        yield from jobs_of([*models, *wary], dataset, data=data, seeds=SEEDS)
        if dataset not in WITHOUT_FEATURES:
            yield from robust_jobs(dataset, data=data, seeds=SEEDS)
            yield from jobs_of(BOTH_WAYS, dataset, data=(*data, POSITIONS), seeds=SEEDS)

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each graph, attack and model, and one for each published model that is not ours.

        The p-values of a model are corrected for the number of attacks on a graph.
        """
        known = published(self.name)
        cases = {case: with_either(entries) for case, entries in best_in_each(results, _case).items()}
        rows: list[Row] = [{**row, **_published(known, row)} for row in compared(cases, within="dataset")]
        return rows + [row for case in cases for row in _only_published(known, case, rows)]

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return verdicts of our models, and a table of means over the strengths of metattack and of strong attacks."""
        figures: dict[tuple[str, str], tuple[float | None, ...]] = {}
        for key, tests in tests_of(rows, "attack", "strength").items():
            rates = [test for (attack, _), test in tests.items() if attack in (CLEAN, "metattack")]
            mean = fmean(rates) if len(rates) == 1 + len(META) else None
            figures[key] = (mean, tests.get(("metattack", 25)), tests.get(("nettack", 5)))
        names = ("mean of clean and metattack, %", "metattack 25 %", "nettack 5")
        return remarks_of(gains(rows), table_of(names, figures))


def _case(job: Job) -> Case:
    """Return the columns of a job: data set, kind of attack, and its strength."""
    attack = next((each.partition("=")[2] for each in job.overrides if each.startswith("data.attack=")), "")
    kind, _, strength = attack.partition("-")
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
