"""What an experiment is: the models that it trains, the rows that it computes from them, and what people read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from experiments.charts import Chart, draw_charts
from experiments.kept import kept
from experiments.published import PaperNumber
from experiments.rows import MODEL_NAMES
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.runs import Run

LADDERS: Mapping[str, tuple[str, ...]] = {
    "auto": (),
    "auto-frozen": ("model.learned=frozen",),
    "auto-random": ("model.learned=random",),
    "auto-wary": ("model.wary=true",),
    "auto-wary-frozen": ("model.wary=true", "model.learned=frozen"),
}
"""`auto` by the names that it has in tables, with its options: controls, and for nodes that were attacked."""
PLAIN = ("mlp", "gcn", "sage", "gat")
"""Models without rewiring."""
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
"""Data sets of the paper's main table."""
UNFILTERED = ("squirrel-unfiltered", "chameleon-unfiltered")
STRUCTURE_DATASETS = tuple(name + "-unfiltered" * (name in ("squirrel", "chameleon")) for name in PAPER_DATASETS)
"""Data sets of the paper's structure tables and ablation, with the unfiltered Squirrel and Chameleon."""
TUNED_DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "squirrel",
    "chameleon",
    *UNFILTERED,
    "actor",
    "minesweeper",
    "tolokers",
)
"""Data sets that are here and have tuned presets."""
PAPER_PRESETS = ("paper", "literal")
"""Families of presets with the paper's model: with its readings calibrated, and as printed."""
PAPER_RUNS = "paper"
"""Folder of the runs of both families, so that settings which they share are trained once."""
DEFAULT = "default"
"""Name of the setting of jobs on the data as it is."""
QUICK_DATASETS = (
    "cora",
    "chameleon",
    "chameleon-unfiltered",
    "leaf-count",
    "tree-neighbors-match",
    "bottleneck",
    "bottleneck-10",
)
"""Data sets of the small version of a table."""


@dataclass(frozen=True)
class Job:
    """One setting of an experiment: a model, its preset and a data set."""

    dataset: str
    model: str
    preset: str = "tuned"
    """Family of presets; empty for none."""
    experiment: str = ""
    """Folder of the runs, which experiments with the same runs share; named after the experiment by default."""
    overrides: tuple[str, ...] = ()
    """Settings that override the preset, such as `model.num_layers=4`."""
    transform: Callable[[Data], Data] | None = None
    """Applied to the data before training."""
    seeds: int = 0
    """Number of seeds per split, for data sets with one split; 0 for the number that is requested."""
    attack: str = ""
    """Attack on the edges of the data set, such as `meta-0.25`."""
    split: int | None = None
    """The only split to train on; None for all."""

    @property
    def setting(self) -> str:
        """What is done to the data: an attack, a setting, the name of a transform, or `default`."""
        if self.transform is not None:
            return getattr(self.transform, "name", DEFAULT)
        values = (each.partition("=")[2] for each in self.overrides if each.startswith("data."))
        return next(filter(None, (self.attack, *values)), DEFAULT)


Results = Mapping[Job, Run | None]
"""Finished runs of jobs; None if the files of the data set are missing."""


class Page:
    """A table of rows, and what people read of it."""

    name: str
    title: str
    headings: Mapping[str, str] = {}
    """Headings of columns that are not called as people call them."""
    digits: int = 2
    charts: tuple[Chart, ...] = ()

    def table(self, rows: Sequence[Row]) -> Table:
        """Return all rows and columns."""
        columns = list(rows[0]) if rows else []
        cells = [list(row.values()) for row in rows]
        return Table(columns, cells, {**HEADINGS, **self.headings}, digits=self.digits, words={"model": MODEL_NAMES})

    def shown(self, rows: Sequence[Row]) -> str:
        """Return what people read of the rows, as Markdown; all of it by default."""
        return self.table(rows).render("markdown")

    def draw(self, rows: Sequence[Row], results: Results, pictures: Sequence[Path]) -> bool:
        """Draw the figure and save it to each of `pictures`; returns whether there was anything to draw.

        There are no results if the rows were read from a file.
        """
        return draw_charts(self.charts, rows, pictures)

    def numbers(self) -> list[PaperNumber]:
        """Return the published numbers to which the rows correspond."""
        return []


HEADINGS: Mapping[str, str] = {
    "dataset": "data set",
    "test": "test %",
    "stderr": "std error",
    "n": "runs",
    "val": "val %",
    "low": "95 % from",
    "high": "to",
    "p": "corrected p",
    "over": "tested over",
}
"""Headings of columns that many tables have."""


class Experiment(Page, ABC):
    """A table made from trained models."""

    searches: bool = False
    """Whether the table is a search for settings: some may diverge, and `all` leaves it out."""
    measured: str = ""
    """Name under which the results of `measure` are kept; empty if the records of runs are enough.

    It must change if the results change, so constants that determine them are part of it.
    """

    @abstractmethod
    def plan(self) -> list[Job]:
        """Return all jobs of the experiment."""

    def quick_plan(self) -> list[Job]:
        """Return the jobs of the small version: those on small data sets, or all if there are none."""
        jobs = self.plan()
        return [job for job in jobs if job.dataset in QUICK_DATASETS] or jobs

    @abstractmethod
    def collect(self, results: Results) -> list[Row]:
        """Return the rows of the table."""

    def measures(self, job: Job) -> bool:
        """Whether the trained models of a job are measured."""
        return bool(self.measured)

    def measure(self, run: Run) -> Any:
        """Return what the table takes from trained models, as plain JSON values; nothing by default."""
        return None

    def kept(self, run: Run) -> Any:
        """Return the result of `measure`, which is computed once for these runs and kept beside them."""
        return kept(run, self.measured, partial(self.measure, run))


class Analysis(Page, ABC):
    """A table without training, whose rows are computed from each data set separately."""

    datasets: tuple[str, ...]

    @abstractmethod
    def rows(self, dataset: str) -> list[Row]:
        """Return the rows of a data set, whose files may be missing."""
