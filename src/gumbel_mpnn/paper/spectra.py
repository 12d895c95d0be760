"""Spectral gap and effective resistance before and after rewiring, as measures of bottlenecks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.numbers import none_if_nan
from gumbel_mpnn.measures import (
    effective_resistance,
    largest_component,
    num_components,
    num_edges,
    spectral_gap,
    undirected_edges,
)
from gumbel_mpnn.measures.edges import directed_edges
from gumbel_mpnn.paper.base import PAPER_DATASETS, STRUCTURE_DATASETS, Job
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.structure import (
    GIVEN,
    HEADINGS,
    LEARNED,
    SAMPLE,
    Measured,
    by_dataset,
    over_runs,
    paper_jobs,
    row_of,
    sample,
    with_spread,
)
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

PAIRS = 100
"""Number of random pairs of nodes whose resistance is measured; all graphs use the same pairs."""
UNCHANGED = "the learned graph is the given one"
COUNTS = {
    "edges": "edges",
    "components": "components",
    "nodes": "nodes of the largest",
    "joined": f"of {PAIRS} pairs joined",
}
MEASURED = with_spread(COUNTS | {"gap": "spectral gap of the largest", "resistance": "mean resistance of joined pairs"})
COLUMNS = (*MEASURED, "given_resistance", "n")


class Spectra(Experiment):
    """Spectral gap and resistance of the given and of the learned graphs, which the paper names as future work."""

    name = "spectra"
    title = "Spectral gap and effective resistance before and after rewiring"
    percent = ()
    headings: Mapping[str, str] = {**HEADINGS, **MEASURED, "given_resistance": "of these pairs in the given graph"}
    digits = 4
    from_models = f"spectra-of-runs-{SAMPLE}-{PAIRS}"

    def plan(self) -> list[Job]:
        """Return the jobs of Gumbel-MPNN, shared with `rewiring` and `consistency`."""
        tuned = [Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in PAPER_DATASETS]
        return [*tuned, *paper_jobs(STRUCTURE_DATASETS)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return rows for the given graph of each data set and for the graphs learned from it."""
        return [row for dataset, runs in by_dataset(results).items() for row in self._rows(dataset, runs)]

    def measure(self, run: Run) -> dict[str, Any]:
        """Describe the given graph and the graphs of a few runs; a graph that did not change is not solved again."""
        resistance = effective_resistance(run.data, samples=PAIRS)
        given = _describe(run.data, resistance, resistance)
        arcs, learned, changed = _both_ways(run.data), list[Measured](), 0
        for graph in run.graphs(records=sample(run.records)):
            if torch.equal(directed_edges(graph), arcs):
                learned.append(given)
            else:
                changed += 1
                learned.append(_describe(graph, effective_resistance(graph, samples=PAIRS), resistance))
        return {"given": given, "runs": learned, "changed": changed}

    def _rows(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        stored = {job: self.taken(run) for job, run in runs.items()}
        if not stored:
            return [row_of(dataset, "no data", {}, COLUMNS)]
        given = next(iter(stored.values()))["given"]
        rows = [row_of(dataset, GIVEN, given, COLUMNS)]
        for job, found in stored.items():
            graph = LEARNED if found["changed"] else UNCHANGED
            values = over_runs(found["runs"], counts=COUNTS) if found["changed"] else {}
            rows.append(row_of(dataset, graph, {**values, "n": len(found["runs"])}, COLUMNS, job))
        return rows


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
