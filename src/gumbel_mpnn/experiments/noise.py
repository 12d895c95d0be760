"""Models trained on the clean graph, judged on a graph that random edges were added to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gumbel_mpnn.data.tasks import add_noise_edges
from gumbel_mpnn.experiments.base import Job, Row
from gumbel_mpnn.runs import Run, Summary

COUNTS = (0, 100, 500, 1_000, 10_000, 50_000)
"""Noise edges, each at a test node (the paper's counts)."""


class Noise:
    """Test-time edge noise on Cora: what is left of the accuracy."""

    name = "noise"
    title = "Edge noise at test time"
    headings: Mapping[str, str] = {
        "preset": "preset",
        "n": "runs",
        **{f"at_{count}": f"{count:,} edges" for count in COUNTS},
        "kept": f"% kept at {COUNTS[-1]:,}",
    }

    def plan(self) -> list[Job]:
        """Plain models, the rewired model with its tuned preset, and the one that was taught to tell noise."""
        plain = [Job("cora", model, experiment="backbones") for model in ("gcn", "sage", "gat")]
        tuned = Job("cora", "gumbel-mpnn", experiment="rewiring")
        return [*plain, tuned, Job("cora", "gumbel-mpnn", "robust", experiment=self.name)]

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """The mean accuracy on the test nodes of each run's own split, in per cent, one column for each count."""
        rows: list[Row] = []
        for job, run in results.items():
            row: dict[str, str | int | float | None] = {"model": job.model, "preset": job.preset}
            if run is None:
                rows.append(row | dict.fromkeys(list(self.headings)[1:]))
                continue
            means = {count: 100 * Summary.of(_scores(run, count)).mean for count in COUNTS}
            row |= {"n": run.n, **{f"at_{count}": mean for count, mean in means.items()}}
            rows.append(row | {"kept": 100 * means[COUNTS[-1]] / means[0]})
        return rows


def _scores(run: Run, count: int) -> Iterator[float]:
    """The test metric of every run on its own noisy graph; all seeds of a split see the same one."""
    splits = sorted({record.split for record in run.records})
    for split in splits:
        test_mask = run.data.test_mask if run.data.test_mask.dim() == 1 else run.data.test_mask[:, split]
        noisy = add_noise_edges(run.data, count, seed=split, nodes=test_mask)
        yield from run.scores(noisy, [record for record in run.records if record.split == split])
