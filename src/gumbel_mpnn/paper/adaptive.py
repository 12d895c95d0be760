"""Attacks on each trained model through all of its parts: PyG's PRBCD and GRBCD, by gradients of edge weights."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.paper.compared import (
    HEADINGS,
    OURS,
    PERCENT,
    Case,
    Entry,
    accuracy_chart,
    best_in_each,
    compared,
    jobs_of,
    variant_of,
)
from gumbel_mpnn.paper.page import Experiment
from gumbel_mpnn.paper.remarks import gains, remarks_of, table_of, tests_of
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.query import Record
from gumbel_mpnn.runs.trained import models_of, task_of
from gumbel_mpnn.training import Task, pick_device, prepare

DATASETS = ("attacked-cora", "attacked-citeseer")
MODELS = ("mlp", "gcn", "sage", "jaccard", "soft-median", *OURS)
SEEDS = 3
"""The graphs have one split, and the attacks on a model take minutes for each seed."""
BUDGETS = (5, 10, 20, 40)
"""Numbers of edges that an attack may add or remove, in per cent of all edges."""
ATTACKS = {"PRBCD": "PRBCDAttack", "GRBCD": "GRBCDAttack"}
BLOCK, STEPS, FINAL_SAMPLES = 50_000, 125, 20
"""Pairs that an attack considers at a time, its steps, and graphs that it draws at the end."""
FULL_EFFORT = 250
"""Epochs of training from which on an attack makes its full effort; the small version has fewer of both."""


class Adaptive(Experiment):
    """Test accuracy after an attack that is made for each trained model, at test time."""

    of_paper = False
    name = "adaptive"
    title = "Adaptive attacks"
    percent = (*PERCENT, "budget")
    headings: Mapping[str, str] = {**HEADINGS, "budget": "edges changed, %"}
    from_models = f"adaptive-2-{'-'.join(map(str, (*BUDGETS, BLOCK, STEPS, FINAL_SAMPLES)))}"
    charts = tuple(
        accuracy_chart(
            "budget",
            "edges changed, %",
            f"{dataset.removeprefix('attacked-')}, {attack}",
            dataset=(dataset,),
            attack=("none", attack),
        )
        for dataset in DATASETS
        for attack in ATTACKS
    )

    def plan(self) -> list[Job]:
        """Return the jobs of all models on each clean graph."""
        return [job for dataset in DATASETS for job in jobs_of(MODELS, dataset, seeds=SEEDS)]

    def quick_plan(self) -> list[Job]:
        """Return the jobs on one graph."""
        return list(jobs_of(MODELS, DATASETS[0], seeds=SEEDS))

    def collect(self, results: Mapping[Job, Run | None]) -> list[Row]:
        """Return one row for each graph, attack, budget and model; settings are chosen on the clean graph.

        The p-values of a model are corrected for the number of attacks on a graph.
        """
        cases: dict[Case, dict[str, Entry | None]] = {}
        for case, entries in best_in_each(results, lambda job: (("dataset", job.dataset),)).items():
            cases[(*case, ("attack", "none"), ("budget", 0))] = entries
            for model, entry in entries.items():
                scores = None
                if entry is not None:
                    scores = self.taken(entry.run)
                for attack, budget in product(ATTACKS, BUDGETS):
                    after = None
                    if entry is not None and scores is not None:
                        vals = [record.val for record in entry.run.records]
                        after = entry.with_results(scores[attack][str(budget)], vals)
                    cases.setdefault((*case, ("attack", attack), ("budget", budget)), {})[model] = after
        return compared(cases, within="dataset")

    def measure(self, run: Run) -> dict[str, dict[str, list[float]]]:
        """Return the test metric of each run after each attack on its own model, by attack and budget in per cent."""
        task = task_of(run, device=pick_device("auto"))
        found: dict[str, dict[str, list[float]]] = {attack: {str(n): [] for n in BUDGETS} for attack in ATTACKS}
        for record, model in zip(run.records, models_of(run, task, run.records), strict=True):
            for attack, by_budget in found.items():
                for budget, scores in by_budget.items():
                    perturbed = attacked(run, record, Victim(run, model, task), task, attack, float(budget) / 100)
                    scores += run.scores(perturbed, [record])
        return found

    def take(self, job: Job, run: Run) -> None:
        """Store the results of attacks, unless other settings of the model may be chosen, which alone is attacked."""
        if not variant_of(job):
            super().take(job, run)

    def remarks(self, results: Mapping[Job, Run | None], rows: Sequence[Row]) -> str:
        """Return verdicts of our models, and a table of all models at the largest budget, compared with the MLP."""
        tests = tests_of([row for row in rows if row["budget"] == BUDGETS[-1]], "attack")
        figures: dict[tuple[str, str], tuple[float | None, ...]] = {}
        for (dataset, model), mine in tests.items():
            lowest, mlp = min(mine.values()), tests.get((dataset, "mlp"))
            to_mlp = None if mlp is None else lowest - min(mlp.values())
            figures[dataset, model] = (*(mine.get((attack,)) for attack in ATTACKS), to_mlp)
        names = (*(f"{attack}, {BUDGETS[-1]} % of the edges" for attack in ATTACKS), "lower of both less MLP")
        return remarks_of(gains(rows), table_of(names, figures))


def attacked(run: Run, record: Record, victim: Victim, task: Task, attack: str, share: float) -> Data:
    """Return the training graph after an attack on the test nodes of a run that changes this share of its edges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its interface may change
        from torch_geometric.contrib.nn import models as attacks
    effort = min(1.0, run.settings.train.epochs / FULL_EFFORT)
    steps, budget = max(1, round(effort * STEPS)), max(1, round(share * int(task.graph.is_original.sum())))
    attacker = getattr(attacks, ATTACKS[attack])(
        victim,
        block_size=max(2 * budget, round(effort * BLOCK)),
        epochs=steps,
        **({"epochs_resampling": max(1, round(0.8 * steps))} if attack == "PRBCD" else {}),
        max_final_samples=max(1, round(effort * FINAL_SAMPLES)),
        log=False,
    )
    test_nodes = task.masks([record.replica])[2][0].nonzero().squeeze(1)
    devices = [task.y.device] if task.y.is_cuda else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(record.seed)
        features = torch.empty(len(task.y), 0, device=task.y.device)  # the victim has its own
        edges = task.graph.edge_index[:, task.graph.is_original[task.graph.arc_pair]]  # without candidates
        edge_index, _ = attacker.attack(features, edges, task.y, budget, test_nodes)
    out = copy.copy(run.data)
    out.num_nodes = run.data.num_nodes
    out.edge_index = edge_index.to(run.data.edge_index.device)
    return out


class Victim(nn.Module):
    """A trained model as an attack sees it: edges and weights → logits [N, C], with gradients of the weights.

    The graph is prepared as for training: GCN-Jaccard removes edges, and rewiring models score all pairs. Candidates
    are those of the clean graph; after the attack, when the model is evaluated, they are searched for again.
    """

    def __init__(self, run: Run, model: TrainableModel, task: Task) -> None:
        super().__init__()
        self.model, self.task, self.settings = model, task, run.settings
        self.x = run.data.x.to(task.y.device)
        graph = task.graph
        self.candidates = graph.pair_index[:, ~graph.is_original]

    def forward(self, _: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Logits of every node, [N, C]; the features are those of the run."""
        data = Data(x=self.x, edge_index=edge_index, edge_weight=edge_weight, num_nodes=len(self.x))
        if self.settings.rewiring is None:
            data = prepare(data, self.settings)
        else:
            data.candidate_index = self.candidates
        graph = PairGraph.of(data, undirected=self.settings.data.undirected)
        logits: Any = self.model(self.task.features, graph)
        # A model that ignores its edges has the gradient 0.
        return self.task.class_scores(logits[0]) + 0 * edge_weight.sum()
