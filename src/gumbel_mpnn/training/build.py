"""Models made and prepared by the names in their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn import baselines, rewiring
from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.nn import TrainableModel, models
from gumbel_mpnn.nn.model import Report
from gumbel_mpnn.training.task import Task

ROOMS = (baselines, rewiring)
"""Importing these registers their models."""


def prepare(data: Data, settings: Settings, report: Report | None = None) -> Data:
    """The data as the model of `settings` trains on them; `report` is called with the steps done and all steps."""
    return models[settings.model].prepare(data, settings, report)


def build_model(settings: Settings, task: Task, replicas: Sequence[Replica]) -> TrainableModel:
    """The model of `settings` with the replicas' own initial parameters."""
    if settings.rewiring is not None and task.train_y is not None:
        raise DataError("a model that rewires trains on classes: leave out data.train_y")
    extra: dict[str, Any] = {} if settings.rewiring is None else {"rewiring": settings.rewiring}
    make: Any = models[settings.model]
    model: TrainableModel = make(
        task.num_features,
        out_channels=task.num_outputs,
        **settings.options,
        **extra,
        replicas=len(replicas),
        seeds=[replica.stream_seed for replica in replicas],
    )
    return model.to(task.y.device)
