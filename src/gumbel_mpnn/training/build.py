"""Creates models and prepares their graphs from settings."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn import baselines, rewiring
from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.nn import TrainableModel, models
from gumbel_mpnn.nn.model import Report
from gumbel_mpnn.training.inputs import add_standardize
from gumbel_mpnn.training.task import Task, labels_per_class

STRUCTURE = "structure"
"""Value of `data.features` for positions among the communities of the graph."""
_positions: TensorCache[Tensor] = TensorCache()
_REGISTERING = (baselines, rewiring)
"""Subpackages that are imported to register their models."""


def prepare(data: Data, settings: Settings, report: Report | None = None) -> Data:
    """Prepare the graph for the model of `settings`; `report` is called with the steps done and the total number."""
    if settings.data.features == STRUCTURE:
        data = _with_structure(data)
    return models[settings.model].prepare(data, settings, report)


def _with_structure(data: Data) -> Data:
    """Copy the graph with a position among communities, as many as there are classes, in place of features."""
    dimensions = max(2, len(labels_per_class(data)))
    edges: Tensor = data.edge_index
    out = copy.copy(data)
    out.x = _positions.get(edges, [edges], lambda: community_positions(data, dimensions), dimensions)
    return out


def build_model(settings: Settings, task: Task, replicas: Sequence[Replica]) -> TrainableModel:
    """Create the model of `settings`, with the initial parameters of each replica."""
    return _make(settings, task, replicas).to(task.device)


def outline_model(settings: Settings, task: Task) -> TrainableModel:
    """The model of `settings` with one replica on the meta device: parameters have shapes, but take no memory.

    Raises an `OverflowError` if 64 bits cannot express a size.
    """
    try:
        with torch.device("meta"):
            return _make(settings, task, [Replica(0, 0)])
    except (RuntimeError, OverflowError) as error:
        if "overflow" in str(error).lower():
            raise OverflowError(str(error)) from error
    return build_model(settings, task, [Replica(0, 0)])  # a model of the user may need real tensors


def _make(settings: Settings, task: Task, replicas: Sequence[Replica]) -> TrainableModel:
    if settings.rewiring is not None and task.train_y is not None:
        raise DataError("models that rewire the graph cannot be trained on data.train_y: remove it")
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
    if settings.data.features == "standardized":
        add_standardize(model, len(replicas), task.num_features)
    return model
