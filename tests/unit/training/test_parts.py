"""Training on parts of the graph, one after the other."""

from dataclasses import replace

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.run import load_run
from gumbel_mpnn.settings import resolve
from gumbel_mpnn.training import Task, build_model, train, trainer
from gumbel_mpnn.training.build import bytes_per_replica, pair_probability, plan_groups
from gumbel_mpnn.util.errors import UserError
from helpers import assert_close_outcomes, changed, interrupted, make_settings, numbers, replicas, small_data
from quick_fit import fit, quick

GROUP = replicas((0, 0), (1, 3))
EXACT = {"dropout": 0.0}
REWIRED = {
    "candidates": "data",
    "scorer": "neighborhood",
    "scorer.decoys": 0.5,
    "regularizer": "lc",
    "regularizer.weight": 0.1,
}


def apart(count=4, size=24):
    """Graphs without edges between them, in one: as parts, they need no halo."""
    each = [small_data(nodes=size, seed=seed) for seed in range(count)]
    index = torch.cat([data.edge_index + size * k for k, data in enumerate(each)], dim=1)
    # A path joins the nodes of each graph, so that METIS does not cut them.
    path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    paths = [path + size * k for k in range(count)] * 3
    others = {
        name: torch.cat([data[name] for data in each]) for name in ("x", "y", "train_mask", "val_mask", "test_mask")
    }
    return changed(each[0], edge_index=torch.cat([index, *paths], dim=1), **others)


def in_parts(data, settings, count):
    settings = replace(settings, train=replace(settings.train, partitions=count))
    return Task.of(data, settings), settings


def rewiring_settings(**tables):
    model = {"hidden_channels": 8, "dropout": 0.5}
    given = {"model": model, "train": {"lr": 0.01, "epochs": 6}, "rewiring": REWIRED, **tables}
    return resolve("toy", "gumbel-mpnn", given, models.complete, rewires=True)


@pytest.mark.parametrize("name", ["gcn", "gat", "sage", "mlp"])
@pytest.mark.parametrize(
    "tables",
    [{}, {"class_weights": "balanced"}, {"patience": 2, "eval_every": 2}],
    ids=["plain", "class-weights", "patience"],
)
def test_parts_without_a_halo_have_the_gradient_of_the_whole(name, tables):
    data, settings = apart(), make_settings(name, EXACT, epochs=8, **tables)
    task, parted = in_parts(data, settings, 4)
    assert [len(part.cut.nodes) for part in task.parts] == [24] * 4
    assert_close_outcomes(train(task, parted, GROUP), train(Task.of(data, settings), settings, GROUP))


def test_a_replica_without_a_training_node_in_a_part_learns_from_the_others():
    data, settings = apart(), make_settings("gcn", EXACT, class_weights="balanced")
    data.train_mask[:24, 0] = False  # of the first replica; the second has some there
    data.train_mask[24:48] = False  # of both
    task, parted = in_parts(data, settings, 4)
    assert len(trainer.Trainer(task, parted, GROUP).batches) == 3
    assert_close_outcomes(train(task, parted, GROUP), train(Task.of(data, settings), settings, GROUP))


def test_a_part_counts_its_own_training_nodes_only():
    """Labels of other parts do not change the gradient of a part, although its halo has their nodes."""
    data, settings = small_data(nodes=60), make_settings("gcn", EXACT)
    task, parted = in_parts(data, settings, 3)
    here = trainer.Trainer(task, parted, GROUP)
    batch = here.batches[0]
    assert not task.parts[0].cut.own.all()
    loss = here._backward(batch, torch.tensor(0.0))
    halo = task.parts[0].cut.nodes[~task.parts[0].cut.own]
    data.y[halo] = (data.y[halo] + 1) % 3
    again = trainer.Trainer(in_parts(data, settings, 3)[0], parted, GROUP)
    assert torch.equal(again._backward(again.batches[0], torch.tensor(0.0)), loss)


def with_candidates(data):
    some = torch.randint(len(data.y), (2, 50), generator=torch.Generator().manual_seed(7))
    return changed(data, candidate_index=some)


@pytest.mark.parametrize("symmetric", [True, False])
def test_every_pair_has_its_probability(symmetric):
    data, settings = (
        with_candidates(small_data(nodes=60)),
        rewiring_settings(rewiring={"candidates": "data", "scorer": "class-space", "symmetric": symmetric}),
    )
    task, parted = in_parts(data, settings, 4)
    model = build_model(settings, task, GROUP).eval()
    whole = pair_probability(model, Task.of(data, settings), settings)
    torch.testing.assert_close(pair_probability(model, task, parted), whole)
    assert pair_probability(build_model(make_settings(), task, GROUP), task, parted) is None


@pytest.mark.parametrize("count", [2, 5])
def test_replicas_do_not_depend_on_each_other_and_repeat_bit_for_bit(count):
    task, settings = in_parts(with_candidates(small_data(nodes=60)), rewiring_settings(), count)
    together = numbers(train(task, settings, GROUP))
    assert together == numbers(train(task, settings, GROUP))
    for replica, expected in zip(GROUP, together, strict=True):
        assert numbers(train(task, settings, [replica])) == [expected]
    other = numbers(train(task, settings, replicas((0, 1), (1, 4))))
    assert all(one["history"] != two["history"] for one, two in zip(together, other, strict=True))


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize("patience", [0, 2])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path, patience):
    data = with_candidates(small_data(nodes=60))
    tables = {"train": {"lr": 0.01, "epochs": 9, "patience": patience}}
    task, settings = in_parts(data, rewiring_settings(**tables), 3)
    interrupted(4, task, settings, GROUP, tmp_path / "checkpoint")
    assert (tmp_path / "checkpoint").exists()
    resumed = train(task, settings, GROUP, checkpoint=tmp_path / "checkpoint")
    assert numbers(resumed) == numbers(train(task, settings, GROUP))


def test_memory_is_that_of_the_largest_part():
    data, settings = apart(), make_settings("gcn")
    whole = Task.of(data, settings)
    task, parted = in_parts(data, settings, 4)
    assert task.largest.graph.num_nodes == 24
    model = build_model(settings, whole, GROUP[:1])
    one = bytes_per_replica(model, settings, whole)
    assert bytes_per_replica(model, parted, task) < 0.5 * one
    assert plan_groups(settings, whole, 2 * one)[0] == 1
    assert plan_groups(parted, task, 2 * one)[0] >= 2


@pytest.mark.parametrize("model", ["gcn", "gumbel-mpnn", "drop-edge", "sdrf", "frozen"])
def test_a_run_in_parts_can_be_used_as_any_other(model, tmp_path):
    data = small_data(nodes=60, features=8)
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 4, "partitions": 3}}
    run = quick(data, model, settings=tables, runs=tmp_path)
    assert run.scores(data, device="cpu") == [record.test for record in run.records]
    loaded = load_run(run.folder.path, data=data)
    assert torch.equal(loaded.predict_proba(), run.predict_proba())
    assert loaded.settings.train.partitions == 3
    assert run.predict_proba(small_data(nodes=2, features=8)).shape == (2, 3)
    assert len(run.audit().edges) == int(PairGraph.of(data).num_pairs)
    if run.rewires:
        assert run.rewire(threshold=0.0).edge_index.shape[1] > 0
    other = quick(data, model, settings={**tables, "train": {"epochs": 4}}, runs=tmp_path)
    assert other.folder.path != run.folder.path


def test_more_parts_than_nodes_are_told():
    with pytest.raises(UserError, match="this graph has 24 nodes: make fewer parts"):
        fit(small_data(nodes=24), "gcn", settings={"train": {"partitions": 25, "epochs": 1}}, device="cpu")
