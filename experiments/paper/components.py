"""Synthetic neighborhoods: GCN and Gumbel-MPNN if each class has k neighborhood distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from experiments.charts import Chart
from experiments.experiment import Experiment, Job, Results
from experiments.rows import (
    MODEL_NAMES,
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
from gumbel_mpnn.graph import pairs_of, undirected_keys, without_pairs
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

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
    """Transform that replaces the edges of a graph by heterophilous ones, from k neighborhood distributions per class.

    A distribution is uniform over a few other classes (`neighborhood_supports`). Each node is assigned one of the k
    distributions of its class, `component` [N]. For each neighbor it draws a class from it, then a node of that class.
    A node also gets the edges that other nodes draw to it, so that a node of degree d draws d/2 neighbors, rounded up.
    The mean degree stays about the same, high degrees are about halved, and about half of all neighbors follow the
    node's own distribution. Unlabelled nodes lose their edges.
    """

    components: int
    seed: int = 0

    def __call__(self, data: Data) -> Data:
        """Return the data with new edges."""
        y, num_nodes = data.y.cpu().numpy(), len(data.y)
        nodes = np.argsort(y, kind="stable")[(y < 0).sum() :]  # by class
        classes, first, size = np.unique(y[nodes], return_index=True, return_counts=True)
        rng = np.random.default_rng((self.seed, 0, 2))  # a stream that is not used for splits
        component = np.where(y < 0, -1, (rng.random(num_nodes) * self.components).astype(np.int64))

        pairs = pairs_of(undirected_keys(data.edge_index.cpu(), num_nodes), num_nodes)
        degree = np.where(y < 0, 0, pairs.flatten().bincount(minlength=num_nodes).numpy())
        node = np.repeat(np.arange(num_nodes), (degree + 1) // 2)
        kind = np.searchsorted(classes, y[node]) * self.components + component[node]
        supports = list(chain(*neighborhood_supports(len(classes), self.components, self.seed)))
        sizes = np.array([len(support) for support in supports])
        drawn = _pick(np.concatenate(supports), np.cumsum(sizes) - sizes, sizes, kind, rng)
        neighbor = _pick(nodes, first, size, drawn, rng)

        mixture = without_pairs(data, num_nodes)
        ends = torch.from_numpy(np.stack([neighbor, node])).to(data.y.device)
        mixture.edge_index = to_undirected(ends, num_nodes=num_nodes)
        mixture.component = torch.from_numpy(component).to(data.y.device)
        mixture.name = f"{data.name}-mixture-{self.components}"
        return mixture


def _pick(members: Any, first: Any, size: Any, group: Any, rng: np.random.Generator) -> Any:
    """Draw one of the `size` members of each group, which begin at `first`."""
    return members[first[group] + (rng.random(len(group)) * size[group]).astype(np.int64)]


def neighborhood_supports(num_classes: int, components: int, seed: int = 0) -> list[list[tuple[int, ...]]]:
    """Return `components` different sets of other classes for each class: the first of those for any larger number.

    All pairs are used first, then single classes, then triples. The sets of each size are shuffled.
    """
    supports = []
    for label in range(num_classes):
        rng = np.random.default_rng((seed, label, 1))
        others = [other for other in range(num_classes) if other != label]
        sizes = [list(combinations(others, size)) for size in (2, 1, 3)]
        supports.append([sets[k] for sets in sizes for k in rng.permutation(len(sets))][:components])
    return supports


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
