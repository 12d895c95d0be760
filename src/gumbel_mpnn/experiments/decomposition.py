"""Models trained to tell the components of the classes apart and judged by classes: the paper's negative result."""

from __future__ import annotations

from collections.abc import Mapping

from torch_geometric.data import Data

from gumbel_mpnn.experiments.backbones import DATASETS
from gumbel_mpnn.experiments.base import Job, Row
from gumbel_mpnn.measures import label_by_components
from gumbel_mpnn.measures.component_labels import Known
from gumbel_mpnn.runs import Run, Summary

MODELS = ("gcn", "sage", "gat")


class ByComponents:
    """Gives a data set the components of its classes to train on, found once for each data set."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self._found: dict[str, Data] = {}

    def __call__(self, data: Data) -> Data:
        """The data with `train_y` and `class_of`."""
        if data.name not in self._found:
            self._found[data.name] = label_by_components(data, self.known, seeds=1)
        return self._found[data.name]


class DecompositionTable:
    """Each model on classes, on components found from training labels, and on those that an oracle knows."""

    name = "decomposition"
    title = "Models trained on the components of classes"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        "labels": "trained on",
        "outputs": "labels",
        "test": "test %",
        "val": "val %",
        "difference": "difference to classes",
        "stderr": "its std error",
        "n": "runs",
    }

    def plan(self) -> list[Job]:
        """Every model on every data set, three times."""
        kinds = (None, ByComponents("training"), ByComponents("all"))
        return [Job(data, model, transform=kind) for data in DATASETS for model in MODELS for kind in kinds]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """One row for each training, with its difference to the one on classes, run by run."""
        plain = {(job.dataset, job.model): run for job, run in results.items() if job.transform is None}
        return [_row(job, run, plain.get((job.dataset, job.model))) for job, run in results.items()]


def _row(job: Job, run: Run | None, plain: Run | None) -> Row:
    difference = None
    if run is not None and plain is not None and job.transform is not None:
        difference = Summary.of(b.test - a.test for a, b in zip(plain.records, run.records, strict=True))
    return {
        "dataset": job.dataset,
        "model": job.model,
        "labels": _name(job),
        "outputs": None if run is None else _num_labels(run.data),
        "test": None if run is None else 100 * run.test.mean,
        "val": None if run is None else 100 * run.val.mean,
        "difference": None if difference is None else 100 * difference.mean,
        "stderr": None if difference is None else 100 * difference.stderr,
        "n": None if run is None else run.n,
    }


def _name(job: Job) -> str:
    if isinstance(job.transform, ByComponents):
        return "components (oracle)" if job.transform.known == "all" else "components"
    return "classes"


def _num_labels(data: Data) -> int:
    class_of = data.get("class_of")
    return int(data.y.max()) + 1 if class_of is None else len(class_of)
