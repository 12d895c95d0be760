"""Edge noise: models trained on the clean graph and tested on a graph with random edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from experiments.charts import Chart
from experiments.experiment import PAPER_RUNS, Experiment, Job, Results
from experiments.rows import NO_DATA, Columns, grid, override, paragraphs, score, settings_of_rewired, spread
from gumbel_mpnn.data import add_noise_edges
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run, Summary

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
    headings: Mapping[str, str] = {
        "changed": "changed in the preset",
        "edges": "noise edges",
        "kept": "% kept",
        "kept_stderr": "std error",
    }
    measured = f"noise-{'-'.join(map(str, COUNTS))}"
    charts = tuple(
        Chart(
            "edges",
            "random edges added at test nodes",
            f"{DATASET} with noise edges: {whose} settings",
            series=("model", "preset", "changed"),
            where={"preset": presets},
            log_x=True,
        )
        for whose, presets in (("our", ("tuned", "robust")), ("the paper's", ("paper", "literal")))
    )

    def plan(self) -> list[Job]:
        """Return jobs for plain models, DropEdge, Gumbel-MPNN and its control, and for the paper's models.

        The paper's GCN and Gumbel-MPNN differ in width. A GCN with the settings of the latter is added, so that the
        effect of rewiring can be seen.
        """
        return [
            *(Job(DATASET, model, experiment="backbones") for model in ("gcn", "sage", "gat")),
            Job(DATASET, "drop-edge", experiment="accuracy"),
            *(Job(DATASET, model, experiment="rewiring") for model in (REWIRED, "frozen")),
            Job(DATASET, REWIRED, "robust", self.name),
            Job(DATASET, "gcn", "paper", PAPER_RUNS),
            Job(DATASET, "gcn", "paper", PAPER_RUNS, settings_of_rewired(DATASET)),
            *(Job(DATASET, REWIRED, "paper", PAPER_RUNS, overrides) for overrides in ORIGIN),
            Job(DATASET, REWIRED, "literal", PAPER_RUNS),
        ]

    def collect(self, results: Results) -> list[Row]:
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
                rows.append(row | dict.fromkeys(names) | {"verdict": NO_DATA})
                continue
            clean = [record.test_or_nan for record in run.records]
            noisy = self.kept(run)
            for count in COUNTS:
                scores = noisy[str(count)] if count else clean
                rows.append(row | {"edges": count, **_figures(scores, clean), "n": run.n, "verdict": ""})
        return rows

    def measure(self, run: Run) -> dict[str, list[float]]:
        """Return the test metric of every run by the number of noise edges."""
        return {str(count): list(scores_with_noise(run, count)) for count in COUNTS if count}

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each model, with the numbers of noise edges as columns."""
        return paragraphs(
            "Test accuracy in percent ± standard error by the number of noise edges.",
            grid(rows, ("model", "preset", "changed"), "edges", score, self.headings),
        )


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
        noisy = add_noise_edges(run.data, count, seed=split, nodes=masks.reshape(len(masks), -1)[:, split])
        noisy.test_mask = masks
        scores[split] = run.scores(noisy, [record for record in run.records if record.split == split])
    for record in run.records:
        yield scores[record.split].pop(0)
