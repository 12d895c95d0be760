"""Training on labels that are finer than the classes, and judging by the classes."""

import math

import pytest
import torch

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.config import Replica
from gumbel_mpnn.nn.modules import cross_entropy
from gumbel_mpnn.runs import fit
from gumbel_mpnn.training import build_model, data_hash, train
from helpers import changed, make_settings, make_task, numbers, replicas, small_data

QUICK = {"model": {"hidden_channels": 4}, "train": {"epochs": 3}}


@pytest.fixture
def data():
    return small_data()


def test_a_model_tells_labels_apart_and_is_judged_by_classes(finer):
    task = make_task(finer)
    assert (task.num_classes, task.num_outputs, task.labels_per_class) == (3, 4, (1, 2, 1))
    model = build_model(make_settings(), task, replicas((0, 0)))
    assert model(task.features, task.graph).shape == (1, 24, 4)


def test_plain_labels_stand_for_themselves(data):
    task = make_task(data)
    logits = torch.randn(2, 24, 3)
    assert task.class_scores(logits) is logits
    assert task.targets(replicas((0, 0))) is task.y


def test_a_class_is_as_likely_as_its_labels_together(finer):
    task = make_task(finer)
    scores = task.class_scores(torch.tensor([0.1, 0.2, 0.3, 0.4]).log())
    torch.testing.assert_close(scores.softmax(-1), torch.tensor([0.1, 0.5, 0.4]))


def test_a_class_without_labels_is_impossible(finer):
    task = make_task(changed(finer, y=torch.where(finer.y == 2, 3, finer.y), class_of=torch.tensor([0, 1, 1, 3])))
    assert task.labels_per_class == (1, 2, 0, 1)
    assert task.class_scores(torch.zeros(4))[2] == -math.inf


def test_every_replica_trains_on_the_labels_of_its_split(finer):
    targets = make_task(finer).targets(replicas((1, 0), (0, 5)))
    assert torch.equal(targets, finer.train_y.T[[1, 0]])


def test_one_column_serves_every_split(finer):
    task = make_task(changed(finer, train_y=finer.train_y[:, 0]))
    assert torch.equal(task.train_y, finer.train_y[:, 0].expand(2, 24))


def test_loss_takes_labels_for_each_replica(finer):
    logits, mask = torch.randn(2, 24, 4), finer.train_mask.T
    together = cross_entropy(logits, finer.train_y.T, mask)
    alone = [cross_entropy(logits[r : r + 1], finer.train_y[:, r], mask[r : r + 1])[0] for r in range(2)]
    torch.testing.assert_close(together, torch.stack(alone))


def test_labels_that_are_the_classes_change_nothing(data):
    same = changed(data, train_y=data.y, class_of=torch.arange(3))
    plain, finer = (train(make_task(d), make_settings(), replicas((0, 0), (1, 1))) for d in (data, same))
    assert numbers(plain) == numbers(finer)


def test_replicas_of_different_labels_train_together_as_alone(finer):
    task = make_task(finer)
    together = train(task, make_settings(), replicas((0, 0), (1, 0)))
    alone = [train(task, make_settings(), [Replica(split, 0)])[0] for split in (0, 1)]
    for one, other in zip(together, alone, strict=True):
        assert (one.val, one.test, one.best_epoch) == (other.val, other.test, other.best_epoch)


def test_labels_outside_the_training_nodes_are_not_looked_at(finer):
    hidden = torch.where(finer.train_mask, finer.train_y, -1)
    one, other = (
        train(make_task(d), make_settings(), replicas((0, 0))) for d in (finer, changed(finer, train_y=hidden))
    )
    assert numbers(one) == numbers(other)


def test_a_run_predicts_classes(finer, data):
    run = fit(finer, "gcn", settings=QUICK, device="cpu")
    assert run.predict_proba().shape == (24, 3)
    torch.testing.assert_close(run.predict_proba().sum(-1), torch.ones(24))
    assert set(run.predict()) <= {0, 1, 2}
    torch.testing.assert_close(run.predict_proba(changed(data, y=None)), run.predict_proba())


def test_the_finer_labels_are_part_of_the_data(data, finer):
    assert len({data_hash(data), data_hash(finer), data_hash(changed(finer, train_y=finer.train_y.flip(1)))}) == 3
    assert data_hash(finer) != data_hash(changed(finer, class_of=torch.tensor([0, 1, 2, 2])))


def test_fit_trains_on_what_the_transform_gives(finer):
    run = fit(
        small_data(), "mlp", settings=QUICK, device="cpu", transform=lambda data: changed(data, metric="accuracy")
    )
    assert run.data.metric == "accuracy"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"class_of": None}, "needs data.class_of"),
        ({"class_of": torch.tensor([0, 2, 1, 1])}, "ascending"),
        ({"class_of": torch.tensor([[0, 1], [1, 2]])}, "ascending"),
        ({"class_of": torch.tensor([0, 1, 2])}, "between 0 and 2"),
        ({"class_of": torch.tensor([0, 1, 2, 2])}, r"must be equal to data.y"),
        ({"train_y": torch.full((24, 2), -1)}, "between 0 and 3"),
    ],
)
def test_labels_that_do_not_fit_are_refused(finer, values, words):
    with pytest.raises(DataError, match=words):
        make_task(changed(finer, **values))


def test_a_model_that_rewires_trains_on_classes(finer):
    with pytest.raises(DataError, match="models that rewire"):
        fit(finer, "gumbel-mpnn", settings={"train": {"epochs": 1}}, device="cpu")
