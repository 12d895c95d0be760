"""How well `audit` finds edges that are known to be wrong: random ones, and those of an attack."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from experiments.experiment import Experiment, Job, Results
from experiments.rows import Columns
from gumbel_mpnn.data import load
from gumbel_mpnn.graph import pair_key
from gumbel_mpnn.measures import random_non_edges, undirected_edges
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run, Summary
from gumbel_mpnn.util import none_if_nan

MODELS = ("auto", "auto-frozen")
"""The best plain rung of `auto` has a row of its own."""
NOISE = "random"
"""Name of the attack that adds random edges."""
WITH_NOISE = ("cora", "citeseer", "pubmed", "blogcatalog", "squirrel", "actor")
ATTACKED = ("attacked-cora", "attacked-citeseer", "attacked-polblogs")
FIRST = 100
RANKINGS = ("evidence", "probability", "agreement", "affinity", "similarity", "common_neighbors")


@dataclass(frozen=True)
class WithRandomEdges:
    """Transform that adds random edges, as many as this share of the given ones, and marks them as `edge_is_noise`."""

    share: float = 0.1

    def __call__(self, data: Data) -> Data:
        """Return a copy with both directions of each new edge."""
        given = undirected_edges(data)
        new = random_non_edges(given, int(data.num_nodes or 0), 2 * round(self.share * given.shape[1]))
        new = new.sort(dim=0).values.unique(dim=1)
        order = torch.randperm(new.shape[1], generator=torch.Generator().manual_seed(0))
        new = new[:, order[: round(self.share * given.shape[1])]]
        out = copy.copy(data)
        out.edge_index = torch.cat([given, given.flip(0), new, new.flip(0)], dim=1)
        out.edge_is_noise = torch.arange(out.edge_index.shape[1]) >= 2 * given.shape[1]
        return out


class Audit(Experiment):
    """ROC-AUC of `audit`, and of each fact alone, for edges that were added to a graph before training."""

    name = "audit"
    title = "Finding wrong edges"
    headings: Mapping[str, str] = {
        "added": "wrong edges",
        "wrong": "their number",
        "auc": "ROC-AUC %",
        "first": f"wrong among the first {FIRST}, %",
        **{name: f"{name.replace('_', ' ').replace('probability', 'edge probability')} alone" for name in RANKINGS[1:]},
    }
    measured = "audit-2"

    def plan(self) -> list[Job]:
        """Return a job for every model on each graph with wrong edges."""
        noisy = [Job(dataset, model, transform=WithRandomEdges()) for dataset in WITH_NOISE for model in MODELS]
        attacked = [Job(dataset, model, attack="meta-0.25") for dataset in ATTACKED for model in MODELS]
        return noisy + attacked

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each model and graph: the best plain model on validation, `auto`, and its control."""
        return [
            _row(job, model, of_model, self.kept(of_model))
            for job, run in results.items()
            if run is not None
            for model, of_model in _by_model(job, run).items()
        ]

    def measure(self, run: Run) -> dict[str, Any]:
        """Audit each run by itself, so that no label of its test nodes is used."""
        wrong, runs, edges = _wrong_edges(run), list[dict[str, float | None]](), 0
        for record in run.records:
            table = replace(run, records=(record,)).audit().edges
            ends = torch.from_numpy(table[["source", "target"]].to_numpy(dtype=np.int64).T.copy())
            is_wrong = torch.isin(_key(ends, run.data), wrong).numpy()
            edges = len(table)
            runs.append(
                {name: _auc(-table[name].to_numpy(dtype=np.float64), is_wrong) for name in RANKINGS}
                | {"first": float(is_wrong[:FIRST].mean())}
            )
        return {"edges": edges, "wrong": len(wrong), "runs": runs}


def _by_model(job: Job, run: Run) -> dict[str, Run]:
    """Return the runs of a job by the name of their row; with `auto`, those of the best plain model come first."""
    if run.choice is None:
        return {job.model: run}
    best_plain, chosen = run.choice.best_plain, {f"{job.model}: {run.choice.chosen}": run}
    if job.model == "auto" and best_plain is not None and best_plain in run.rungs:
        return {f"best plain: {best_plain}": run.rungs[best_plain]} | chosen
    return chosen


def _row(job: Job, model: str, run: Run, found: Mapping[str, Any]) -> Row:
    summaries = {name: Summary.of(each[name] for each in found["runs"]) for name in (*RANKINGS, "first")}
    means: Columns = {name: _percent(summary.mean) for name, summary in summaries.items()}
    return {
        "dataset": job.dataset,
        "added": job.attack or NOISE,
        "model": model,
        "edges": found["edges"],
        "wrong": found["wrong"],
        "auc": means["evidence"],
        "stderr": _percent(summaries["evidence"].stderr) if run.n > 1 else None,
        "first": means["first"],
        **{name: means[name] for name in RANKINGS[1:]},
        "n": run.n,
    }


def _wrong_edges(run: Run) -> Tensor:
    """Keys of the edges that were added: those marked, or those that the clean graph does not have."""
    data = run.data
    if data.get("edge_is_noise") is not None:
        noise: Tensor = _key(data.edge_index[:, data.edge_is_noise], data).unique()
        return noise
    clean, poisoned = (_key(undirected_edges(graph), data) for graph in (load(run.settings.dataset), data))
    added: Tensor = poisoned[~torch.isin(poisoned, clean)]
    return added


def _key(pairs: Tensor, data: Data) -> Tensor:
    key: Tensor = pair_key(pairs.sort(dim=0).values, int(data.num_nodes or 0))
    return key


def _auc(score: NDArray[np.float64], is_wrong: NDArray[np.bool_]) -> float | None:
    """Probability that a wrong edge has a higher score than another, ties counted half; None without scores."""
    from scipy.stats import rankdata

    positive = int(is_wrong.sum())
    if np.isnan(score).any() or not 0 < positive < len(score):
        return None
    ranks = rankdata(score)[is_wrong].sum() - positive * (positive + 1) / 2
    return float(ranks / (positive * (len(score) - positive)))


def _percent(value: float) -> float | None:
    return none_if_nan(100 * value)
