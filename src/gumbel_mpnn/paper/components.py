"""Synthetic neighborhoods: how GCN and Gumbel-MPNN fare when every class has k kinds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec
from gumbel_mpnn.data.tasks import mixture_neighborhoods
from gumbel_mpnn.paper.base import PAIRED, Columns, Job, difference, figures, override
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run, find_preset, make_settings
from gumbel_mpnn.runs.query import flat

COMPONENTS = range(1, 8)
MODELS = ("gcn", "gumbel-mpnn")
SETTINGS = {"tuned": "tuned", "paper": "the paper's"}
"""What each family of presets is called."""
WITHOUT_REWIRING = "the paper's for Gumbel-MPNN"
"""What the settings of the paper's Gumbel-MPNN are called where a GCN has them."""


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
        "difference": "Gumbel-MPNN − this GCN",
        "low": "95 % from",
        "high": "to",
        "verdict": "Gumbel-MPNN is",
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
        """Both models for every k, with the presets of the real data set; the paper has some for its own twelve.

        The paper's two models differ in depth: a GCN with the settings of its Gumbel-MPNN tells what rewiring adds.
        """
        kinds = [Job(self.dataset, model, experiment=self.name) for model in MODELS]
        if all(find_preset("paper", self.dataset, model) for model in MODELS):
            plain, rewired = (replace(job, preset="paper") for job in kinds)
            kinds += [plain, replace(plain, overrides=_beneath(self.dataset)), rewired]
        return [replace(job, transform=MixtureNeighborhoods(k)) for k in COMPONENTS for job in kinds]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """One row for each model, settings and k; rewired runs are paired with every GCN that they stand beside."""
        rewired = {(job.transform, job.preset): run for job, run in results.items() if job.model == "gumbel-mpnn"}
        return [_row(job, run, rewired.get((job.transform, job.preset))) for job, run in results.items()]


def _beneath(dataset: str) -> tuple[str, ...]:
    """Where the settings of the paper's Gumbel-MPNN that a GCN has too are not those of the paper's GCN."""
    plain, rewired = (flat(make_settings(dataset, model, preset="paper").to_dict()) for model in MODELS)
    different = (name for name, value in plain.items() if name != "model.name" and rewired[name] != value)
    return tuple(override(name, rewired[name]) for name in different)


def _row(job: Job, run: Run | None, rewired: Run | None) -> Row:
    names = ("test", "std", "stderr", "n", *PAIRED)
    row: Columns = {
        "dataset": job.dataset,
        "components": job.transform.components if isinstance(job.transform, MixtureNeighborhoods) else None,
        "model": job.model,
        "settings": WITHOUT_REWIRING if job.overrides else SETTINGS[job.preset],
        **dict.fromkeys(names),
    }
    if run is None:
        return row | {"verdict": "no data"}
    row |= figures(run)
    return row if job.model == "gumbel-mpnn" or rewired is None else row | difference(rewired, run)
