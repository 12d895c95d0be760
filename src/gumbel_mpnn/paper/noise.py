"""Edge noise: models trained on the clean graph and tested on a graph with random edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.data.tasks import add_noise_edges
from gumbel_mpnn.paper.base import PAPER_RUNS, Columns, Job, beneath, override, spread
from gumbel_mpnn.paper.page import RESULTS, Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.query import Summary

COUNTS = (0, 100, 500, 1_000, 10_000, 50_000)
"""Numbers of noise edges, each at a test node, as in the paper."""
DATASET, REWIRED = "cora", "gumbel-mpnn"
ORIGIN: Mapping[tuple[str, ...], str] = {
    (override("rewiring.origin", "fixed"),): "bias for given edges",
    (override("rewiring.origin", "none"),): "no bias for given edges",
}
"""Overrides with which Gumbel-MPNN is trained with the paper's preset, and what they change."""
LIKE_REWIRED = "settings of Gumbel-MPNN"
"""What is changed of a GCN that has the settings of the paper's Gumbel-MPNN, apart from rewiring."""


class Noise(Experiment):
    """Test accuracy on Cora with edge noise at test time."""

    name = "noise"
    title = "Edge noise at test time"
    percent = (*RESULTS, "kept", "kept_stderr")
    headings: Mapping[str, str] = {
        "changed": "changed in the preset",
        "edges": "noise edges",
        "kept": "% kept",
        "kept_stderr": "std error",
    }
    from_models = f"noise-{'-'.join(map(str, COUNTS))}"
    charts = tuple(
        Chart(
            x="edges",
            y="test",
            series=("model", "preset", "changed"),
            x_label="random edges added at test nodes",
            y_label="test accuracy, %",
            title=title,
            where={"preset": presets},
            log_x=True,
        )
        for title, presets in (
            (f"{DATASET} with noise edges: our settings", ("tuned", "robust")),
            (f"{DATASET} with noise edges: the paper's settings", ("paper", "literal")),
        )
    )

    def plan(self) -> list[Job]:
        """Return jobs for plain models, DropEdge, Gumbel-MPNN and its control, and for the paper's models.

        The paper's GCN and Gumbel-MPNN differ in width. A GCN with the settings of the latter is added, so that the
        effect of rewiring can be seen.
        """
        plain = [Job(DATASET, model, experiment="backbones") for model in ("gcn", "sage", "gat")]
        dropping = Job(DATASET, "drop-edge", experiment="accuracy")
        tuned = [Job(DATASET, model, experiment="rewiring") for model in (REWIRED, "frozen")]
        robust = Job(DATASET, REWIRED, "robust", experiment=self.name)
        papers = [
            Job(DATASET, "gcn", "paper", PAPER_RUNS),
            Job(DATASET, "gcn", "paper", PAPER_RUNS, beneath(DATASET)),
            *(Job(DATASET, REWIRED, "paper", PAPER_RUNS, overrides) for overrides in ORIGIN),
            Job(DATASET, REWIRED, "literal", PAPER_RUNS),
        ]
        return [*plain, dropping, *tuned, robust, *papers]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return the mean test accuracy in percent for each number of noise edges."""
        rows: list[Row] = []
        for job, run in results.items():
            row: Columns = {
                "dataset": job.dataset,
                "model": job.model,
                "preset": job.preset,
                "changed": ORIGIN.get(job.overrides, LIKE_REWIRED) if job.overrides else "",
            }
            if run is None:
                names = ("edges", "test", "stderr", "kept", "kept_stderr", "n")
                rows.append(row | dict.fromkeys(names) | {"verdict": "no data"})
                continue
            clean = [record.test_or_nan for record in run.records]
            noisy = self.taken(run)
            for count in COUNTS:
                scores = noisy[str(count)] if count else clean
                rows.append(row | {"edges": count, **_figures(scores, clean), "n": run.n, "verdict": ""})
        return rows

    def measure(self, run: Run) -> dict[str, list[float]]:
        """Return the test metric of every run by the number of noise edges."""
        return {str(count): list(scores_with_noise(run, count)) for count in COUNTS if count}


def _figures(scores: list[float], clean: list[float]) -> Columns:
    """Return mean and standard error in percent of the scores, and of their ratio to the scores without noise."""
    test = Summary.of(scores)
    kept = Summary.of(score / before if before else 0.0 for score, before in zip(scores, clean, strict=True))
    return {
        "test": 100 * test.mean,
        "stderr": spread(test)[1],
        "kept": 100 * kept.mean,
        "kept_stderr": spread(kept)[1],
    }


def scores_with_noise(run: Run, count: int, part: str = "test") -> Iterator[float]:
    """Yield the metric of every run on a noisy graph, in the order of the records; each split has one graph.

    With the part `val`, it is the metric of the validation nodes, with noise edges at these.
    """
    scores: dict[int, list[float]] = {}
    for split in dict.fromkeys(record.split for record in run.records):
        masks = run.data[f"{part}_mask"]
        noisy = add_noise_edges(run.data, count, seed=split, nodes=by_split(masks)[:, split])
        noisy.test_mask = masks
        scores[split] = run.scores(noisy, [record for record in run.records if record.split == split])
    for record in run.records:
        yield scores[record.split].pop(0)
