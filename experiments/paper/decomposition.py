"""Models trained on the components of classes and evaluated on classes (negative result of the paper)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from experiments.experiment import TUNED_DATASETS, Experiment, Job, Results
from experiments.rows import NO_DATA, PAIRED, Columns, differences, grid, paragraphs, score
from gumbel_mpnn.data import get_spec
from gumbel_mpnn.measures import decompose, neighborhood_distributions
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

MODELS = ("gcn", "sage", "gat")
SPLITS = range(10)
CLASSES = "classes"
NAMES = {"training": "components", "all": "components (oracle)"}


@dataclass(frozen=True)
class ByComponents:
    """Transform whose labels are the components of the classes, in place of the classes themselves.

    Components are found from the labels of all nodes, or of the training nodes of a split alone. Every other node with
    a label then has the component of its class whose mean neighborhood is closest to its own.
    """

    known: Literal["training", "all"]
    split: int | None = None

    def __call__(self, data: Data) -> Data:
        """Return the data with components as `y`, and `classes` and the class of each component beside them."""
        seen = copy.copy(data)
        if self.split is not None:
            seen.y = torch.where(data.train_mask[:, self.split], data.y, -1)
        found = decompose(seen, seeds=1)
        own = found.pseudo_labels
        rows = neighborhood_distributions(seen)
        means = torch.stack([rows[own == component].mean(0) for component in range(len(found.class_of))])
        distance = torch.cdist(rows, means).masked_fill(data.y[:, None] != found.class_of, torch.inf)
        out = copy.copy(data)
        out.classes, out.class_of_component, out.metric = data.y, found.class_of, "accuracy"
        out.y = torch.where(own >= 0, own, torch.where(data.y >= 0, distance.argmin(1), -1))
        return out


class Decomposition(Experiment):
    """Models trained on classes, on components found from training labels, and on components found from all labels."""

    name = "decomposition"
    title = "Models trained on the components of classes"
    headings: Mapping[str, str] = {"labels": "trained on", "outputs": "labels", "difference": "difference to classes"}
    measured = "on-classes"

    def plan(self) -> list[Job]:
        """Return jobs for every model and data set: on classes, shared with `backbones`, and on components.

        Components that are found from training labels differ between splits, so that each split is a job.
        """
        jobs = []
        for dataset in TUNED_DATASETS:
            for model in MODELS:
                jobs.append(Job(dataset, model, experiment="backbones"))
                jobs += [
                    Job(dataset, model, transform=ByComponents("training", split), split=split) for split in SPLITS
                ]
                jobs.append(Job(dataset, model, transform=ByComponents("all")))
        return jobs

    def measures(self, job: Job) -> bool:
        """Only models that predict components are evaluated anew."""
        return job.transform is not None

    def measure(self, run: Run) -> dict[str, list[float]]:
        """Return the validation and test metric of each run on classes."""
        metric = get_spec(run.settings.dataset).metric
        found: dict[str, list[float]] = {"val": [], "test": []}
        for record in run.records:
            of_components = replace(run, records=(record,)).predict_proba()
            of_classes = torch.zeros(len(of_components), int(run.data.class_of_component.max()) + 1)
            of_classes.index_add_(1, run.data.class_of_component, of_components)
            for part, values in found.items():
                mask = run.data[f"{part}_mask"][:, record.split]
                values.append(_score(metric, of_classes[mask], run.data.classes[mask]))
        return found

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each data set, model and kind of labels, with its difference to training on classes.

        The p-values of each model and kind of components are corrected for the number of data sets, as in the other
        tables. After a correction for all comparisons of the page, ten splits could not show any difference.
        """
        runs: dict[tuple[str, str], dict[str, Run | None]] = {}
        for job, run in results.items():
            found = runs.setdefault((job.model, _labels(job)), {})
            on_classes = run if run is None or job.transform is None else self._on_classes(run)
            before = found.get(job.dataset)
            found[job.dataset] = on_classes if before is None or on_classes is None else _joined(before, on_classes)
        paired = {
            (model, labels): differences(
                {dataset: (run, runs.get((model, CLASSES), {}).get(dataset)) for dataset, run in of_data.items()}
            )
            for (model, labels), of_data in runs.items()
            if labels != CLASSES
        }
        rows: list[Row] = []
        for dataset, model, labels in dict.fromkeys((job.dataset, job.model, _labels(job)) for job in results):
            run = runs[model, labels][dataset]
            own = paired.get((model, labels), {}).get(dataset, {})
            rows.append(_row(dataset, model, labels, run) | ({} if run is None else own))
        return rows

    def _on_classes(self, run: Run) -> Run:
        """Return the runs with their metrics on classes in place of those on components."""
        scores = self.kept(run)
        results = zip(run.records, scores["val"], scores["test"], strict=True)
        return replace(run, records=tuple(replace(record, val=val, test=test) for record, val, test in results))

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each data set and model; bold where training on components differs significantly."""
        return paragraphs(
            "Test accuracy in percent (ROC-AUC for minesweeper and tolokers). Bold: significantly different from"
            " training on classes (paired test, corrected).",
            grid(
                rows,
                ("dataset", "model"),
                "labels",
                lambda row: score(row, bold=str(row["verdict"]).startswith(("better", "worse"))),
            ),
        )


def _joined(run: Run, other: Run) -> Run:
    """Return the runs of two splits, of which the first has the most components."""
    run, other = sorted((run, other), key=_num_labels, reverse=True)
    return replace(run, records=(*run.records, *other.records))


def _row(dataset: str, model: str, labels: str, run: Run | None) -> Columns:
    row: Columns = {
        "dataset": dataset,
        "model": model,
        "labels": labels,
        **dict.fromkeys(("outputs", "test", "val", "n", *PAIRED)),
    }
    if run is None:
        return row | {"verdict": NO_DATA}
    return row | {"outputs": _num_labels(run), "test": 100 * run.test.mean, "val": 100 * run.val.mean, "n": run.n}


def _labels(job: Job) -> str:
    return NAMES[job.transform.known] if isinstance(job.transform, ByComponents) else CLASSES


def _num_labels(run: Run) -> int:
    return int(run.data.y.max()) + 1


def _score(metric: str, probability: Tensor, y: Tensor) -> float:
    from sklearn.metrics import roc_auc_score

    known = y >= 0
    if metric == "roc_auc":
        return float(roc_auc_score(y[known], probability[known, 1]))
    return float((probability.argmax(1) == y)[known].double().mean())
