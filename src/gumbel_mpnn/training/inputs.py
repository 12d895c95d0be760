"""Features as a model sees them, which differ by replica if they are standardized."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gumbel_mpnn._util.errors import DataError
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
