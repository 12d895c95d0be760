"""Whether rewiring makes the neighborhoods of a class more alike: their spread and the number of their clusters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch_geometric.data import Data

from gumbel_mpnn.measures import decompose, std_per_class
from gumbel_mpnn.paper.base import PAPER_DATASETS, STRUCTURE_DATASETS, UNFILTERED, Job, Row, published
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.paper_numbers import PaperNumber, of_learned_graphs
from gumbel_mpnn.runs import Run

SEEDS = 3
FIGURES = ("std", "clusters", "fewest", "most")
GIVEN, PAPERS = "given", "learned, the paper's settings"
LEARNED = {"tuned": "learned, tuned settings", "paper": PAPERS}


class Consistency(Experiment):
    """Std per class and clusters of a Gaussian mixture, of the given and of the learned graph."""

    name = "consistency"
    title = "Neighborhoods within a class before and after rewiring"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        "std": "std per class",
        "fewest": "fewest by a seed",
        "most": "most by a seed",
        "paper_std": "paper's std",
        "paper_clusters": "paper's clusters",
    }
    digits = 4
    from_models = f"consistency-{SEEDS}"

    def plan(self) -> list[Job]:
        """The runs of the tables of Gumbel-MPNN, tuned and with the paper's settings.

        The paper's Squirrel and Chameleon are the unfiltered ones.
        """
        return [
            *(Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in (*PAPER_DATASETS, *UNFILTERED)),
            *(Job(dataset, "gumbel-mpnn", "paper", experiment="ablation") for dataset in STRUCTURE_DATASETS),
        ]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """The given graph of each data set and those learned from it."""
        found: dict[str, dict[str, Run | None]] = {}
        for job, run in results.items():
            found.setdefault(job.dataset, {})[LEARNED[job.preset]] = run
        return [row for dataset, runs in found.items() for row in _rows(dataset, runs)]

    def numbers(self) -> list[PaperNumber]:
        """Those of the learned graph; those of the given one are on the pages of measures and of mixtures."""
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
            name: None if run is None else run.keep(Consistency.from_models, partial(_learned, run))
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
    """All labels are looked at, those of test nodes too: this measures a graph and trains nothing."""
    found = decompose(graph, seeds=SEEDS, cache=True)
    fewest, most = found.spread
    return {"std": std_per_class(graph), "clusters": found.total, "fewest": fewest, "most": most}
