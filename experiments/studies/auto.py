"""`auto` without any settings, compared with the best plain model and with its controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.experiment import Experiment, Job, Results
from experiments.rows import (
    NO_DATA,
    PAIRED,
    Columns,
    differences,
    figures,
    lines_of,
    paragraphs,
    percent,
    score,
    verdicts,
)
from experiments.studies.compared import HEADINGS
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.runs import Record, Run, Summary
from gumbel_mpnn.util import counted

AUTO, CONTROLS = "auto", ("auto-frozen", "auto-random")
CLEAN = (
    "cora",
    "citeseer",
    "pubmed",
    "squirrel",
    "chameleon",
    "actor",
    "minesweeper",
    "tolokers",
    "github-musae",
)
"""Graphs with several splits and edges that nobody changed."""
SEEDS_OF_ONE_SPLIT = 10
UNATTACKED = "attack="
"""Setting of the clean version of an attacked graph, and beginning of those of the others."""


class Case(NamedTuple):
    """A data set, an attack on it or its split protocol, and the number of seeds (0 for the number requested)."""

    dataset: str
    attack: str = ""
    seeds: int = 0
    protocol: str = ""


CASES = (
    *map(Case, CLEAN),
    Case("amazon-computers", seeds=SEEDS_OF_ONE_SPLIT),
    Case("blogcatalog", protocol="per-class-20-30"),
    Case("blogcatalog", protocol="random-48-32-20"),
    *(Case("attacked-cora", attack, SEEDS_OF_ONE_SPLIT) for attack in ("", "meta-0.1", "meta-0.25")),
    *(Case("attacked-citeseer", attack, SEEDS_OF_ONE_SPLIT) for attack in ("", "meta-0.25")),
    *(Case("attacked-polblogs", attack, SEEDS_OF_ONE_SPLIT) for attack in ("", "meta-0.25")),
)

Runs = Mapping[str, Run | None]
"""Runs of one case: of `auto` and its controls."""


class Auto(Experiment):
    """What `auto` chooses, what it gains over the best plain model, and how much of it is learned."""

    name = "auto"
    title = "A model chosen on validation, without settings"
    headings: Mapping[str, str] = {
        **HEADINGS,
        "setting": "data",
        "plain_test": "its test %",
        "rung": "auto's choice",
        "auto-frozen": "frozen ladder %",
        "auto-random": "random ladder %",
        "control": "better control",
        "per_split": "chosen per split, test %",
        "best_on_test": "best rung on test, after the fact",
        "seconds": "seconds of training",
    }

    def plan(self) -> list[Job]:
        """Return a job of `auto` and of each control for every case."""
        return [
            Job(
                case.dataset,
                model,
                overrides=(f"data.protocol={case.protocol}",) if case.protocol else (),
                seeds=case.seeds,
                attack=case.attack,
            )
            for case in CASES
            for model in (AUTO, *CONTROLS)
        ]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each case, with p-values corrected for the number of cases."""
        found: dict[tuple[str, str], dict[str, Run | None]] = {}
        for job, run in results.items():
            found.setdefault((job.dataset, _setting(job)), {})[job.model] = run
        gains = differences({key: (runs.get(AUTO), _plain(runs)) for key, runs in found.items()})
        better = {key: _better_control(runs) for key, runs in found.items()}
        learned = differences({key: (runs.get(AUTO), runs.get(better[key] or "")) for key, runs in found.items()})
        return [_row(*key, runs, better[key], gains[key], learned[key]) for key, runs in found.items()]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each graph, how often `auto` is better than others, and its largest loss."""
        lines = [
            [
                row["dataset"],
                row["setting"],
                row["plain"],
                score(row, "plain_test", ""),
                row["rung"],
                score(row, bold=str(row["verdict"]).startswith("better")),
                score(row, "auto-frozen", ""),
                score(row, "auto-random", ""),
                score(row, "learned_difference", "", bold=str(row["learned_verdict"]).startswith(("better", "worse"))),
            ]
            for row in rows
        ]
        names = ["data set", "data", "best plain rung", "its test %", "auto's choice", "test %", "frozen", "random"]
        return paragraphs(
            "Test accuracy in percent (ROC-AUC for minesweeper and tolokers) ± standard error. Bold: significantly"
            " different by a paired test, corrected; `learned` is what `auto` has beyond the better of its controls,"
            " the ladders frozen and random.",
            Table([*names, "learned"], lines).render("markdown"),
            lines_of(
                [
                    verdicts("Auto", "the best plain model", rows, noun="graph"),
                    _largest_loss(rows),
                    verdicts("Auto", "the better control (what is learned)", rows, "learned_verdict", "graph"),
                    _best_on_test(rows),
                ]
            ),
        )


def _setting(job: Job) -> str:
    """Return what is set about the data of a job, as its row shows it."""
    if job.dataset.startswith("attacked-"):
        return f"{UNATTACKED}{job.attack}"
    return next((name.removeprefix("data.") for name in job.overrides if name.startswith("data.")), "")


def _largest_loss(rows: Sequence[Row]) -> str:
    """Return the largest loss against the best plain model on a graph without an attack."""
    losses = {
        f"{row['dataset']} {str(row['setting'] or '').removeprefix(UNATTACKED)}".strip(): -float(row["difference"])
        for row in rows
        if row["setting"] == UNATTACKED or not str(row["setting"]).startswith(UNATTACKED)
        if row["difference"] is not None
    }
    if not losses:
        return ""
    name = max(losses, key=losses.__getitem__)
    if losses[name] <= 0:
        return f"It is below the best plain model on none of {counted(len(losses), 'graph')} without an attack."
    return f"Its largest loss on a graph without an attack is {losses[name]:.2f} points ({name})."


def _best_on_test(rows: Sequence[Row]) -> str:
    """Return on how many graphs the chosen rung was also the best one on test."""
    done = [row for row in rows if row["rung"] is not None]
    hits = sum(row["rung"] == row["best_on_test"] for row in done)
    of = counted(len(done), "graph")
    return f"The chosen rung is the best one on test, known only afterwards, on {hits} of {of}." if done else ""


def _plain(runs: Runs) -> Run | None:
    """Runs of the plain rung that validation chooses."""
    run = runs.get(AUTO)
    return None if run is None or run.choice is None else run.rungs.get(str(run.choice.best_plain))


def _better_control(runs: Runs) -> str | None:
    """Control with the higher mean test result, the harder one to beat; None if one is missing."""
    means = {name: run.test.mean for name in CONTROLS if (run := runs.get(name)) is not None}
    return max(means, key=means.__getitem__) if len(means) == len(CONTROLS) else None


def _row(dataset: str, setting: str, runs: Runs, better: str | None, gain: Columns, learned: Columns) -> Row:
    run, plain = runs.get(AUTO), _plain(runs)
    row: Columns = {
        "dataset": dataset,
        "setting": setting,
        **dict.fromkeys(("plain", "plain_test", "rung", "test", "stderr", "n")),
        **gain,
        **{name: percent(runs.get(name)) for name in CONTROLS},
        "control": better,
        **{f"learned_{name}": learned[name] for name in PAIRED},
        **dict.fromkeys(("per_split", "best_on_test", "seconds")),
    }
    if run is None or run.choice is None or plain is None:
        return row | {"verdict": NO_DATA}
    finalists = {name: each for name, each in run.rungs.items() if each.n == run.n}
    return row | {
        "plain": run.choice.best_plain,
        "plain_test": 100 * plain.test.mean,
        "rung": run.choice.chosen,
        **figures(run, with_std=False),
        "per_split": 100 * _chosen_per_split(finalists),
        "best_on_test": max(finalists, key=lambda name: finalists[name].test.mean),
        "seconds": sum(each.seconds for each in run.rungs.values()),
    }


def _chosen_per_split(finalists: Mapping[str, Run]) -> float:
    """Return the mean test result if every split chose the rung with its own best validation value."""
    by_split: dict[int, dict[str, list[Record]]] = {}
    for name, run in finalists.items():
        for record in run.records:
            by_split.setdefault(record.split, {}).setdefault(name, []).append(record)
    chosen = [
        max(rungs.values(), key=lambda records: Summary.of(record.val for record in records).mean)
        for rungs in by_split.values()
    ]
    return Summary.of(record.test for records in chosen for record in records).mean
