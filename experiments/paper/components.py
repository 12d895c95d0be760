"""Synthetic neighborhoods: GCN and Gumbel-MPNN if each class has k neighborhood distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch_geometric.data import Data

from experiments.charts import Chart
from experiments.experiment import Experiment, Job, Results
from experiments.rows import (
    NO_DATA,
    PAIRED,
    Columns,
    difference,
    figures,
    grid,
    paragraphs,
    score,
    settings_of_rewired,
)
from gumbel_mpnn.data import mixture_neighborhoods
from gumbel_mpnn.report import MODEL_NAMES, Row
from gumbel_mpnn.runs.run import Run

DATASET = "actor"
COMPONENTS = range(1, 8)
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
    title = f"Synthetic neighborhoods on {DATASET}"
    headings: Mapping[str, str] = {
        "components": "neighborhoods per class",
        "difference": "Gumbel-MPNN − this GCN",
        "verdict": "Gumbel-MPNN is",
    }
    charts = (
        Chart(
            "components",
            "neighborhood distributions per class",
            f"{DATASET} with synthetic neighborhoods",
            series=("model", "settings"),
        ),
    )

    def plan(self) -> list[Job]:
        """Return jobs for both models and every k, with the tuned presets and the paper's.

        The paper's two models differ in depth. A GCN with the settings of the paper's Gumbel-MPNN is added, so that the
        effect of rewiring can be seen, and a Gumbel-MPNN without candidates, which shows what the candidates do.
        """
        jobs = [
            Job(DATASET, "gcn"),
            Job(DATASET, "gumbel-mpnn"),
            Job(DATASET, "gcn", "paper"),
            Job(DATASET, "gcn", "paper", overrides=settings_of_rewired(DATASET)),
            Job(DATASET, "gumbel-mpnn", "paper"),
            Job(DATASET, "gumbel-mpnn", "paper", overrides=ONLY_GIVEN),
        ]
        return [replace(job, transform=MixtureNeighborhoods(k)) for k in COMPONENTS for job in jobs]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each model, settings and k; each GCN is compared with Gumbel-MPNN of the same preset."""
        rewired = {
            (job.transform, job.preset): run
            for job, run in results.items()
            if job.model == "gumbel-mpnn" and not job.overrides
        }
        return [_row(job, run, rewired.get((job.transform, job.preset))) for job, run in results.items()]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each k, with models and settings as columns."""
        named = [{**row, "who": f"{MODEL_NAMES[str(row['model'])]}, {row['settings']}"} for row in rows]
        return paragraphs(
            "Test accuracy in percent ± standard error. Bold: a GCN that Gumbel-MPNN of the same preset is"
            " significantly below (paired test).",
            grid(
                named,
                ("components",),
                "who",
                lambda row: score(row, bold=str(row["verdict"]).startswith("worse")),
                self.headings,
            ),
        )


def _settings(job: Job) -> str:
    if job.model == "gcn" and job.overrides:
        return WITHOUT_REWIRING
    return SETTINGS[job.preset] + ", no candidates" * bool(job.overrides)


def _row(job: Job, run: Run | None, rewired: Run | None) -> Row:
    row: Columns = {
        "dataset": job.dataset,
        "components": job.transform.components if isinstance(job.transform, MixtureNeighborhoods) else None,
        "model": job.model,
        "settings": _settings(job),
        **dict.fromkeys(("test", "std", "stderr", "n", *PAIRED)),
    }
    if run is None:
        return row | {"verdict": NO_DATA}
    row |= figures(run)
    return row if job.model == "gumbel-mpnn" or rewired is None else row | difference(rewired, run)
