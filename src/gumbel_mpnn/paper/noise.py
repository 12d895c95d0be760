"""Edge noise: models trained on the clean graph and tested on a graph with random edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from gumbel_mpnn.data.tasks import add_noise_edges
from gumbel_mpnn.paper.base import Columns, Job, spread
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.query import Summary

COUNTS = (0, 100, 500, 1_000, 10_000, 50_000)
"""Numbers of noise edges, each at a test node, as in the paper."""


class Noise(Experiment):
    """Test accuracy on Cora with edge noise at test time."""

    name = "noise"
    title = "Edge noise at test time"
    headings: Mapping[str, str] = {
        "edges": "noise edges",
        "kept": "% kept",
        "kept_stderr": "std error",
    }
    from_models = f"noise-{'-'.join(map(str, COUNTS))}"
    charts = tuple(
        Chart(
            x="edges",
            y=y,
            series=("model", "preset"),
            x_label="random edges added at test nodes",
            y_label=label,
            title=title,
            error=error,
            log_x=True,
        )
        for y, error, label, title in (
            ("test", "stderr", "test accuracy, %", "Accuracy on cora with noise edges"),
            ("kept", "kept_stderr", "% of the accuracy kept", "The same, relative to no noise"),
        )
    )

    def plan(self) -> list[Job]:
        """Return jobs for plain models, DropEdge, and Gumbel-MPNN with the presets `tuned` and `robust`."""
        plain = [Job("cora", model, experiment="backbones") for model in ("gcn", "sage", "gat")]
        dropping = Job("cora", "drop-edge", experiment="accuracy")
        tuned = Job("cora", "gumbel-mpnn", experiment="rewiring")
        return [*plain, dropping, tuned, Job("cora", "gumbel-mpnn", "robust", experiment=self.name)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return the mean test accuracy in percent for each number of noise edges."""
        rows: list[Row] = []
        for job, run in results.items():
            row: Columns = {
                "dataset": job.dataset,
                "model": job.model,
                "preset": job.preset,
            }
            if run is None:
                names = ("edges", "test", "stderr", "kept", "kept_stderr", "n")
                rows.append(row | dict.fromkeys(names) | {"verdict": "no data"})
                continue
            clean = [record.test for record in run.records]
            noisy = run.stored(self.from_models, partial(_noisy_scores, run))
            for count in COUNTS:
                scores = noisy[str(count)] if count else clean
                rows.append(row | {"edges": count, **_figures(scores, clean), "n": run.n, "verdict": ""})
        return rows


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


def _noisy_scores(run: Run) -> dict[str, list[float]]:
    return {str(count): list(_scores(run, count)) for count in COUNTS if count}


def _scores(run: Run, count: int) -> Iterator[float]:
    """Yield the test metric of every run on a noisy graph, in the order of the records; each split has one graph."""
    by_split: dict[int, list[float]] = {}
    for split in dict.fromkeys(record.split for record in run.records):
        test_mask = run.data.test_mask if run.data.test_mask.dim() == 1 else run.data.test_mask[:, split]
        noisy = add_noise_edges(run.data, count, seed=split, nodes=test_mask)
        by_split[split] = run.scores(noisy, [record for record in run.records if record.split == split])
    for record in run.records:
        yield by_split[record.split].pop(0)
