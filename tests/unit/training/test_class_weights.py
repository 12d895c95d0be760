"""Class weights: the weights by hand and as scikit-learn's, and the loss of every model that trains with them."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import Replica
from gumbel_mpnn.nn import GCN, models
from gumbel_mpnn.nn.modules import cross_entropy
from gumbel_mpnn.training import build_model, train
from gumbel_mpnn.training.inputs import balanced, node_weights
from gumbel_mpnn.training.trainer import Trainer
from helpers import changed, curve, make_settings, make_task, small_data
from quick_fit import TABLES, quick, resolved

Y = torch.tensor([0, 0, 0, 1, 1, 2, -1])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 1, 0]], dtype=torch.bool)
BALANCED = {**TABLES, "train": {**TABLES["train"], "class_weights": "balanced"}}


def test_weights_worked_by_hand():
    # First: 4 nodes of 2 classes, 3 and 1 of them, and none of class 2. Second: 4 nodes of 3 classes, 1, 2 and 1.
    third = 4 / (3 * 1)
    expected = [[2 / 3] * 3 + [2.0] * 2 + [0.0, 0.0], [third] * 3 + [2 / 3] * 2 + [third, 0.0]]
    torch.testing.assert_close(balanced(Y, MASK), torch.tensor(expected))


def test_weights_are_scikit_learns():
    y, mask = torch.tensor([0] * 7 + [2] * 3 + [1]), torch.ones(1, 11, dtype=torch.bool)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=y.numpy())
    torch.testing.assert_close(balanced(y, mask)[0].double(), torch.from_numpy(expected)[y], rtol=1e-6, atol=0)


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


def test_runs_with_weights_differ_and_none_is_as_before():
    plain, other = quick(imbalanced()), quick(imbalanced(), settings=BALANCED)
    assert plain.records[0].fingerprint != other.records[0].fingerprint
    assert plain.records[0].val != other.records[0].val or not torch.equal(plain.predict_proba(), other.predict_proba())


class WithoutWeights(GCN):
    def training_loss(self, x, graph, y, train_mask, progress):
        return super().training_loss(x, graph, y, train_mask, progress)


def test_a_model_that_takes_no_weights_is_told():
    model = WithoutWeights(3, out_channels=2)
    with pytest.raises(UserError, match="training_loss of WithoutWeights has no argument 'weight'"):
        node_weights(make_settings(class_weights="balanced").train, model, Y, MASK)
    assert node_weights(make_settings().train, model, Y, MASK) is None


def test_no_weights_by_default():
    assert Trainer(make_task(), make_settings(), [Replica(0, 0)]).weight is None
