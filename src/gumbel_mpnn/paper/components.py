"""Synthetic neighborhoods: GCN and Gumbel-MPNN if each class has k neighborhood distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec
from gumbel_mpnn.data.tasks import mixture_neighborhoods
from gumbel_mpnn.paper.base import PAIRED, Columns, Job, beneath, difference, figures
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run, find_preset

COMPONENTS = range(1, 8)
MODELS = ("gcn", "gumbel-mpnn")
SETTINGS = {"tuned": "tuned", "paper": "the paper's"}
"""Display names of the families of presets."""
WITHOUT_REWIRING = "the paper's for Gumbel-MPNN"
"""Display name of the settings of the paper's Gumbel-MPNN if a GCN uses them."""
ONLY_GIVEN = ("rewiring.candidates=none",)
"""Overrides of a Gumbel-MPNN that keeps or drops given edges and adds none."""


@dataclass(frozen=True)
class MixtureNeighborhoods:
    """Transform that replaces the edges of a data set, with `components` neighborhood distributions for each class."""

    components: int

    def __call__(self, data: Data) -> Data:
        """Return the data with new edges."""
        return mixture_neighborhoods(data, self.components)


class Components(Experiment):
    """Nodes, features, labels and splits of a real data set, with edges generated for each k."""

    name = "components"
    headings: Mapping[str, str] = {
        "components": "neighborhoods per class",
        "difference": "Gumbel-MPNN − this GCN",
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
        """Return the experiment on another data set."""
        return Components(get_spec(dataset).name)

    def plan(self) -> list[Job]:
        """Return jobs for both models and every k, with the tuned presets and, if they exist, the paper's.

        The paper's two models differ in depth. A GCN with the settings of the paper's Gumbel-MPNN is added, so that the
        effect of rewiring can be seen, and a Gumbel-MPNN without candidates, which shows what the candidates do.
        """
        kinds = [Job(self.dataset, model, experiment=self.name) for model in MODELS]
        if all(find_preset("paper", self.dataset, model) for model in MODELS):
            plain, rewired = (replace(job, preset="paper") for job in kinds)
            kinds += [plain, replace(plain, overrides=beneath(self.dataset)), rewired]
            kinds += [replace(rewired, overrides=ONLY_GIVEN)]
        return [replace(job, transform=MixtureNeighborhoods(k)) for k in COMPONENTS for job in kinds]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each model, settings and k; each GCN is compared with Gumbel-MPNN of the same preset."""
        rewired = {
            (job.transform, job.preset): run
            for job, run in results.items()
            if job.model == "gumbel-mpnn" and not job.overrides
        }
        return [_row(job, run, rewired.get((job.transform, job.preset))) for job, run in results.items()]


def _settings(job: Job) -> str:
    if job.model == "gcn" and job.overrides:
        return WITHOUT_REWIRING
    return SETTINGS[job.preset] + ", no candidates" * bool(job.overrides)


def _row(job: Job, run: Run | None, rewired: Run | None) -> Row:
    names = ("test", "std", "stderr", "n", *PAIRED)
    row: Columns = {
        "dataset": job.dataset,
        "components": job.transform.components if isinstance(job.transform, MixtureNeighborhoods) else None,
        "model": job.model,
        "settings": _settings(job),
        **dict.fromkeys(names),
    }
    if run is None:
        return row | {"verdict": "no data"}
    row |= figures(run)
    return row if job.model == "gumbel-mpnn" or rewired is None else row | difference(rewired, run)
