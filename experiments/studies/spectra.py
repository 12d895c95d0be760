"""Spectral gap and effective resistance before and after rewiring, as measures of bottlenecks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from experiments.experiment import PAPER_DATASETS, STRUCTURE_DATASETS, Job
from experiments.paper.learned_graphs import GIVEN, LEARNED, SAMPLE, LearnedGraphs, Measured, sample, with_spread
from experiments.rows import NO_DATA, over_runs
from experiments.studies.resistance import effective_resistance, random_pairs
from gumbel_mpnn.measures import (
    directed_edges,
    largest_component,
    num_components,
    num_edges,
    spectral_gap,
    undirected_edges,
)
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run
from gumbel_mpnn.util import none_if_nan

PAIRS = 100
"""Number of random pairs of nodes whose resistance is measured; all graphs use the same pairs."""
UNCHANGED = "the learned graph is the given one"
COUNTS = {
    "edges": "edges",
    "components": "components",
    "nodes": "nodes of the largest",
    "joined": f"of {PAIRS} pairs joined",
}


class Spectra(LearnedGraphs):
    """Spectral gap and resistance of the given and of the learned graphs, which the paper names as future work."""

    name = "spectra"
    title = "Spectral gap and effective resistance before and after rewiring"
    measures_shown: Mapping[str, str] = COUNTS | {
        "gap": "spectral gap of the largest",
        "resistance": "mean resistance of joined pairs",
    }
    headings: Mapping[str, str] = {
        "preset": "preset",
        "epoch": "epoch",
        **with_spread(measures_shown),
        "given_resistance": "of these pairs in the given graph",
        "n": "runs",
    }
    digits = 4
    measured = f"spectra-of-runs-{SAMPLE}-{PAIRS}"

    def plan(self) -> list[Job]:
        """Return the jobs of Gumbel-MPNN, shared with `rewiring` and `consistency`."""
        tuned = [Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in PAPER_DATASETS]
        return [*tuned, *self.paper_jobs(STRUCTURE_DATASETS)]

    def measure(self, run: Run) -> dict[str, Any]:
        """Describe the given graph and the graphs of a few runs; a graph that did not change is not solved again."""
        pairs = random_pairs(run.data, PAIRS)
        resistance = effective_resistance(run.data, pairs)
        given = _describe(run.data, resistance, resistance)
        arcs, learned, changed = _both_ways(run.data), list[Measured](), 0
        for graph in run.graphs(records=sample(run.records)):
            if torch.equal(directed_edges(graph), arcs):
                learned.append(given)
            else:
                changed += 1
                learned.append(_describe(graph, effective_resistance(graph, pairs), resistance))
        return {"given": given, "runs": learned, "changed": changed}

    def rows_of(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        """Return a row for the given graph and one for each job."""
        found = {job: self.kept(run) for job, run in runs.items()}
        if not found:
            return [self.row(dataset, NO_DATA, {})]
        rows = [self.row(dataset, GIVEN, next(iter(found.values()))["given"])]
        for job, measured in found.items():
            changed = measured["changed"]
            values = over_runs(measured["runs"], counts=COUNTS) if changed else {}
            graph = LEARNED if changed else UNCHANGED
            rows.append(self.row(dataset, graph, {**values, "n": len(measured["runs"])}, job))
        return rows

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a table of spectral gaps and one of resistances."""
        return self.grids(rows, {"gap": 4, "resistance": 3})


def _both_ways(data: Data) -> Tensor:
    """Return both directions of all edges of a graph, sorted as those of a learned graph, [2, 2E]."""
    edges = undirected_edges(data)
    return directed_edges(Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=data.num_nodes))


def _describe(graph: Data, resistance: Tensor, given: Tensor) -> Measured:
    """Describe a graph by its resistances and those of the same pairs in the given graph.

    Resistances are averaged over pairs that both graphs connect; others have no finite value.
    """
    largest = largest_component(graph)
    gap = spectral_gap(largest)
    joined = resistance.isfinite() & given.isfinite()
    return {
        "edges": num_edges(graph),
        "components": num_components(graph),
        "nodes": int(largest.num_nodes or 0),
        "gap": none_if_nan(gap),
        "joined": int(resistance.isfinite().sum()),
        "resistance": float(resistance[joined].mean()) if joined.any() else None,
        "given_resistance": float(given[joined].mean()) if joined.any() else None,
    }
