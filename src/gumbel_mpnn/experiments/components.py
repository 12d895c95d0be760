"""Synthetic neighborhoods: how GCN and Gumbel-MPNN fare when every class has k kinds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec
from gumbel_mpnn.data.tasks import mixture_neighborhoods
from gumbel_mpnn.experiments.base import PAIRED, Columns, Job, Row, difference, figures
from gumbel_mpnn.experiments.page import Experiment
from gumbel_mpnn.experiments.views import Chart
from gumbel_mpnn.runs import Run, find_preset

COMPONENTS = range(1, 8)
MODELS = ("gcn", "gumbel-mpnn")
SETTINGS = {"tuned": "tuned", "paper": "the paper's"}
"""What each family of presets is called."""


@dataclass(frozen=True)
class MixtureNeighborhoods:
    """Gives a data set new edges, with `components` kinds of neighborhoods for each class."""

    components: int

    def __call__(self, data: Data) -> Data:
        """The data with the new edges."""
        return mixture_neighborhoods(data, self.components)


class Components(Experiment):
    """Nodes, features, labels and splits of a real data set; edges that are drawn anew for each k."""

    name = "components"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        "components": "neighborhoods per class",
        "test": "test %",
        "stderr": "std error",
        "n": "runs",
        "difference": "Gumbel-MPNN − GCN",
        "low": "95 % from",
        "high": "to",
    }

    def __init__(self, dataset: str = "actor") -> None:
        self.dataset = dataset
        self.title = f"Synthetic neighborhoods on {dataset}"
        self.charts = (
            Chart(
                x="components",
                y="test",
                series=("model", "settings"),
                x_label="neighborhood distributions per class",
                y_label="test accuracy, %",
                title=f"{dataset} with synthetic neighborhoods",
            ),
        )

    def on(self, dataset: str) -> Components:
        """The same on another data set."""
        return Components(get_spec(dataset).name)

    def plan(self) -> list[Job]:
        """Both models for every k, with the presets of the real data set; the paper has some for its own twelve."""
        papers = all(find_preset("paper", self.dataset, model) for model in MODELS)
        return [
            Job(self.dataset, model, preset, experiment=self.name, transform=MixtureNeighborhoods(components))
            for components in COMPONENTS
            for preset in (SETTINGS if papers else ["tuned"])
            for model in MODELS
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """One row for each model, settings and k; rewired runs are paired with the plain ones."""
        plain = {(job.transform, job.preset): run for job, run in results.items() if job.model == "gcn"}
        return [_row(job, run, plain.get((job.transform, job.preset))) for job, run in results.items()]


def _row(job: Job, run: Run | None, plain: Run | None) -> Row:
    names = ("test", "std", "stderr", "n", *PAIRED)
    row: Columns = {
        "dataset": job.dataset,
        "components": job.transform.components if isinstance(job.transform, MixtureNeighborhoods) else None,
        "model": job.model,
        "settings": SETTINGS[job.preset],
        **dict.fromkeys(names),
    }
    if run is None:
        return row | {"verdict": "no data"}
    row |= figures(run)
    return row if job.model == "gcn" else row | difference(run, plain)
