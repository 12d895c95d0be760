"""Parts that the experiments share: jobs, columns of their rows, and the published numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeVar

from gumbel_mpnn.report import Row
from gumbel_mpnn.report.table import Fixed
from gumbel_mpnn.runs import Run, RunSpec, Transform
from gumbel_mpnn.runs.query import Paired, Summary, compare, corrected, flat

Columns = dict[str, str | int | float | None]
K = TypeVar("K", bound=Hashable)
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
"""Data sets of the main table."""
UNFILTERED = ("squirrel-unfiltered", "chameleon-unfiltered")
STRUCTURE_DATASETS = tuple(name + "-unfiltered" * (name in ("squirrel", "chameleon")) for name in PAPER_DATASETS)
"""Data sets of the paper's structure tables and ablation, with the unfiltered Squirrel and Chameleon."""
PAPER_PRESETS = ("paper", "literal")
"""Families of presets with the paper's model: with its readings calibrated, and as printed."""
PAPER_RUNS = "paper"
"""Experiment that stores the runs of both families, so that settings which they share are trained once."""
PAPER_SEEDS = 1
"""Seeds per split for these families, even if more are requested, to save time."""
PAIRED = ("difference", "low", "high", "p", "over", "verdict")
"""Columns of a paired difference."""
DEFAULT = "default"
"""Name of the setting of jobs on the data of the table as it is."""


@dataclass(frozen=True)
class Job:
    """One setting of an experiment: a model, its preset and a data set."""

    dataset: str
    model: str
    preset: str = "tuned"
    """Family of presets; empty for none."""
    experiment: str = ""
    """Experiment whose folder stores the runs; experiments that share runs use the same name. Its own by default."""
    overrides: tuple[str, ...] = ()
    """Settings that override the preset, such as `model.num_layers=4`."""
    transform: Transform | None = None
    """Applied to the data before training."""
    seeds: int = 0
    """Number of seeds per split, for data sets with one split; 0 for the number that is requested."""

    @property
    def setting(self) -> str:
        """What is done to the data: a setting such as `meta-0.25`, the name of a transform, or `default`."""
        if self.transform is not None:
            return getattr(self.transform, "name", DEFAULT)
        values = (each.partition("=")[2] for each in self.overrides if each.startswith("data."))
        return next(filter(None, values), DEFAULT)


def override(name: str, value: object) -> str:
    """Format an entry of `Job.overrides` from the name of a setting, such as `model.num_layers`, and its value."""
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def beneath(dataset: str, preset: str = "paper", model: str = "gcn") -> tuple[str, ...]:
    """Return overrides for a GCN, or another `model`, with the settings of Gumbel-MPNN of the same preset.

    Settings of rewiring, and options that only the other model has, are left as they are.
    """
    plain, rewired = (
        flat(RunSpec.of(dataset, name, preset=preset).settings.to_dict()) for name in (model, "gumbel-mpnn")
    )
    different = (name for name, value in plain.items() if rewired.get(name, value) != value and name != "model.name")
    return tuple(override(name, rewired[name]) for name in different)


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
QUICK_OVERRIDES = ("train.lr=0.02", "model.hidden_channels=8")
"""Options of `quick`: small data sets, two splits and narrow models, unless a job has settings of its own."""
QUICK_LENGTH = ("train.epochs=5",)
"""Length of training with `quick`, which no job exceeds."""


def quick_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs on small data sets, or all jobs if there are none."""
    jobs = list(jobs)
    return [job for job in jobs if job.dataset in QUICK_DATASETS] or jobs


def figures(run: Run) -> Row:
    """Return the mean test result in percent, its standard deviation and standard error, and the number of runs."""
    std, stderr = spread(run.test)
    return {"test": 100 * run.test.mean, "std": std, "stderr": stderr, "n": run.n}


def spread(summary: Summary) -> tuple[float | None, float | None]:
    """Return standard deviation and standard error in percent; both are None for a single run."""
    return (100 * summary.std, 100 * summary.stderr) if summary.n > 1 else (None, None)


def difference(run: Run, other: Run | None) -> Columns:
    """Return the paired difference of two runs in percent, with interval, p-value and verdict.

    All columns are None if there is no `other` run.
    """
    return _columns(None if other is None else compare(run.records, other.records))


def differences(pairs: Mapping[K, tuple[Run | None, Run | None]]) -> dict[K, Columns]:
    """Return the paired difference for each key, such as a data set; p-values and verdicts are corrected."""
    compared = corrected(
        {
            key: compare(run.records, other.records)
            for key, (run, other) in pairs.items()
            if run is not None and other is not None
        }
    )
    return {key: _columns(compared.get(key)) for key in pairs}


def _columns(paired: Paired | None) -> Columns:
    if paired is None:
        return dict.fromkeys(PAIRED)
    shares = {"difference": paired.mean, "low": paired.low, "high": paired.high}
    percent = {name: None if share is None else 100 * share for name, share in shares.items()}
    return {**percent, "p": paired.p, "over": paired.over, "verdict": paired.verdict}


def published(table: str) -> dict[str, dict[str, Any]]:
    """Read the published numbers of one table, as data set → row or column → number.

    Accuracies are pairs [value, ±] in percent. Numbers are shown with as many decimals as the paper prints.
    """
    file = resources.files(__package__) / "published" / f"{table}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Fixed.parse)
