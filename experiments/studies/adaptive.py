"""Attacks on each trained model through all of its parts: PyG's PRBCD and GRBCD, by gradients of edge weights."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from itertools import product

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from experiments.charts import Chart
from experiments.experiment import Experiment, Job, Results
from experiments.rows import lines_of, paragraphs
from experiments.studies.compared import (
    HEADINGS,
    OURS,
    Case,
    Entry,
    best_in_each,
    compared,
    gains,
    jobs_of,
    table_of,
    table_of_cases,
    tests_of,
    variant_of,
)
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.report import Row
from gumbel_mpnn.runs import Record, Run, models_of, task_of
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

    name = "adaptive"
    title = "Adaptive attacks"
    headings: Mapping[str, str] = {**HEADINGS, "budget": "edges changed, %"}
    measured = f"adaptive-2-{'-'.join(map(str, (*BUDGETS, BLOCK, STEPS, FINAL_SAMPLES)))}"
    charts = tuple(
        Chart(
            "budget",
            "edges changed, %",
            f"{dataset.removeprefix('attacked-')}, {attack}",
            where={"dataset": (dataset,), "attack": ("none", attack)},
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

    def measures(self, job: Job) -> bool:
        """Of a model whose settings are chosen, the chosen one alone is attacked."""
        return not variant_of(job)

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each graph, attack, budget and model; settings are chosen on the clean graph.

        The p-values of a model are corrected for the number of attacks on a graph.
        """
        cases: dict[Case, dict[str, Entry | None]] = {}
        for case, entries in best_in_each(results, lambda job: (("dataset", job.dataset),)).items():
            cases[(*case, ("attack", "none"), ("budget", 0))] = entries
            for model, entry in entries.items():
                scores = {} if entry is None else self.kept(entry.run)
                for attack, budget in product(ATTACKS, BUDGETS):
                    after = None
                    if entry is not None:
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

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the results after each attack, the lower one at the largest budget, and the verdicts of our models."""
        tests = tests_of([row for row in rows if row["budget"] == BUDGETS[-1]], "attack")
        lowest = {key: min(mine.values()) for key, mine in tests.items()}
        return paragraphs(
            table_of_cases(rows, ("dataset", "attack", "budget"), MODELS),
            table_of(f"Lower of both attacks at {BUDGETS[-1]} % of the edges", lowest, MODELS),
            lines_of(gains(rows)),
        )


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
        logits: Tensor = self.model(self.task.features, graph)
        # A model that ignores its edges has the gradient 0.
        return logits[0] + 0 * edge_weight.sum()
