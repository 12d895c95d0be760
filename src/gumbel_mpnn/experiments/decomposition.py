"""Models trained to tell the components of the classes apart and judged by classes: the paper's negative result."""

from __future__ import annotations

from collections.abc import Mapping

from torch_geometric.data import Data

from gumbel_mpnn.experiments.backbones import DATASETS
from gumbel_mpnn.experiments.base import Job, Row
from gumbel_mpnn.measures import Decomposition, decompose
from gumbel_mpnn.runs import Run, Summary

MODELS = ("gcn", "sage", "gat")


class ByComponents:
    """Replaces the labels of a data set by the components of its classes, found once for each data set.

    All labels are looked at, those of test nodes too, as the paper does: an oracle's analysis, not a method.
    """

    def __init__(self) -> None:
        self._found: dict[str, Decomposition] = {}

    def __call__(self, data: Data) -> Data:
        """The data with pseudo labels."""
        if data.name not in self._found:
            self._found[data.name] = decompose(data)
        return self._found[data.name].relabel(data)


class DecompositionTable:
    """Each model on the classes and on their components, split by split and seed by seed."""

    name = "decomposition"
    title = "Models trained on the components of classes"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        "plain": "test %, classes",
        "split": "test %, components",
        "plain_val": "val %, classes",
        "split_val": "val %, components",
        "difference_stderr": "std error of difference",
        "n": "runs",
    }

    def plan(self) -> list[Job]:
        """Every model on every data set, with its labels and with pseudo labels."""
        by_components = ByComponents()
        return [
            Job(dataset, model, transform=transform)
            for dataset in DATASETS
            for model in MODELS
            for transform in (None, by_components)
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Both trainings and their difference, one row for each model and data set."""
        plain = {(job.dataset, job.model): run for job, run in results.items() if job.transform is None}
        split = {(job.dataset, job.model): run for job, run in results.items() if job.transform is not None}
        return [_row(*key, plain[key], split[key]) for key in plain]


def _row(dataset: str, model: str, plain: Run | None, split: Run | None) -> Row:
    if plain is None or split is None:
        names = ("classes", "components", "plain", "split", "difference", "difference_stderr", "n", *_VALIDATION)
        return {"dataset": dataset, "model": model, **dict.fromkeys(names)}
    difference = Summary.of(b.test - a.test for a, b in zip(plain.records, split.records, strict=True))
    return {
        "dataset": dataset,
        "model": model,
        "classes": int(split.data.class_of.max()) + 1,
        "components": len(split.data.class_of),
        "plain": 100 * plain.test.mean,
        "split": 100 * split.test.mean,
        "difference": 100 * difference.mean,
        "difference_stderr": 100 * difference.stderr,
        "n": difference.n,
        "plain_val": 100 * plain.val.mean,
        "split_val": 100 * split.val.mean,
    }


_VALIDATION = ("plain_val", "split_val")
