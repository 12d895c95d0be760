"""Readings of the paper's models, compared by how near they come to its own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiments.experiment import PAPER_RUNS, PLAIN, TUNED_DATASETS, Experiment, Job, Results
from experiments.published import POINTS, published
from experiments.rows import MODEL_NAMES, Columns, figures, paragraphs
from gumbel_mpnn.report import Cell, Row, Table
from gumbel_mpnn.runs import Run, RunSpec

CHOSEN = "chosen"
"""The reading of `--preset paper`."""


@dataclass(frozen=True)
class Reading:
    """A reading of the paper: settings that override those of `--preset paper`."""

    name: str
    overrides: tuple[str, ...]
    residual: bool | None = None
    """Whether it applies to models with a residual, to models without one, or to both."""
    few_features: bool = True
    """Whether it applies to data sets with a handful of features."""
    candidates: tuple[str, ...] = ()
    """Candidate strategies of Gumbel-MPNN that it applies to; empty for readings of all models."""


ANY = ("local", "global", "two_hop", "ricci")


def _without_input_layer(name: str, *overrides: str, **applies: Any) -> tuple[Reading, Reading]:
    """Return a reading on top of models without an input layer: for models with a residual, and for the others."""
    return (
        Reading(name, ("model.shortcut=identity", "model.input_layer=false", *overrides), residual=True, **applies),
        Reading(name, ("model.input_layer=false", *overrides), residual=False, **applies),
    )


READINGS = (
    Reading(CHOSEN, ()),
    Reading("linear", ("model.shortcut=linear", "model.input_layer=false"), residual=True),
    Reading("inner", ("model.shortcut=inner", "model.input_layer=false"), residual=True),
    Reading("identity, input layer", ("model.shortcut=identity", "model.input_layer=true"), residual=True),
    Reading("input layer", ("model.input_layer=true",), residual=False),
    *_without_input_layer("no input layer"),
    *_without_input_layer("row-normalized", "data.features=row-normalized", few_features=False),
    *_without_input_layer("patience 20", "train.patience=20"),
    *_without_input_layer("2|E| pairs", "rewiring.candidates.pairs=0", candidates=("global",)),
    *_without_input_layer("2,000 pairs", "rewiring.candidates.pairs=2000", candidates=("global",)),
    *_without_input_layer("500 pairs", "rewiring.candidates.pairs=500", candidates=("global",)),
    *_without_input_layer("3 per node", "rewiring.candidates.per_node=3", candidates=("local", "two_hop")),
    *_without_input_layer("no offset by origin", "rewiring.origin=none", candidates=ANY),
    *_without_input_layer("thresholded", "rewiring.evaluation=threshold", candidates=ANY),
)
REWIRINGS = (
    Reading(CHOSEN, ()),
    Reading("2|E| pairs", ("rewiring.candidates.pairs=0",), candidates=("global",)),
    Reading("2,000 pairs", ("rewiring.candidates.pairs=2000",), candidates=("global",)),
    Reading("500 pairs", ("rewiring.candidates.pairs=500",), candidates=("global",)),
    Reading("3 per node", ("rewiring.candidates.per_node=3",), candidates=("local", "two_hop")),
    Reading("no candidates", ("rewiring.candidates=none",)),
    Reading("soft draws", ("rewiring.hard=false",)),
    Reading("no offset by origin", ("rewiring.origin=none",)),
    Reading("two sigmoids, no offset", ("rewiring.scorer.second_sigmoid=true", "rewiring.origin=none")),
    Reading("thresholded", ("rewiring.evaluation=threshold",)),
)
"""Readings of rewiring on top of the chosen reading of the other layers."""
LENGTHS = tuple(Reading(f"{epochs} epochs", (f"train.epochs={epochs}",)) for epochs in (100, 200, 400, 1000))
"""Readings of the number of epochs, which the paper does not give. Each names its number, whatever the presets have."""
USUAL = LENGTHS[-1].name
"""Length of data sets for which no other is clearly nearer to the paper."""
MARGIN = 0.5
"""Points by which another length must be nearer on average."""
UNDECIDED = "undecided"
REWIRED = "gumbel-mpnn"
FEW_FEATURES = ("minesweeper", "tolokers")


class Readings(Experiment):
    """Models with the paper's hyperparameters, read in several ways."""

    name = "readings"
    title = "How the paper's models are read"
    headings: Mapping[str, str] = {"paper": "paper %", "to_paper": "ours − paper"}
    searches = True
    readings: tuple[Reading, ...] = READINGS
    models: tuple[str, ...] = (*PLAIN, REWIRED)
    judged: tuple[str, ...] = PLAIN
    """Models whose distance to the paper is summed up."""

    def plan(self) -> list[Job]:
        """Return a job for every model and data set with every reading that applies to it."""
        return [
            Job(dataset, model, "paper", PAPER_RUNS, reading.overrides)
            for dataset in TUNED_DATASETS
            for model in self.models
            for reading in _applicable(self.readings, dataset, model)
        ]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each model, data set and reading."""
        paper = published("accuracy")
        names = {reading.overrides: reading.name for reading in self.readings}
        rows = [_row(job, names[job.overrides], run, paper[job.dataset][job.model][0]) for job, run in results.items()]
        distances = _distances(rows)
        least: dict[tuple[str, str], float] = {}
        for of_reading in distances.values():
            for key, distance in of_reading.items():
                least[key] = min(distance, least.get(key, distance))
        return [
            row | {"nearest": "nearest" if distances.get(str(row["reading"]), {}).get(key) == least.get(key, 0) else ""}
            for row in rows
            for key in [_key(row)]
        ]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a table of readings: their distance to the paper, and that of the chosen one on the same rows."""
        by_reading = _distances(row for row in rows if row["model"] in self.judged)
        chosen = by_reading.get(CHOSEN, {})
        lines: list[list[Cell]] = []
        for name, distances in by_reading.items():
            same = [chosen[key] for key in distances if key in chosen]
            lines.append(
                [
                    name,
                    len(distances),
                    fmean(distances.values()),
                    sum(distance <= POINTS for distance in distances.values()),
                    fmean(same) if same else None,
                    sum(distance <= POINTS for distance in same) if same else None,
                ]
            )
        columns = [
            "reading",
            "rows",
            "mean distance to the paper",
            f"within {POINTS:g}",
            "the chosen reading on these rows",
            f"of it within {POINTS:g}",
        ]
        return Table(columns, lines).render("markdown") if lines else ""


class RewiringReadings(Readings):
    """Gumbel-MPNN with the paper's hyperparameters, whose rewiring is read in several ways."""

    name = "readings-rewiring"
    title = "How the paper's rewiring is read"
    readings = REWIRINGS
    models = judged = (REWIRED,)


class TrainingReadings(Readings):
    """Plain models with the paper's hyperparameters, trained for several numbers of epochs."""

    name = "readings-training"
    title = "How long the paper's models are trained"
    readings = LENGTHS
    models = PLAIN

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a table of data sets: the mean distance to the paper with each length, and the length by the rule."""
        distances = _distances(rows)
        lines: list[list[Cell]] = []
        chosen, usual = list[float](), list[float]()
        for dataset in TUNED_DATASETS:
            by_length = _by_length(distances, dataset)
            models = list(by_length[USUAL])
            if models:
                means = {name: fmean(of_models.values()) for name, of_models in by_length.items()}
                length = chosen_length(means) if models == list(PLAIN) else UNDECIDED
                names = ", ".join(MODEL_NAMES[model] for model in models)
                lines.append([dataset, names, *means.values(), length])
                chosen += by_length[USUAL if length == UNDECIDED else length].values()
                usual += by_length[USUAL].values()
        if not lines:
            return ""
        table = Table(["data set", "models", *(reading.name for reading in LENGTHS), "chosen"], lines)
        return paragraphs(
            "Mean distance to the paper in points, over the models that have a result with every length. Where one of"
            f" the plain models has none, nothing is chosen, and {USUAL} stay:",
            table.render("markdown"),
            f"Results within {POINTS:g} points of the paper: {_near(chosen)} with the chosen lengths, and"
            f" {_near(usual)} with {USUAL} for all data sets.",
        )


def chosen_length(means: Mapping[str, float]) -> str:
    """Return the length with the smallest mean distance if it is nearer than `USUAL` by more than `MARGIN`."""
    nearest = min(means, key=means.__getitem__)
    return nearest if means[USUAL] - means[nearest] > MARGIN else USUAL


def _by_length(distances: Mapping[str, Mapping[tuple[str, str], float]], dataset: str) -> dict[str, dict[str, float]]:
    """Return the distances of a data set, length → model → distance, of models that have one with every length."""
    lengths = [distances.get(reading.name, {}) for reading in LENGTHS]
    models = [model for model in PLAIN if all((dataset, model) in found for found in lengths)]
    return {
        reading.name: {model: found[dataset, model] for model in models}
        for reading, found in zip(LENGTHS, lengths, strict=True)
    }


def _near(distances: Sequence[float]) -> str:
    within = sum(distance <= POINTS for distance in distances)
    return f"{within} of {len(distances)} (mean distance {fmean(distances):.2f})"


def _applicable(readings: Iterable[Reading], dataset: str, model: str) -> list[Reading]:
    settings = RunSpec.of(dataset, model, preset="paper").settings
    candidates = None if settings.rewiring is None else settings.rewiring.candidates
    return [
        reading
        for reading in readings
        if reading.residual in (None, settings.options["residual"])
        and (reading.few_features or dataset not in FEW_FEATURES)
        and (not reading.candidates or candidates in reading.candidates)
    ]


def _key(row: Row) -> tuple[str, str]:
    return str(row["dataset"]), str(row["model"])


def _distances(rows: Iterable[Row]) -> dict[str, dict[tuple[str, str], float]]:
    """Return the distances to the paper in points: reading → data set and model → distance."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        if row["to_paper"] is not None:
            found.setdefault(str(row["reading"]), {})[_key(row)] = abs(float(row["to_paper"]))
    return found


def _row(job: Job, reading: str, run: Run | None, paper: float) -> Columns:
    row: Columns = {
        "dataset": job.dataset,
        "model": job.model,
        "reading": reading,
        **dict.fromkeys(("test", "std", "stderr", "n")),
        "paper": paper,
        "to_paper": None,
    }
    return row if run is None else row | {**figures(run), "to_paper": 100 * run.test.mean - paper}
