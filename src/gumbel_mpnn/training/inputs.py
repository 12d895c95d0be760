"""Inputs of a model: features, which differ by replica if they are standardized, and weights of training nodes."""

from __future__ import annotations

import inspect
from dataclasses import replace

from torch import Tensor

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn.config import TrainSettings
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.nn.standardize import Standardize
from gumbel_mpnn.training.task import Task

STANDARDIZE = "standardize"
"""Name of the module that standardizes the features of a model, and so the beginning of its names in the state."""


def add_standardize(model: TrainableModel, replicas: int, num_features: int) -> None:
    """Give a model statistics of its features, which are 0 and 1 until `fit_features`."""
    model.add_module(STANDARDIZE, Standardize(replicas, num_features))


def fit_features(model: TrainableModel, task: Task, train_mask: Tensor) -> None:
    """Take the statistics of the features over the training nodes [R, N], if the model standardizes features."""
    standardize = _standardize(model)
    if standardize is not None:
        standardize.fit(_dense(task), train_mask)


def seen_by(model: TrainableModel, task: Task) -> Task:
    """The task with the features of every replica [R, N, F] if the model standardizes them, else the task itself.

    Features that have a replica axis already are left alone, and so is a task in parts: each part is seen by itself.
    """
    standardize = _standardize(model)
    if standardize is None or task.parts or len(task.features.shape) == 3:
        return task
    return replace(task, features=standardize(_dense(task)))


def _standardize(model: TrainableModel) -> Standardize | None:
    found = getattr(model, STANDARDIZE, None)
    return found if isinstance(found, Standardize) else None


def _dense(task: Task) -> Tensor:
    if not isinstance(task.features, Tensor):
        raise DataError("sparse features cannot be standardized: leave out data.features=standardized")
    return task.features


def node_weights(settings: TrainSettings, model: TrainableModel, y: Tensor, train_mask: Tensor) -> Tensor | None:
    """Weights that the settings ask for, [R, N]; None if all nodes weigh the same."""
    if settings.class_weights == "none":
        return None
    if "weight" not in inspect.signature(model.training_loss).parameters:
        raise UserError(
            f"the training_loss of {type(model).__name__} has no argument 'weight', which train.class_weights needs:"
            " add it, or leave out the setting"
        )
    return balanced(y, train_mask)


def balanced(y: Tensor, train_mask: Tensor) -> Tensor:
    """Weight of every node, inversely proportional to the number of training nodes of its class, [N], [R, N] → [R, N].

    As scikit-learn's `class_weight="balanced"`: the number of training nodes divided by the number of their classes and
    by the number of those of the node's own class. Over the training nodes, weights are 1 on average. Nodes of a class
    without training nodes, and nodes without a label, have weight 0.
    """
    labels = y.clamp(min=0).expand(train_mask.shape)
    num_classes = int(y.max()) + 1
    counts = train_mask.new_zeros(len(train_mask), num_classes).double().scatter_add_(1, labels, train_mask.double())
    weight = train_mask.sum(-1, keepdim=True) / ((counts > 0).sum(-1, keepdim=True) * counts.clamp(min=1))
    return ((weight * (counts > 0)).gather(1, labels) * (y >= 0)).float()
