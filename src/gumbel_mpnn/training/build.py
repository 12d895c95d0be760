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
from gumbel_mpnn._util.sparse_tensors import coalesced
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.nn import TrainableModel, models
from gumbel_mpnn.nn.model import Report
from gumbel_mpnn.training.inputs import add_standardize
from gumbel_mpnn.training.task import Task, labels_per_class

STRUCTURE, WITH_STRUCTURE = "structure", "with-structure"
"""Values of `data.features` for positions among the communities of the graph, alone and beside the features."""
PER_CLASS = 4
"""Dimensions of positions beside features, for each class. With 3 or 5, validation values of attacked graphs are about
the same; with 9 they are much lower."""
SHARE = 0.25
"""Mean squared length of positions beside features, compared with that of the features; with up to 1, validation values
are about the same."""
_positions: TensorCache[Tensor] = TensorCache()
_REGISTERING = (baselines, rewiring)
"""Subpackages that are imported to register their models."""


def prepare(data: Data, settings: Settings, report: Report | None = None) -> Data:
    """Prepare the graph for the model of `settings`; `report` is called with the steps done and the total number.

    Positions beside the features come last, so that candidates and similar nodes are found by the features alone.
    """
    features = settings.data.features
    if features == STRUCTURE:
        data = _with_features(data, _positions_of(data))
    prepared = models[settings.model].prepare(data, settings, report)
    if features == WITH_STRUCTURE and prepared.get("x") is not None:
        prepared = _with_features(prepared, _beside(prepared.x, _positions_of(data, PER_CLASS)))
    return prepared


def num_seen(features: int, classes: int, settings: Settings) -> int:
    """Number of features that a model sees of a graph with so many of its own."""
    if settings.data.features == STRUCTURE:
        return _dimensions(classes)
    return features + (_dimensions(classes, PER_CLASS) if settings.data.features == WITH_STRUCTURE else 0)


def _dimensions(classes: int, per_class: int = 1) -> int:
    return per_class * max(2, classes)


def _positions_of(data: Data, per_class: int = 1) -> Tensor:
    """Position of every node among the communities of the given edges, [N, classes · per_class]."""
    edges: Tensor = data.edge_index
    dimensions = _dimensions(len(labels_per_class(data)), per_class)
    return _positions.get(edges, [edges], lambda: community_positions(data, dimensions), (dimensions, data.num_nodes))


def _with_features(data: Data, x: Tensor) -> Data:
    out = copy.copy(data)
    out.x = x
    return out


def _beside(x: Tensor, positions: Tensor) -> Tensor:
    """Features [N, F], dense or sparse, with positions [N, K] as further columns, scaled as the features are."""
    is_dense = x.layout is torch.strided
    x = x.float() if is_dense else coalesced(x.float())
    length, own = (x if is_dense else x.values()).square().sum(), positions.square().sum()
    scale = (SHARE * length / own).sqrt() if length > 0 and own > 0 else 1.0
    columns = (scale * positions).to(x.device)
    return torch.cat([x, columns if is_dense else columns.to_sparse()], dim=1)


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
