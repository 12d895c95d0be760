"""Consistency of the neighborhoods of a class before and after rewiring: their spread and number of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch_geometric.data import Data

from gumbel_mpnn.measures import decompose, std_per_class
from gumbel_mpnn.paper.base import PAPER_DATASETS, PAPER_RUNS, STRUCTURE_DATASETS, UNFILTERED, Job, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber, of_learned_graphs
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run

SEEDS = 3
FIGURES = ("std", "clusters", "fewest", "most")
GIVEN, PAPERS = "given", "learned, the paper's settings"
LEARNED = {"tuned": "learned, tuned settings", "paper": PAPERS}


class Consistency(Experiment):
    """Std per class and clusters of a Gaussian mixture, for the given and the learned graph."""

    name = "consistency"
    title = "Neighborhoods within a class before and after rewiring"
    headings: Mapping[str, str] = {
        "std": "std per class",
        "fewest": "fewest by a seed",
        "most": "most by a seed",
        "paper_std": "paper's std",
        "paper_clusters": "paper's clusters",
    }
    digits = 4
    from_models = f"consistency-{SEEDS}"

    def plan(self) -> list[Job]:
        """Return the jobs of Gumbel-MPNN with tuned settings and with the paper's settings.

        The paper uses the unfiltered Squirrel and Chameleon.
        """
        return [
            *(Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in (*PAPER_DATASETS, *UNFILTERED)),
            *(Job(dataset, "gumbel-mpnn", "paper", experiment=PAPER_RUNS) for dataset in STRUCTURE_DATASETS),
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return rows for the given graph of each data set and for the graphs learned from it."""
        found: dict[str, dict[str, Run | None]] = {}
        for job, run in results.items():
            found.setdefault(job.dataset, {})[LEARNED[job.preset]] = run
        return [row for dataset, runs in found.items() for row in _rows(dataset, runs)]

    def numbers(self) -> list[PaperNumber]:
        """Return the numbers of learned graphs; those of given graphs belong to `measures` and `mixtures`."""
        return of_learned_graphs("consistency", {"std": "std per class", "clusters": "clusters"}, PAPERS)


def _rows(dataset: str, runs: Mapping[str, Run | None]) -> list[Row]:
    paper = {
        GIVEN: {
            "std": published("measures").get(dataset, {}).get("std_per_class"),
            "clusters": published("mixtures").get(dataset, {}).get("components"),
        },
        PAPERS: published("consistency").get(dataset, {}),
    }
    given = next((run.data for run in runs.values() if run is not None), None)
    described = {
        GIVEN: None if given is None else _describe(given),
        **{
            name: None if run is None else run.stored(Consistency.from_models, partial(_learned, run))
            for name, run in runs.items()
        },
    }
    return [
        {
            "dataset": dataset,
            "graph": name if figures is not None else f"{name}: no data",
            **(figures or dict.fromkeys(FIGURES)),
            "paper_std": paper.get(name, {}).get("std"),
            "paper_clusters": paper.get(name, {}).get("clusters"),
        }
        for name, figures in described.items()
    ]


def _learned(run: Run) -> Row:
    return _describe(run.rewire())


def _describe(graph: Data) -> Row:
    """Measure a graph with the labels of all nodes, including test nodes; nothing is trained."""
    found = decompose(graph, seeds=SEEDS, cache=True)
    fewest, most = found.spread
    return {"std": std_per_class(graph), "clusters": found.total, "fewest": fewest, "most": most}
