"""Spectral gap and effective resistance before and after rewiring, as measures of bottlenecks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures import effective_resistance, largest_component, num_components, num_edges, spectral_gap
from gumbel_mpnn.paper.base import PAPER_DATASETS, Job
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

PAIRS = 100
"""Number of random pairs of nodes whose resistance is measured; both graphs use the same pairs."""


class Spectra(Experiment):
    """Spectral gap and resistance of the given and of the learned graph, which the paper names as future work."""

    name = "spectra"
    title = "Spectral gap and effective resistance before and after rewiring"
    headings: Mapping[str, str] = {
        "nodes": "nodes of the largest",
        "gap": "its spectral gap",
        "joined": f"of {PAIRS} pairs joined",
        "resistance": "mean resistance of pairs joined in both",
    }
    digits = 4
    from_models = f"spectra-{PAIRS}"

    def plan(self) -> list[Job]:
        """Return the jobs of Gumbel-MPNN, shared with `rewiring`."""
        return [Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in PAPER_DATASETS]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return two rows for each data set."""
        return [row for job, run in results.items() for row in _rows(job.dataset, run)]


def _rows(dataset: str, run: Run | None) -> list[Row]:
    if run is None:
        names = ("edges", "components", "nodes", "gap", "joined", "resistance")
        return [{"dataset": dataset, "graph": "no data", **dict.fromkeys(names)}]
    found = run.stored(Spectra.from_models, partial(_spectra, run))
    return [{"dataset": dataset, "graph": graph, **values} for graph, values in found.items()]


def _spectra(run: Run) -> dict[str, Row]:
    graphs = {"given": run.data, "learned": run.rewire()}
    resistances = {name: effective_resistance(graph, samples=PAIRS) for name, graph in graphs.items()}
    joined = resistances["given"].isfinite() & resistances["learned"].isfinite()
    return {name: _describe(graph, resistances[name], joined) for name, graph in graphs.items()}


def _describe(graph: Data, resistance: Tensor, joined: Tensor) -> Row:
    """Describe a graph. Resistances are averaged over pairs that both graphs connect; others have no finite value."""
    largest = largest_component(graph)
    gap = spectral_gap(largest)
    return {
        "edges": num_edges(graph),
        "components": num_components(graph),
        "nodes": int(largest.num_nodes or 0),
        "gap": None if math.isnan(gap) else gap,
        "joined": int(resistance.isfinite().sum()),
        "resistance": float(resistance[joined].mean()) if joined.any() else None,
    }
