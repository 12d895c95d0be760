"""Features that a model sees (standardized, positions), and class weights."""

import dataclasses
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight

from gumbel_mpnn.candidates import Local
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.nn import models
from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import DataSettings, Replica, Settings
from gumbel_mpnn.training import build_model, prepare, train
from gumbel_mpnn.training.build import PER_CLASS, SHARE, fit_features
from gumbel_mpnn.training.task import balanced
from gumbel_mpnn.util.errors import DataError
from helpers import changed, curve, make_settings, make_task, replicas, small_data
from quick_fit import TABLES, quick, resolved

STANDARDIZED = DataSettings(features="standardized")
SETTINGS = {**TABLES, "data": {"features": "standardized"}}


def uneven(seed=0):
    """A graph whose columns differ in place and size."""
    data = small_data(seed=seed)
    data.x = data.x * torch.tensor([1.0, 1000.0, 0.01, 1.0, 1.0, 0.0]) + torch.tensor([0.0, 5e4, 0.0, 3.0, -3.0, 2.0])
    return data


def settings(model="gcn", options=None, **train):
    return dataclasses.replace(make_settings(model, options, **train), data=STANDARDIZED)


def by_hand(data, split):
    """Features standardized over the training nodes of a split, as numpy does it."""
    x, mask = data.x.double().numpy(), data.train_mask[:, split].numpy()
    std = x[mask].std(0)
    std[x[mask].max(0) == x[mask].min(0)] = 1
    return torch.from_numpy((x - x[mask].mean(0)) / std).float()


@pytest.mark.parametrize("name", ["mlp", "gcn", "sage", "gat"])
def test_training_is_that_on_features_standardized_before(name):
    """All splits together equal each split alone, on features that were standardized by hand."""
    data, options = uneven(), {"dropout": 0.3, "input_dropout": 0.2}
    together = train(
        make_task(data, features="standardized"), settings(name, options), replicas((0, 0), (1, 0), (1, 1))
    )
    for outcome in together:
        own = make_task(changed(data, x=by_hand(data, outcome.replica.split)))
        (alone,) = train(own, make_settings(name, options), [outcome.replica])
        torch.testing.assert_close([r["val_loss"] for r in outcome.history], [r["val_loss"] for r in alone.history])
        statistics = {"standardize.mean", "standardize.scale"}
        assert outcome.state.keys() == alone.state.keys() | statistics
        for key in alone.state:
            torch.testing.assert_close(outcome.state[key], alone.state[key], rtol=1e-3, atol=1e-4)


def test_nodes_outside_training_do_not_change_the_statistics():
    data, task_of = uneven(), lambda given: make_task(given, features="standardized")
    outside = (~data.train_mask[:, 0]).nonzero().flatten()
    x = data.x.clone()
    x[outside] = 7 * x[outside.flip(0)]
    models_of = []
    for given in (data, changed(data, x=x)):
        model = build_model(settings(), task_of(given), [Replica(0, 0)])
        fit_features(model, task_of(given), data.train_mask.T[:1])
        models_of.append(model.state_dict())
    for name in ("standardize.mean", "standardize.scale"):
        assert torch.equal(models_of[0][name], models_of[1][name])
    expected = data.x[data.train_mask[:, 0]].double().mean(0)
    torch.testing.assert_close(models_of[0]["standardize.mean"][0, 0], expected)


@pytest.mark.parametrize("name", list(models))
def test_a_stored_run_predicts_what_it_was_evaluated_with(name):
    data = uneven()
    run = quick(data, name, settings=SETTINGS)
    assert run.scores(data) == [record.test for record in run.records]


def test_candidates_see_features_standardized_over_all_nodes():
    data = uneven()
    chosen = resolved(data, "gumbel-mpnn", settings={**SETTINGS, "rewiring": {"candidates.per_node": 2}})
    found = prepare(data, chosen)
    std = data.x.std(0, correction=0)
    std[5] = 1.0  # the last column is constant
    expected = Local(per_node=2)(changed(data, x=(data.x - data.x.mean(0)) / std))
    assert torch.equal(found.candidate_index, expected.candidate_index)
    assert torch.equal(found.x, data.x)
    assert not torch.equal(found.candidate_index, Local(per_node=2)(changed(data)).candidate_index)


@pytest.mark.filterwarnings("ignore:this graph has no features")
def test_the_identity_matrix_is_refused():
    with pytest.raises(DataError, match=r"an identity matrix or sparse features cannot be standardized: leave out"):
        quick(changed(small_data(), x=None, num_nodes=24), settings=SETTINGS)


def with_positions(model: str = "gcn", *overrides: str) -> Settings:
    given = ("data.features=with-structure", *overrides)
    return RunSpec.of(small_data(), model, preset=None, overrides=given).settings


def test_are_further_columns_of_a_quarter_of_the_squared_length():
    data = small_data(nodes=60)
    x = prepare(data, with_positions()).x
    given = data.num_features
    assert torch.equal(x[:, :given], data.x)
    positions = community_positions(data, PER_CLASS * 3)
    assert x.shape[1] == given + PER_CLASS * 3
    scale = x[:, given:].norm() / positions.norm()
    assert torch.allclose(x[:, given:], scale * positions, atol=1e-5)
    assert x[:, given:].square().sum() == pytest.approx(SHARE * float(data.x.square().sum()), rel=1e-4)


def test_sparse_features_stay_sparse():
    data = small_data()
    dense, sparse = (prepare(changed(data, x=x), with_positions()).x for x in (data.x, data.x.to_sparse()))
    assert sparse.layout is torch.sparse_coo
    assert torch.allclose(sparse.to_dense(), dense, atol=1e-6)


def test_candidates_are_neighbors_by_features_alone():
    data = small_data(nodes=60)
    options = ("rewiring.candidates=local", "rewiring.candidates.per_node=3")
    found = prepare(data, with_positions("gumbel-mpnn", *options))
    plain = RunSpec.of(data, "gumbel-mpnn", preset=None, overrides=options).settings
    assert torch.equal(found.candidate_index, prepare(data, plain).candidate_index)


def test_features_that_are_all_0_and_no_edges():
    data = small_data()
    x = prepare(changed(data, x=torch.zeros_like(data.x)), with_positions()).x
    assert x[:, data.num_features :].abs().sum() > 0
    alone = prepare(changed(data, edge_index=data.edge_index[:, :0]), with_positions()).x
    assert alone.isfinite().all()


Y = torch.tensor([0, 0, 0, 1, 1, 2, -1])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 1, 0]], dtype=torch.bool)
BALANCED = {**TABLES, "train": {**TABLES["train"], "class_weights": "balanced"}}


def test_weights_worked_by_hand():
    # First: 4 nodes of 2 classes, 3 and 1 of them, and none of class 2. Second: 4 nodes of 3 classes, 1, 2 and 1.
    third = 4 / (3 * 1)
    expected = [[2 / 3] * 3 + [2.0] * 2 + [0.0, 0.0], [third] * 3 + [2 / 3] * 2 + [third, 0.0]]
    torch.testing.assert_close(balanced(Y, MASK), torch.tensor(expected))


def test_the_weighted_loss_worked_by_hand():
    share = torch.tensor([[0.5, 0.5, 0.5, 0.25, 0.9, 0.9, 0.9]])
    logits = torch.stack([share.log(), (1 - share).log()], -1)
    y = Y.clamp(max=1)
    # Three nodes of loss log 2 and weight ⅔, one of loss log 4/3 and weight 2: each class has half of the mean.
    expected = (math.log(2) + math.log(4 / 3)) / 2
    assert cross_entropy(logits, y, MASK[:1], balanced(y, MASK[:1])).item() == pytest.approx(expected)


def imbalanced():
    """Two classes, of which the second has a fifth of the nodes."""
    data = small_data(nodes=40, classes=2)
    return changed(data, y=(torch.arange(40) % 5 == 0).long())


@pytest.mark.parametrize("name", list(models))
def test_every_model_weighs_its_nodes(name):
    """The gradient of the first step is that of copies of the rare nodes, which is what weights stand for."""
    options = {"model": {"hidden_channels": 4, "dropout": 0.0}, "train": {"epochs": 1}}
    settings = resolved(imbalanced(), name, settings=options, preset=None)
    task = make_task(imbalanced())
    model = build_model(settings, task, [Replica(0, 0)])
    mask, progress = task.train_mask[:1], torch.tensor(0.0)

    def loss(weight):
        model.rng.rewind()
        return model.training_loss(task.features, task.graph, task.y, mask, progress, weight)

    plain, same, other = loss(None), loss(torch.ones(1, 40)), loss(balanced(task.y, mask))
    torch.testing.assert_close(plain, same)
    assert not torch.allclose(plain, other)
    rare = loss((task.y == 1)[None] * 1.0)
    common = loss((task.y == 0)[None] * 1.0)
    torch.testing.assert_close(other, (rare + common) / 2)


def test_training_uses_the_weights_of_each_split():
    data = imbalanced()
    task, settings = make_task(data), make_settings(options={"dropout": 0.0}, class_weights="balanced")
    (outcome,) = train(task, settings, [Replica(1, 0)])
    model = build_model(settings, task, [Replica(1, 0)])
    mask = data.train_mask[:, 1]
    weight = torch.tensor(compute_class_weight("balanced", classes=np.arange(2), y=data.y[mask].numpy())).float()
    first = F.cross_entropy(model(task.features, task.graph)[0][mask], data.y[mask], weight)
    assert curve(outcome, "train_loss")[0] == pytest.approx(first.item(), rel=1e-5)
