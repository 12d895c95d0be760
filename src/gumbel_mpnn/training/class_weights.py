"""Weights of the training nodes in the classification loss."""

from __future__ import annotations

import inspect

from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import TrainSettings
from gumbel_mpnn.nn import TrainableModel


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
