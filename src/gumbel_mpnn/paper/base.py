"""What experiments are made of: jobs to run, the columns of their rows, the paper's numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import DivergedError, MissingDataError
from gumbel_mpnn._util.fixed import Fixed
from gumbel_mpnn.runs import BusyError, DataReader, Monitor, Run, Transform, find, fit
from gumbel_mpnn.runs.query import Paired, Summary, compare, corrected

Row = Mapping[str, str | int | float | None]
Columns = dict[str, str | int | float | None]
PAPER_DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "ogbn-arxiv",
    "squirrel",
    "chameleon",
    "actor",
    "roman-empire",
    "questions",
    "minesweeper",
    "tolokers",
    "amazon-ratings",
)
"""Those of the main table."""
UNFILTERED = ("squirrel-unfiltered", "chameleon-unfiltered")
STRUCTURE_DATASETS = tuple(name + "-unfiltered" * (name in ("squirrel", "chameleon")) for name in PAPER_DATASETS)
"""Those of the paper's tables of structure and of its ablation: Squirrel and Chameleon are the unfiltered ones."""
PAIRED = ("difference", "low", "high", "p", "verdict")
"""The columns of a paired difference."""


@dataclass(frozen=True)
class Job:
    """One setting of an experiment: a model with a preset on a data set."""

    dataset: str
    model: str
    preset: str = "tuned"
    experiment: str = ""
    """The experiment among whose runs it is kept; experiments that share a job name the same one."""
    overrides: tuple[str, ...] = ()
    """Settings laid over the preset, as `model.num_layers=4`."""
    transform: Transform | None = None
    """What is done to the data before training."""


def override(name: str, value: object) -> str:
    """A setting as `Job.overrides` has it, from its name as `model.num_layers` and its value."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


QUICK_DATASETS = (
    "cora",
    "chameleon",
    "chameleon-unfiltered",
    "leaf-count",
    "tree-neighbors-match",
    "bottleneck",
    "bottleneck-10",
)
QUICK_SPLITS = (0, 1)
QUICK_OVERRIDES = ("train.epochs=5", "train.lr=0.02", "model.hidden_channels=8")
"""An experiment in small, to see that all of it works: small data sets, two splits, few epochs, narrow models."""


def run_jobs(
    jobs: Iterable[Job],
    *,
    seeds: int,
    runs: Path,
    experiment: str,
    splits: Iterable[int] | None = None,
    root: Path | None = None,
    device: str = "auto",
    overrides: Iterable[str] = (),
    quick: bool = False,
    memory: int | None = None,
    monitor: Monitor | None = None,
    wait: bool = True,
    from_models: str = "",
    may_diverge: bool = False,
    reader: DataReader | None = None,
) -> dict[Job, Run | None]:
    """Do what is missing of the jobs; a job without data gives None.

    What another process is training is left for the end, so that several share the work.

    Args:
        jobs: What to do.
        seeds: How many for each split.
        runs: Folder that keeps the runs.
        experiment: Folder within it, for jobs that name none.
        splits: Which; all by default, two of them if `quick`.
        root: Where the data sets' files lie.
        device: `cpu`, `cuda`, or `auto`.
        overrides: Settings laid over those of every job.
        quick: Lay `QUICK_OVERRIDES` under the jobs' own settings.
        memory: Bytes that training may take; what is free by default.
        monitor: Told how it goes.
        wait: For what others are training, at the end; without it those jobs are left out.
        from_models: The name of what is to be taken from the trained models: runs are done again where neither it nor
            the models were kept. By default records are enough.
        may_diverge: Leave out jobs whose training diverges, which is an error otherwise.
        reader: Reads the data sets; one of its own by default.
    """
    changes, reader = list(overrides), reader or DataReader()
    terms: dict[str, Any] = {"splits": _chosen(splits, quick), "seeds": seeds, "runs": runs, "root": root}

    def do(job: Job, wait: bool) -> Run | None:
        which = {**_arguments(job, experiment, changes, quick), **terms, "reader": reader}
        try:
            return fit(
                job.dataset,
                job.model,
                **which,
                device=device,
                memory=memory,
                monitor=monitor,
                wait=wait,
                models=bool(from_models) and not _keeps(find(job.dataset, job.model, **which), from_models),
            )
        except MissingDataError:
            return None

    jobs, results, busy = list(jobs), dict[Job, Run | None](), list[Job]()
    forgiven = (DivergedError,) if may_diverge else ()
    for job in jobs:
        try:
            results[job] = do(job, wait=False)
        except BusyError:
            busy.append(job)
        except forgiven:
            pass
    for job in busy if wait else ():
        with suppress(*forgiven):
            results[job] = do(job, wait=True)
    return {job: results[job] for job in jobs if job in results}


def find_jobs(
    jobs: Iterable[Job],
    *,
    seeds: int,
    runs: Path,
    experiment: str,
    splits: Iterable[int] | None = None,
    root: Path | None = None,
    overrides: Iterable[str] = (),
    quick: bool = False,
    from_models: str = "",
) -> dict[Job, Run | None]:
    """What `run_jobs` with the same arguments would find done; jobs with anything left to train are left out.

    So are those that have kept neither what is named by `from_models` nor the trained models that it is made from.
    """
    changes, reader = list(overrides), DataReader()
    terms: dict[str, Any] = {"splits": _chosen(splits, quick), "seeds": seeds, "runs": runs, "root": root}
    results = dict[Job, Run | None]()
    for job in jobs:
        which = {**_arguments(job, experiment, changes, quick), **terms, "reader": reader}
        try:
            found = find(job.dataset, job.model, **which)
            if from_models and not _keeps(found, from_models):
                found = find(job.dataset, job.model, **which, models=True)
        except MissingDataError:
            results[job] = None
        else:
            results |= {} if found is None else {job: found}
    return results


def _keeps(run: Run | None, name: str) -> bool:
    return run is not None and run.keeps(name)


def _chosen(splits: Iterable[int] | None, quick: bool) -> list[int] | None:
    splits = QUICK_SPLITS if quick and splits is None else splits
    return None if splits is None else list(splits)


def _arguments(job: Job, experiment: str, overrides: Iterable[str], quick: bool) -> dict[str, Any]:
    """What of the arguments of `fit` and `find` is a job's own."""
    return {
        "preset": job.preset,
        "overrides": [*(QUICK_OVERRIDES if quick else ()), *job.overrides, *overrides],
        "experiment": job.experiment or experiment,
        "transform": job.transform,
    }


def quick_jobs(jobs: Iterable[Job]) -> list[Job]:
    """The jobs on data sets that are soon done; all of them where there is none."""
    jobs = list(jobs)
    return [job for job in jobs if job.dataset in QUICK_DATASETS] or jobs


def figures(run: Run) -> Row:
    """Mean test figure in per cent, its spread, and the number of runs."""
    std, stderr = spread(run.test)
    return {"test": 100 * run.test.mean, "std": std, "stderr": stderr, "n": run.n}


def spread(summary: Summary) -> tuple[float | None, float | None]:
    """Standard deviation and standard error in per cent; None of a single figure, which has neither."""
    return (100 * summary.std, 100 * summary.stderr) if summary.n > 1 else (None, None)


def difference(run: Run, other: Run | None) -> Columns:
    """The paired difference of two runs in per cent, its interval, p-value and what they say; empty without a run."""
    return _columns(None if other is None else compare(run.records, other.records))


def differences(pairs: Mapping[str, tuple[Run | None, Run | None]]) -> dict[str, Columns]:
    """The same for several data sets by name, p-values and so verdicts corrected for how many they are."""
    compared = corrected(
        {
            dataset: compare(run.records, other.records)
            for dataset, (run, other) in pairs.items()
            if run is not None and other is not None
        }
    )
    return {dataset: _columns(compared.get(dataset)) for dataset in pairs}


def _columns(paired: Paired | None) -> Columns:
    if paired is None:
        return dict.fromkeys(PAIRED)
    shares = {"difference": paired.mean, "low": paired.low, "high": paired.high}
    return {**{name: 100 * share for name, share in shares.items()}, "p": paired.p, "verdict": paired.verdict}


def published(table: str) -> dict[str, dict[str, Any]]:
    """The paper's numbers of one table: data set → row or column → number, or [value, ±] in per cent for accuracies.

    Those with decimals are shown with as many as the paper prints.
    """
    file = resources.files(__package__) / "published" / f"{table}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Fixed.parse)
