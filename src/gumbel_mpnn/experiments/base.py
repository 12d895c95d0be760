"""What every experiment is made of: jobs to run, the paper's numbers, and rows to show."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from torch_geometric.data import Data

from gumbel_mpnn.data.tasks import bottleneck, leaf_count
from gumbel_mpnn.errors import MissingDataError
from gumbel_mpnn.runs import BusyError, Monitor, Run, Transform, fit

Row = Mapping[str, str | int | float | None]


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


GENERATED: Mapping[str, Callable[[], Data]] = {
    "leaf-count": lambda: leaf_count(depth=4, max_trees=2_100, num_splits=10),
    "bottleneck": lambda: bottleneck(nodes_per_side=20, num_classes=5, num_graphs=20, num_splits=10),
}
"""Data sets that are made and not read."""


class Experiment(Protocol):
    """A table or figure: what to run, and how the figures are put together."""

    name: str
    title: str
    headings: Mapping[str, str]

    def plan(self) -> list[Job]:
        """All jobs of the experiment."""

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """The rows of the table; None stands for a data set whose files are not here."""


class Analysis(Protocol):
    """A table that no model is trained for: rows that each data set gives by itself."""

    name: str
    title: str
    headings: Mapping[str, str]
    digits: int

    def datasets(self) -> list[str]:
        """The data sets of the table."""

    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """What is to be said of one data set, whose files are looked for in `root` first; they may be missing."""


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
    monitor: Monitor | None = None,
) -> dict[Job, Run | None]:
    """Do what is missing of the jobs; a job without data gives None.

    What another process is training is left for the end, so that several share the work.
    """
    chosen, changes = None if splits is None else list(splits), list(overrides)

    def do(job: Job, wait: bool) -> Run | None:
        try:
            return fit(
                GENERATED[job.dataset]() if job.dataset in GENERATED else job.dataset,
                job.model,
                splits=chosen,
                seeds=seeds,
                preset=job.preset,
                overrides=[*job.overrides, *changes],
                runs=runs,
                experiment=job.experiment or experiment,
                transform=job.transform,
                root=root,
                device=device,
                monitor=monitor,
                wait=wait,
            )
        except MissingDataError:
            return None

    jobs, results = list(jobs), dict[Job, Run | None]()
    for job in jobs:
        with suppress(BusyError):
            results[job] = do(job, wait=False)
    return {job: results[job] if job in results else do(job, wait=True) for job in jobs}


def figures(run: Run) -> Row:
    """Mean test figure in per cent, its spread, and the number of runs."""
    return {"test": 100 * run.test.mean, "std": 100 * run.test.std, "stderr": 100 * run.test.stderr, "n": run.n}


def published(table: str) -> dict[str, dict[str, Any]]:
    """The paper's numbers of one table: data set → row or column → number, or [value, ±] in per cent for accuracies."""
    file = resources.files("gumbel_mpnn") / "experiments" / "published" / f"{table}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))
