"""The demonstration: models trained and compared on a graph that the package generates."""

from __future__ import annotations

from pathlib import Path

from gumbel_mpnn.runs import Monitor, Run, fit

MODELS = ("mlp", "gcn", "gumbel-mpnn")


def run_demo(runs: Path, seeds: int = 1, device: str = "auto", monitor: Monitor | None = None) -> list[Run]:
    """Every model on every split of the demo graph, all with the same budget."""
    return [
        fit("demo", model, seeds=seeds, runs=runs, experiment="demo", device=device, monitor=monitor)
        for model in MODELS
    ]
