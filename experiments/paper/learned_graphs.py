"""Graphs before and after rewiring: neighborhoods within a class, and degrees where a degree is the goal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from torch_geometric.data import Data

from experiments.experiment import (
    PAPER_DATASETS,
    PAPER_PRESETS,
    PAPER_RUNS,
    STRUCTURE_DATASETS,
    UNFILTERED,
    Experiment,
    Job,
    Results,
)
from experiments.kept import kept
from experiments.published import SHARE, PaperNumber, published
from experiments.rows import DASH, Columns, grid, over_runs, paragraphs
from gumbel_mpnn.measures import MEASURES, decompose, measure, std_per_class
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Record, Run

GIVEN, LEARNED = "given", "learned"
CHOSEN, LAST = "chosen", "last"
EPOCHS: Mapping[str, tuple[str, ...]] = {
    CHOSEN: (),
    LAST: ("train.select=last", "train.patience=0", "train.eval_every=100"),
}
"""Epochs whose graphs are described, with the settings that keep them: validation's choice, and the end of training.

No choice is made on the way to the last epoch, so evaluations there, a quarter of the time, are left out.
"""
COMPARED = LAST
"""Epoch whose graphs are compared with the paper's numbers, which do not say their epoch; a number counts once."""
SAMPLE = 5
"""Number of splits whose graphs are described by measures that take seconds for a graph."""
PAPERS_GIVEN, PAPERS_LEARNED = "given, paper", "learned, paper"
GOAL = ("rewiring.regularizer=degree", "rewiring.regularizer.weight=1.0", "rewiring.regularizer.target=0")
"""The weight is high: a node that lacks five neighbors adds 25 to a cross-entropy of about 1."""
ABOVE_MEAN = 5.0
"""With the target 0, the goal is the mean degree of the given graph plus this."""
DEGREES = ("degree_min", "degree_mean", "degree_max")

Measured = Mapping[str, float | None]


def with_spread(headings: Mapping[str, str]) -> dict[str, str]:
    """Return the headings of measures, each followed by that of its standard deviation."""
    return {key: text for name, head in headings.items() for key, text in ((name, head), (f"{name}_std", "±"))}


def sample(records: Sequence[Record]) -> list[Record]:
    """Return the runs with the first seed of the first `SAMPLE` splits."""
    first = min(record.seed for record in records)
    return sorted((r for r in records if r.seed == first), key=lambda record: record.split)[:SAMPLE]


class LearnedGraphs(Experiment):
    """A table with rows for the given graph of each data set and for the graphs that Gumbel-MPNN learns from it."""

    measures_shown: Mapping[str, str]
    """Measures of graphs, each with its heading; the table has a mean and a standard deviation of each."""
    compared: tuple[str, ...] = ()
    """Measures with published numbers of learned graphs."""

    @abstractmethod
    def rows_of(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        """Return the rows of a data set; there are no runs if its files are missing."""

    def collect(self, results: Results) -> list[Row]:
        """Return rows for the given graph of each data set and for the graphs learned from it."""
        found: dict[str, dict[Job, Run]] = {}
        for job, run in results.items():
            found.setdefault(job.dataset, {}).update({} if run is None else {job: run})
        return [row for dataset, runs in found.items() for row in self.rows_of(dataset, runs)]

    def paper_jobs(
        self, datasets: Iterable[str], experiment: str = PAPER_RUNS, overrides: tuple[str, ...] = ()
    ) -> list[Job]:
        """Return jobs of Gumbel-MPNN with the paper's presets, which keep the chosen epoch and the last."""
        return [
            Job(dataset, "gumbel-mpnn", preset, experiment, (*overrides, *epoch))
            for dataset in datasets
            for preset in PAPER_PRESETS
            for epoch in EPOCHS.values()
        ]

    def row(self, dataset: str, graph: str, values: Row, job: Job | None = None) -> Row:
        """Return a row of a graph, which a job learned or no one did."""
        names = [name for name in self.headings if name not in ("preset", "epoch")]
        preset, epoch = (None, None) if job is None else (job.preset, epoch_of(job))
        own = {name: values.get(name) for name in names}
        return {"dataset": dataset, "graph": graph, "preset": preset, "epoch": epoch, **own}

    def numbers(self) -> list[PaperNumber]:
        """Return the published numbers of learned graphs, for each of the paper's presets."""
        return [
            PaperNumber(
                dataset,
                f"{self.measures_shown[name]}, rewired, {COMPARED} epoch",
                value,
                {"dataset": dataset, "graph": LEARNED, "preset": preset, "epoch": COMPARED},
                name,
                "gumbel-mpnn",
                tolerance=SHARE * abs(value),
                preset=preset,
            )
            for preset in (PAPER_PRESETS if self.compared else ())
            for dataset, values in published(self.name).items()
            for name, value in values.items()
        ]

    def grids(self, rows: Sequence[Row], measures: Mapping[str, int]) -> str:
        """Return a table for each of these measures, shown with so many decimals, with the graphs as columns."""
        parts = []
        for name, digits in measures.items():
            lines = [{**row, "of": _graph_of(row)} for row in rows]
            table = grid(lines, ("dataset",), "of", partial(_mean, name=name, digits=digits))
            parts += [f"{self.measures_shown[name].capitalize()}:" if table else "", table]
        return paragraphs(*parts)


def epoch_of(job: Job) -> str:
    """Return the name of the epoch that a job keeps."""
    return LAST if set(EPOCHS[LAST]) <= set(job.overrides) else CHOSEN


def _graph_of(row: Row) -> str:
    return str(row["graph"]) if row["preset"] is None else f"{row['preset']}, {row['epoch']}"


def _mean(row: Row, name: str, digits: int) -> str:
    value, std = row.get(name), row.get(f"{name}_std")
    if value is None:
        return DASH
    text = f"{float(value):.{digits}f}"
    return text if std is None else f"{text}±{float(std):.{digits}f}"


class Consistency(LearnedGraphs):
    """Std per class and clusters of a Gaussian mixture, for the given and the learned graphs."""

    name = "consistency"
    title = "Neighborhoods within a class before and after rewiring"
    measures_shown: Mapping[str, str] = {"std": "std per class", "clusters": "clusters"}
    headings: Mapping[str, str] = {
        "preset": "preset",
        "epoch": "epoch",
        **with_spread(measures_shown),
        "n": "runs",
        "clustered": "of them clustered",
        "paper_std": "paper's std",
        "paper_clusters": "paper's clusters",
    }
    digits = 4
    compared = ("std", "clusters")
    measured = f"consistency-of-runs-{SAMPLE}-sklearn"
    measured_given = f"consistency-of-given-{SAMPLE}-sklearn"

    def plan(self) -> list[Job]:
        """Return the jobs of Gumbel-MPNN with tuned settings and with the paper's presets.

        The paper uses the unfiltered Squirrel and Chameleon.
        """
        tuned = [Job(dataset, "gumbel-mpnn", experiment="rewiring") for dataset in (*PAPER_DATASETS, *UNFILTERED)]
        return [*tuned, *self.paper_jobs(STRUCTURE_DATASETS)]

    def measure(self, run: Run) -> list[Measured]:
        """Measure the graph of each run with the labels of all nodes, including test nodes; nothing is trained.

        The graphs of a few runs are clustered, each with another seed. Learned graphs list both directions of an edge,
        if both are learned, so that neighbors are the nodes whose messages arrive.
        """
        seeds = {record.replica: seed for seed, record in enumerate(sample(run.records))}
        measured: list[Measured] = []
        for record, graph in zip(run.records, run.graphs(), strict=True):
            seed = seeds.get(record.replica)
            clusters = None if seed is None else _clusters(graph, seed, directed=True)
            measured.append({"std": std_per_class(graph, directed=True), "clusters": clusters})
        return measured

    def rows_of(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        """Return a row for the given graph and one for each job."""
        learned = published("consistency").get(dataset, {})
        before = {
            "paper_std": published("measures").get(dataset, {}).get("std_per_class"),
            "paper_clusters": published("mixtures").get(dataset, {}).get("components"),
        }
        after = {"paper_std": learned.get("std"), "paper_clusters": learned.get("clusters")}
        if not runs:
            pairs = ((GIVEN, before), (LEARNED, after))
            return [self.row(dataset, f"{graph}: no data", paper) for graph, paper in pairs]
        rows = [self.row(dataset, GIVEN, self._given(next(iter(runs.values()))) | before)]
        for job, run in runs.items():
            measured = self.kept(run)
            clustered = sum(each["clusters"] is not None for each in measured)
            values = {**over_runs(measured, counts=["clusters"]), "n": len(measured), "clustered": clustered}
            rows.append(self.row(dataset, LEARNED, values | (after if job.preset in PAPER_PRESETS else {}), job))
        return rows

    def _given(self, run: Run) -> Columns:
        """Return the measures of the given graph; its clusters are a mean over as many seeds as runs are clustered."""
        measured: dict[str, Any] = kept(run, self.measured_given, partial(_measure_given, run.data))
        clusters: list[Measured] = [{"clusters": count} for count in measured["clusters"]]
        return {"std": measured["std"], **over_runs(clusters, counts=["clusters"])}

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a table for each measure, with the paper's numbers."""
        papers: list[Row] = []
        for row in rows:
            graph = PAPERS_GIVEN if str(row["graph"]).startswith(GIVEN) else PAPERS_LEARNED
            values = {"std": row["paper_std"], "std_std": None, "clusters": row["paper_clusters"], "clusters_std": None}
            papers.append({**row, **values, "graph": graph, "preset": None})
        known = {row["dataset"] for row in rows if row["std"] is not None}
        lines = [row for row in (*rows, *papers) if row["dataset"] in known and (row["std"] or row["clusters"])]
        return self.grids(lines, {"std": 4, "clusters": 1})


def _measure_given(graph: Data) -> dict[str, Any]:
    return {"std": std_per_class(graph), "clusters": [_clusters(graph, seed) for seed in range(SAMPLE)]}


def _clusters(graph: Data, seed: int, directed: bool = False) -> int:
    return decompose(graph, seeds=[seed], directed=directed).total


class DegreeGoal(LearnedGraphs):
    """Degrees of the given and of the learned graphs if the mean degree plus 5 is the goal, and the published ones."""

    name = "degree"
    title = "Learning a mean degree that is higher by five"
    measures_shown: Mapping[str, str] = {name: MEASURES[name].heading for name in DEGREES} | {
        "expected": "expected mean degree"
    }
    headings: Mapping[str, str] = {
        "preset": "preset",
        "epoch": "epoch",
        **with_spread(measures_shown),
        "goal": "goal for the mean",
        "best_epoch": "number of the epoch",
        "test": "test %",
        "n": "runs",
    }
    compared = DEGREES
    measured = "degree-of-runs"

    def plan(self) -> list[Job]:
        """Return jobs with the paper's presets and the degree as the regularizer."""
        return self.paper_jobs(STRUCTURE_DATASETS, self.name, GOAL)

    def measure(self, run: Run) -> list[Measured]:
        """Return the degrees of the graph of each run."""
        return [_degrees_of(graph) for graph in run.graphs(threshold=0.0)]

    def rows_of(self, dataset: str, runs: Mapping[Job, Run]) -> list[Row]:
        """Return rows for the given graph, for the learned graphs, and for the paper's two graphs."""
        before = next((measure(run.data, DEGREES) for run in runs.values()), {})
        papers = {PAPERS_GIVEN: published("measures"), PAPERS_LEARNED: published("degree")}
        return [
            self.row(dataset, GIVEN if runs else "no data", before),
            *(self.row(dataset, LEARNED, self._learned(run, before), job) for job, run in runs.items()),
            *(self.row(dataset, graph, table.get(dataset, {})) for graph, table in papers.items()),
        ]

    def _learned(self, run: Run, before: Measured) -> Row:
        return {
            **over_runs(self.kept(run), counts=["degree_min", "degree_max"]),
            "goal": float(before["degree_mean"] or 0) + ABOVE_MEAN,
            "best_epoch": fmean(record.best_epoch for record in run.records),
            "test": 100 * run.test.mean,
            "n": run.n,
        }

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a table of mean degrees, with the paper's."""
        known = {row["dataset"] for row in rows if row["graph"] == LEARNED}
        return self.grids([row for row in rows if row["dataset"] in known], {"degree_mean": 2})


def _degrees_of(graph: Data) -> Measured:
    """Return degrees by all pairs of a graph: of edges with a probability of at least one half, and expected.

    A degree is the number of edges to a node. The expected one is the sum of their probabilities.
    """
    nodes = int(graph.num_nodes or 0)
    likely = graph.edge_probability >= 0.5
    degree = graph.edge_index[1, likely].bincount(minlength=nodes)
    return {
        "degree_min": int(degree.min()),
        "degree_mean": float(degree.double().mean()),
        "degree_max": int(degree.max()),
        "expected": float(graph.edge_probability.double().sum()) / nodes,
    }
