"""`reproduce adaptive`: what an attack sees of a model, and what it leaves of its accuracy."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.baselines.jaccard import edge_similarity
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.paper import Job, adaptive, tables
from gumbel_mpnn.paper.adaptive import Adaptive, Victim, attacked
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.runs import fit
from gumbel_mpnn.runs.trained import models_of, task_of
from helpers import both_ways, changed, small_data

TRAINED = ["train.epochs=60", "train.lr=0.05", "model.hidden_channels=8"]
each_model = pytest.mark.parametrize("model", ["mlp", "gcn", "jaccard", "soft-median", "gumbel-mpnn"])


def homophilous(nodes=60):
    """A graph whose edges say the class."""
    data = small_data(nodes, splits=1)
    pairs = torch.combinations(torch.arange(nodes))
    same = pairs[data.y[pairs[:, 0]] == data.y[pairs[:, 1]]]
    chosen = same[torch.randperm(len(same), generator=torch.Generator().manual_seed(1))[: 2 * nodes]]
    return changed(data, edge_index=both_ways(chosen.T))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return lambda model: fit(homophilous(), model, preset=None, overrides=TRAINED, runs=folder)


def victim_of(run):
    task = task_of(run)
    return Victim(run, next(models_of(run, task, run.records)), task), task


@each_model
def test_an_attack_sees_the_predictions_of_the_model(runs, model):
    run = runs(model)
    victim, _ = victim_of(run)
    edge_index = PairGraph.of(run.data, candidates=False).edge_index
    logits = victim(None, edge_index, torch.ones(edge_index.shape[1]))
    torch.testing.assert_close(logits.softmax(-1), run.predict_proba())


@each_model
def test_gradients_of_edge_weights_are_those_of_the_whole_model(runs, model):
    """Compared with a small difference in the direction of all weights."""
    victim, _ = victim_of(runs(model))
    edge_index = PairGraph.of(homophilous(), candidates=False).edge_index
    weight = torch.full((edge_index.shape[1],), 0.7, requires_grad=True)

    def loss(weight):
        return victim(None, edge_index, weight).square().sum()

    with torch.no_grad():
        expected = (loss(weight + 1e-3) - loss(weight - 1e-3)) / 2e-3
    (gradient,) = torch.autograd.grad(loss(weight), weight)
    if model != "soft-median":  # it jumps where another neighbor becomes the median
        torch.testing.assert_close(gradient.sum(), expected, rtol=0.02, atol=0.5)
    assert (gradient.abs().sum() == 0) == (model == "mlp")


def test_pairs_that_jaccard_removes_have_no_gradient(runs):
    run = runs("jaccard")
    victim, _ = victim_of(run)
    edge_index = both_ways(torch.combinations(torch.arange(60)).T)
    weight = torch.full((edge_index.shape[1],), 0.5, requires_grad=True)
    victim(None, edge_index, weight).square().sum().backward()
    removed = edge_similarity(run.data.x, edge_index) < run.settings.options["threshold"]
    assert 0 < int(removed.sum()) < len(removed)
    assert (weight.grad[removed] == 0).all()
    assert weight.grad[~removed].abs().sum() > 0


@pytest.mark.parametrize("attack", adaptive.ATTACKS)
@pytest.mark.parametrize("model", ["gcn", "gumbel-mpnn"])
def test_an_attack_keeps_its_budget_and_does_harm(runs, model, attack):
    run = runs(model)
    (record,), (victim, task) = run.records, victim_of(run)
    before = {tuple(pair) for pair in undirected_edges(run.data).T.tolist()}
    perturbed = attacked(run, record, victim, task, attack, 0.4)
    after = {tuple(pair) for pair in undirected_edges(perturbed).T.tolist()}
    assert 0 < len(before ^ after) <= round(0.4 * len(before))
    assert run.scores(perturbed)[0] < run.scores(run.data)[0]
    assert torch.equal(attacked(run, record, victim, task, attack, 0.4).edge_index, perturbed.edge_index)
    assert undirected_edges(run.data).shape[1] == len(before)


def test_rows(runs, monkeypatch):
    monkeypatch.setattr(adaptive, "BUDGETS", (5, 40))
    mlp, gcn = runs("mlp"), runs("gcn")
    rows = Adaptive().collect({Job("attacked-cora", "mlp", ""): mlp, Job("attacked-cora", "gcn", ""): gcn})
    found = {(row["model"], row["attack"], row["budget"]): row["test"] for row in rows}
    clean = {"mlp": 100 * mlp.test.mean, "gcn": 100 * gcn.test.mean}
    assert found["gcn", "none", 0] == pytest.approx(clean["gcn"])
    assert {found["mlp", attack, budget] for attack, budget in (("PRBCD", 5), ("GRBCD", 40))} == {clean["mlp"]}
    scores = Adaptive().measure(gcn)
    assert found["gcn", "PRBCD", 40] == pytest.approx(100 * scores["PRBCD"]["40"][0])
    assert found["gcn", "PRBCD", 40] < clean["gcn"]
    assert len(rows) == 2 * (1 + 2 * 2)


def test_results_at_the_largest_budget():
    def row(model, attack, budget, test):
        of = {"dataset": "attacked-cora", "attack": attack, "budget": budget, "model": model, "test": test}
        return {**of, "verdict": None, "learned_verdict": None}

    tests = {"mlp": (60.0, 60.0), "auto": (70.0, 65.0), "gcn": (40.0, 45.0)}
    rows = [
        row(model, attack, 40, test)
        for model, of in tests.items()
        for attack, test in zip(adaptive.ATTACKS, of, strict=True)
    ]
    rows += [row("auto", "PRBCD", 5, 1.0), row("auto", "none", 0, 1.0)]
    assert Adaptive().remarks({}, rows).splitlines() == [
        "| data set | model | PRBCD, 40 % of the edges | GRBCD, 40 % of the edges | lower of both less MLP |",
        "| --- | --- | --: | --: | --: |",
        "| attacked-cora | MLP | 60.00 | 60.00 | 0.00 |",
        "| attacked-cora | Auto | 70.00 | 65.00 | 5.00 |",
        "| attacked-cora | GCN | 40.00 | 45.00 | -20.00 |",
    ]


def test_without_data():
    rows = Adaptive().collect({Job("attacked-cora", "gcn", ""): None})
    assert {row["verdict"] for row in rows} == {"no data"}


def test_the_plan():
    jobs = Adaptive().plan()
    assert len(set(jobs)) == len(jobs)
    assert tables.experiments["adaptive"].plan() == jobs
    small = tables.requested_jobs(Adaptive(), Request(quick=True))
    assert {job.dataset for job in small} == {"attacked-cora"}


def test_there_are_too_few_seeds_for_verdicts(tmp_path):
    """All seeds of the MLP are better than those of the best plain model after every attack, but they are three."""
    jobs = [job for job in Adaptive().plan() if job.dataset == "attacked-cora" and job.model in ("mlp", "gcn")]
    short = ["train.epochs=1", "model.hidden_channels=4"]
    runs = [fit(homophilous(), job.model, preset=None, seeds=job.seeds, overrides=short, runs=tmp_path) for job in jobs]
    results = {}
    for job, run, val, test in zip(jobs, runs, (0.1, 0.9), (0.6, 0.5), strict=True):
        records = tuple(replace(record, val=val, test=0.5) for record in run.records)
        results[job] = replace(run, records=records)
        after = {attack: dict.fromkeys(map(str, adaptive.BUDGETS), [test] * run.n) for attack in adaptive.ATTACKS}
        results[job].stored(Adaptive.from_models, lambda after=after: after)
    rows = [row for row in Adaptive().collect(results) if row["model"] == "mlp"]
    assert {row["verdict"] for row in rows} == {"too few splits"}


def test_the_features_of_the_attack_are_not_used(runs):
    victim, task = victim_of(runs("gcn"))
    data = Data(edge_index=both_ways(torch.tensor([[0], [1]])), num_nodes=60)
    one, other = (victim(x, data.edge_index, torch.ones(2)) for x in (torch.zeros(60, 0), torch.ones(60, 3)))
    assert torch.equal(one, other)
    assert one.shape == (60, task.num_classes)
