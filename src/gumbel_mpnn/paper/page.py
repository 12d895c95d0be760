"""Base classes of all tables and figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.paper.base import Job, quick_jobs
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart, draw_charts
from gumbel_mpnn.report.grid import Grid
from gumbel_mpnn.report.table import Cell
from gumbel_mpnn.runs import BusyError, Run

COMMON_HEADINGS: Mapping[str, str] = {
    "dataset": "data set",
    "test": "test %",
    "stderr": "std error",
    "n": "runs",
    "val": "val %",
    "low": "95 % from",
    "high": "to",
    "over": "tested over",
}
"""Headings of columns that many tables have."""
RESULTS = ("test", "std", "stderr", "val", "difference", "low", "high", "paper", "paper_pm", "to_paper")
"""Columns in per cent that many tables of trained models have."""


class Page:
    """A table of rows with a title."""

    name: str
    title: str
    headings: Mapping[str, str]
    """Headings of its own columns, which extend `COMMON_HEADINGS`."""
    charts: tuple[Chart, ...] = ()
    grid: Grid | None = None
    digits: int = 2
    percent: tuple[str, ...] = ()
    """Columns in per cent, which are shares in JSON."""

    def all_headings(self) -> dict[str, str]:
        """Return the headings of all columns."""
        return {**COMMON_HEADINGS, **self.headings}

    def shares(self, row: Row) -> Row:
        """Return a row whose columns in per cent are shares between 0 and 1, with the unit as a column."""
        if not self.percent:
            return row
        converted = {name: as_share(value) if name in self.percent else value for name, value in row.items()}
        return {**converted, "unit": "share"}

    def numbers(self) -> list[PaperNumber]:
        """Return the published numbers to which the rows correspond."""
        return []

    def draw(self, rows: Sequence[Row], runs: Sequence[Run], root: Path | None, paths: Sequence[Path]) -> bool:
        """Draw the figure of the page and save it to each of `paths`; returns whether there was anything to draw."""
        return draw_charts(self.charts, rows, paths)


def as_share(percent: Cell) -> Cell:
    """Convert per cent to a share; 12 digits hide the rounding error of 100 · x / 100."""
    return percent if percent is None or isinstance(percent, str) else round(percent / 100, 12)


class Experiment(Page, ABC):
    """A table made from trained models: the jobs to train, and how rows are computed from their runs."""

    percent: tuple[str, ...] = RESULTS
    from_models: str = ""
    """Name under which `taken` stores what the table takes from trained models; empty if records are enough.

    The name must change if the stored values change, so constants that determine them are part of it.
    """
    searches: bool = False
    """Whether the table is a search for settings: some may diverge, and `all` leaves it out."""
    of_paper: bool = True
    """Whether the table belongs to the reproduction of the paper; `all` leaves out the others."""

    @abstractmethod
    def plan(self) -> list[Job]:
        """Return all jobs of the experiment."""

    def quick_plan(self) -> list[Job]:
        """Return the jobs of the small version: by default those on small data sets."""
        return quick_jobs(self.plan())

    @abstractmethod
    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return the rows of the table; a run is None if the files of its data set are missing."""

    def needed_from(self, job: Job) -> str:
        """Return `from_models`, or nothing if the records of this job are enough."""
        return self.from_models

    def measure(self, run: Run) -> Any:
        """Return what a table with `from_models` takes from the trained models of runs, as plain JSON values."""
        raise NotImplementedError

    def taken(self, run: Run, wait: bool = True) -> Any:
        """Return the result of `measure`, which is computed once and stored with the runs.

        Raises a `BusyError` if another process is computing it and `wait` is False.
        """
        return run.stored(self.from_models, partial(self.measure, run), wait=wait)

    def take(self, job: Job, run: Run) -> None:
        """Store what the rows need from the models of a job, unless another process is computing it."""
        with suppress(BusyError):
            self.taken(run, wait=False)

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return remarks on the runs and on the rows that `collect` returned for them, as Markdown."""
        return ""

    def on(self, dataset: str) -> Experiment:
        """Return the experiment on another data set."""
        raise UserError(f"the data sets of {self.name} are fixed: select some of them with `only`")


class Analysis(Page, ABC):
    """A table without training, whose rows are computed from each data set separately."""

    datasets: tuple[str, ...]

    @abstractmethod
    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """Return the rows of a data set, whose files may be missing and are searched in `root` first."""
