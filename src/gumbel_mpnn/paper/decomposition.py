"""Models trained on the components of classes and evaluated on classes (negative result of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch_geometric.data import Data

from gumbel_mpnn.measures import label_by_components
from gumbel_mpnn.measures.component_labels import Known
from gumbel_mpnn.paper.backbones import DATASETS
from gumbel_mpnn.paper.base import PAIRED, Columns, Job, differences
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

MODELS = ("gcn", "sage", "gat")
CLASSES = "classes"


@dataclass(frozen=True)
class ByComponents:
    """Transform that adds the components of classes as training labels, computed once for each data set."""

    known: Known
    _found: dict[str, Data] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, data: Data) -> Data:
        """Return the data with `train_y` and `class_of`."""
        if data.name not in self._found:
            self._found[data.name] = label_by_components(data, self.known, seeds=1, cache=True)
        return self._found[data.name]


class DecompositionTable(Experiment):
    """Models trained on classes, on components found from training labels, and on components found from all labels."""

    name = "decomposition"
    title = "Models trained on the components of classes"
    headings: Mapping[str, str] = {
        "labels": "trained on",
        "outputs": "labels",
        "difference": "difference to classes",
        "p": "corrected p",
    }

    def plan(self) -> list[Job]:
        """Return jobs for every model and data set: on classes, shared with `backbones`, and on components."""
        kinds = (ByComponents("training"), ByComponents("all"))
        jobs = []
        for dataset in DATASETS:
            for model in MODELS:
                jobs.append(Job(dataset, model, experiment="backbones"))
                jobs += [Job(dataset, model, experiment=self.name, transform=kind) for kind in kinds]
        return jobs

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each job, with its paired difference to training on classes.

        The p-values of each model and kind of components are corrected for the number of data sets, as in the other
        tables. After a correction for all comparisons of the page, ten splits could not show any difference.
        """
        columns: dict[tuple[str, str], dict[str, Run | None]] = {}
        for job, run in results.items():
            columns.setdefault((job.model, _name(job)), {})[job.dataset] = run
        paired = {
            (model, labels): differences(
                {dataset: (run, columns.get((model, CLASSES), {}).get(dataset)) for dataset, run in runs.items()}
            )
            for (model, labels), runs in columns.items()
            if labels != CLASSES
        }
        return [
            _row(job, run) | (paired[job.model, _name(job)][job.dataset] if run is not None and job.transform else {})
            for job, run in results.items()
        ]


def _row(job: Job, run: Run | None) -> Columns:
    row: Columns = {
        "dataset": job.dataset,
        "model": job.model,
        "labels": _name(job),
        **dict.fromkeys(("outputs", "test", "val", "n", *PAIRED)),
    }
    if run is None:
        return row | {"verdict": "no data"}
    return row | {"outputs": _num_labels(run.data), "test": 100 * run.test.mean, "val": 100 * run.val.mean, "n": run.n}


def _name(job: Job) -> str:
    if isinstance(job.transform, ByComponents):
        return "components (oracle)" if job.transform.known == "all" else "components"
    return CLASSES


def _num_labels(data: Data) -> int:
    class_of = data.get("class_of")
    return int(data.y.max()) + 1 if class_of is None else len(class_of)
