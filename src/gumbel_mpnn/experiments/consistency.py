"""Whether rewiring makes the neighborhoods of a class more alike: their spread and the number of their clusters."""

from __future__ import annotations

from collections.abc import Mapping

from torch_geometric.data import Data

from gumbel_mpnn.experiments.base import PAPER_DATASETS, UNFILTERED, Job, Row, published
from gumbel_mpnn.experiments.page import Experiment
from gumbel_mpnn.experiments.paper_numbers import PaperNumber, of_learned_graphs
from gumbel_mpnn.measures import decompose, std_per_class
from gumbel_mpnn.runs import Run

SEEDS = 3


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
    reads_models = True

    def plan(self) -> list[Job]:
        """The runs of the table of Gumbel-MPNN; the paper's Squirrel and Chameleon are the unfiltered ones."""
        return [Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in (*PAPER_DATASETS, *UNFILTERED)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Two rows for each data set."""
        return [row for job, run in results.items() for row in _rows(job.dataset, run)]

    def numbers(self) -> list[PaperNumber]:
        """Those of the learned graph; those of the given one are on the pages of measures and of mixtures."""
        return of_learned_graphs("consistency", {"std": "std per class", "clusters": "clusters"})


def _rows(dataset: str, run: Run | None) -> list[Row]:
    paper = {
        "given": {
            "std": published("measures").get(dataset, {}).get("std_per_class"),
            "clusters": published("mixtures").get(dataset, {}).get("components"),
        },
        "learned": published("consistency").get(dataset, {}),
    }
    graphs: dict[str, Data | None] = {"given": None, "learned": None}
    if run is not None:
        graphs = {"given": run.data, "learned": run.rewire()}
    return [
        {
            "dataset": dataset,
            "graph": name if run is not None else f"{name}: no data",
            **_describe(graph),
            "paper_std": paper[name].get("std"),
            "paper_clusters": paper[name].get("clusters"),
        }
        for name, graph in graphs.items()
    ]


def _describe(graph: Data | None) -> Row:
    """All labels are looked at, those of test nodes too: this measures a graph and trains nothing."""
    if graph is None:
        return dict.fromkeys(("std", "clusters", "fewest", "most"))
    found = decompose(graph, seeds=SEEDS)
    fewest, most = found.spread
    return {"std": std_per_class(graph), "clusters": found.total, "fewest": fewest, "most": most}
