"""Training on standardized features: whose statistics, where they are kept, and what candidates see."""

import dataclasses

import pytest
import torch

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.candidates import Local
from gumbel_mpnn.config import DataSettings, Replica
from gumbel_mpnn.nn import models
from gumbel_mpnn.training import Task, build_model, prepare, train
from gumbel_mpnn.training.inputs import fit_features, seen_by
from gumbel_mpnn.training.memory import bytes_per_replica
from gumbel_mpnn.training.trainer import Trainer
from helpers import changed, make_settings, numbers, replicas, small_data
from measured_memory import (
    FEW_ARCS,
    MANY_FEATURES,
    NARROW,
    WIDE,
    bytes_of_one_more,
    peak_bytes_on_cpu,
    settings_for,
    task_for,
)
from quick_fit import TABLES, quick, resolved

MOST_ABOVE = 2.5
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
    together = train(Task.of(data, STANDARDIZED), settings(name, options), replicas((0, 0), (1, 0), (1, 1)))
    for outcome in together:
        own = Task.of(changed(data, x=by_hand(data, outcome.replica.split)), DataSettings())
        (alone,) = train(own, make_settings(name, options), [outcome.replica])
        torch.testing.assert_close([r["val_loss"] for r in outcome.history], [r["val_loss"] for r in alone.history])
        statistics = {"standardize.mean", "standardize.scale"}
        assert outcome.state.keys() == alone.state.keys() | statistics
        for key in alone.state:
            torch.testing.assert_close(outcome.state[key], alone.state[key], rtol=1e-3, atol=1e-4)


def test_nodes_outside_training_do_not_change_the_statistics():
    data, task_of = uneven(), lambda given: Task.of(given, STANDARDIZED)
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


def test_features_are_standardized_once():
    task = Task.of(uneven(), STANDARDIZED)
    trainer = Trainer(task, settings(), replicas((0, 0), (1, 0)))
    assert trainer.seen.features.shape == (2, 24, 6)
    assert seen_by(trainer.model, trainer.seen) is trainer.seen
    assert seen_by(build_model(make_settings(), task, [Replica(0, 0)]), task) is task


def test_interrupted_training_continues_with_the_same_statistics(tmp_path):
    task, chosen = Task.of(uneven(), STANDARDIZED), settings(epochs=6)
    group = replicas((0, 0), (1, 0))
    whole = train(task, chosen, group)
    first = Trainer(task, chosen, group)
    for _ in range(3):
        first.step()
        first.evaluate()
    first.save(tmp_path / "checkpoint", 0.0)
    assert numbers(train(task, chosen, group, checkpoint=tmp_path / "checkpoint")) == numbers(whole)


def test_stopped_replicas_are_left_out():
    """With patience, those that still run are set up again, with the features of their own splits."""
    data = small_data(splits=6, seed=3)
    chosen = settings(epochs=120, patience=8, lr=0.05)
    group = replicas(*((split, 0) for split in range(6)))
    task = Task.of(data, STANDARDIZED)
    together = train(task, chosen, group)
    for outcome in together:
        (alone,) = train(task, chosen, [outcome.replica])
        assert (outcome.best_epoch, outcome.val, outcome.test) == (alone.best_epoch, alone.val, alone.test)


@pytest.mark.parametrize("name", list(models))
def test_a_stored_run_predicts_what_it_was_evaluated_with(name):
    data = uneven()
    run = quick(data, name, settings=SETTINGS)
    assert run.scores(data) == [record.test for record in run.records]


@pytest.mark.parametrize("name", ["gcn", "gumbel-mpnn"])
def test_another_graph_is_seen_with_the_statistics_of_training(name):
    """Half of the graph has other means of its own; its nodes without edges are still predicted as before."""
    data = changed(uneven(), edge_index=torch.empty(2, 0, dtype=torch.int64))
    tables = {**SETTINGS, "rewiring": {"candidates": "none"}} if name == "gumbel-mpnn" else SETTINGS
    run = quick(data, name, settings=tables)
    part = changed(
        data,
        x=data.x[:9],
        y=None,
        train_mask=None,
        val_mask=None,
        test_mask=None,
        edge_index=data.edge_index,
    )
    torch.testing.assert_close(run.predict_proba(part), run.predict_proba()[:9])


def test_learned_graphs_of_a_run():
    data = uneven()
    tables = {**SETTINGS, "rewiring": {"scorer": "bilinear"}}
    run = quick(data, "gumbel-mpnn", settings=tables)
    stored, computed = run.rewire(threshold=0), run.rewire(data, threshold=0)
    assert torch.equal(stored.edge_index, computed.edge_index)
    torch.testing.assert_close(stored.edge_probability, computed.edge_probability)


def test_candidates_see_features_standardized_over_all_nodes():
    data = uneven()
    chosen = resolved(data, "gumbel-mpnn", settings={**SETTINGS, "rewiring": {"per_node": 2}})
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


@pytest.mark.parametrize(("shape", "options"), [(FEW_ARCS, WIDE), (MANY_FEATURES, NARROW)], ids=["arcs", "features"])
@pytest.mark.parametrize("name", ["mlp", "gcn", "gumbel-mpnn"])
def test_the_memory_of_own_features_is_known(name, shape, options, tmp_path):
    chosen = dataclasses.replace(settings_for(name, options), data=STANDARDIZED)
    make = task_for(chosen, shape)
    task = make()
    estimate = bytes_per_replica(build_model(chosen, task, [Replica(0, 0)]), chosen, task)
    measured = bytes_of_one_more(lambda count: peak_bytes_on_cpu(make(), chosen, count, tmp_path))
    assert measured <= estimate <= MOST_ABOVE * measured
