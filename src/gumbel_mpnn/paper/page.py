"""What every table or figure is: a page of rows, from trained models or without any."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.report.grid import Grid
from gumbel_mpnn.runs import Run


class Page:
    """Rows that are shown under a title."""

    name: str
    title: str
    headings: Mapping[str, str]
    """What people read above the columns."""
    charts: tuple[Chart, ...] = ()
    """The panels of its figure."""
    grid: Grid | None = None
    digits: int = 2
    """Of its numbers."""

    def numbers(self) -> list[PaperNumber]:
        """The paper's numbers that the rows answer."""
        return []


class Experiment(Page, ABC):
    """A table or figure: what to run, and how the figures are put together."""

    from_models: str = ""
    """The name under which it keeps what it takes from trained models, by `run.keep`; empty if records are enough.

    It changes with what is taken: constants that decide it are part of the name.
    """
    searches: bool = False
    """Whether it tries settings to choose among: some may diverge, and it is no part of `all`."""

    @abstractmethod
    def plan(self) -> list[Job]:
        """All jobs of the experiment."""

    @abstractmethod
    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """The rows of the table; None stands for a data set whose files are not here."""

    def remarks(self, results: Mapping[Job, Run | None]) -> str:
        """What is to be said of the runs, Markdown."""
        return ""

    def on(self, dataset: str) -> Experiment:
        """The same experiment on another data set."""
        raise UserError(f"the data sets of {self.name} are fixed: select some of them with `only`")


class Analysis(Page, ABC):
    """A table that no model is trained for: rows that each data set gives by itself."""

    @abstractmethod
    def datasets(self) -> list[str]:
        """The data sets of the table."""

    @abstractmethod
    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """What is to be said of one data set, whose files are looked for in `root` first; they may be missing."""
