"""Creates the models of settings, prepares their graphs and features, and computes what they predict."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn import baselines, rewiring
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.nn import TrainableModel, models
from gumbel_mpnn.nn.backbones import Report
from gumbel_mpnn.nn.features import Standardize
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training.task import Task, num_classes
from gumbel_mpnn.util.errors import DataError
from gumbel_mpnn.util.tensors import TensorCache, coalesced

STRUCTURE, WITH_STRUCTURE = "structure", "with-structure"
"""Values of `data.features` for positions among the communities of the graph, alone and beside the features."""
PER_CLASS = 4
"""Dimensions of positions beside features, for each class. With 3 or 5, validation values of attacked graphs are about
the same; with 9 they are much lower."""
SHARE = 0.25
"""Mean squared length of positions beside features, compared with that of the features; with up to 1, validation values
are about the same."""
MATMUL = "tf32"
"""How a GPU multiplies matrices of 32 bits in training and prediction: several times faster than with "ieee"."""
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


def _positions_of(data: Data, per_class: int = 1) -> Tensor:
    """Position of every node among the communities of the given edges, [N, classes · per_class]."""
    edges: Tensor = data.edge_index
    dimensions = per_class * max(2, num_classes(data))
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
    """The model of `settings` with one replica on the meta device: parameters have shapes, but take no memory."""
    try:
        with torch.device("meta"):
            return _make(settings, task, [Replica(0, 0)])
    except RuntimeError:  # a model of the user may need real tensors
        return build_model(settings, task, [Replica(0, 0)])


def _make(settings: Settings, task: Task, replicas: Sequence[Replica]) -> TrainableModel:
    extra: dict[str, Any] = {} if settings.rewiring is None else {"rewiring": settings.rewiring}
    make: Any = models[settings.model]
    model: TrainableModel = make(
        in_channels=task.num_features,
        out_channels=task.num_classes,
        **settings.options,
        **extra,
        replicas=len(replicas),
        seeds=[replica.stream_seed for replica in replicas],
    )
    if settings.data.features == "standardized":  # as a part of the model, so that its state has the statistics
        model.add_module("standardize", Standardize(len(replicas), task.num_features))
    return model


def fit_features(model: TrainableModel, task: Task, train_mask: Tensor) -> None:
    """Take the statistics of the features over the training nodes [R, N], if the model standardizes features."""
    if isinstance(standardize := getattr(model, "standardize", None), Standardize):
        standardize.fit(_dense(task), train_mask)


def seen_by(model: TrainableModel, task: Task) -> Task:
    """The task with the features of every replica [R, N, F] if the model standardizes them, else the task itself.

    Features that have a replica axis already are left alone, and so is a task in parts: each part is seen by itself.
    """
    standardize = getattr(model, "standardize", None)
    if not isinstance(standardize, Standardize) or task.parts or len(task.features.shape) == 3:
        return task
    return replace(task, features=standardize(_dense(task)))


def _dense(task: Task) -> Tensor:
    if not isinstance(task.features, Tensor):
        raise DataError("sparse features cannot be standardized: leave out data.features=standardized")
    return task.features


@contextmanager
def matmul_precision() -> Iterator[None]:
    """Let a GPU multiply matrices as `MATMUL` says."""
    switch, before = torch.backends.cuda.matmul, torch.backends.cuda.matmul.fp32_precision
    switch.fp32_precision = MATMUL
    try:
        yield
    finally:
        switch.fp32_precision = before


def activation_precision(settings: Settings, device: torch.device) -> torch.autocast:
    """Store activations in 16 bits, if the settings ask for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=settings.train.bfloat16, cache_enabled=False)


def class_scores(model: TrainableModel, task: Task, settings: Settings) -> Tensor:
    """Class scores of every node of the task, [R, N, C], part by part if it has parts."""
    if not task.parts:
        return _logits(model, task, settings)
    found = (
        (part.nodes[part.own], _logits(model, part.task.to(task.device), settings).cpu()[:, part.own])
        for part in task.parts
    )
    return _joined(found, len(task.y))


def pair_probability(model: TrainableModel, task: Task, settings: Settings) -> Tensor | None:
    """Probability of every pair to be an edge, [R, P]; None if the model does not learn a graph."""
    if not task.parts:
        return _probability(model, task, settings)
    found = []
    for part in task.parts:
        learned = _probability(model, part.task.to(task.device), settings)
        if learned is None:
            return None
        found.append((part.pairs[part.own_pairs], learned.cpu()[:, part.own_pairs]))
    return _joined(found, task.graph.num_pairs)


def _joined(found: Iterable[tuple[Tensor, Tensor]], size: int) -> Tensor:
    """Values of all places, [R, size, ...], from places [n] and their values [R, n, ...]."""
    whole = None
    for places, values in found:
        if whole is None:
            whole = values.new_zeros(len(values), size, *values.shape[2:])
        whole[:, places] = values
    assert whole is not None
    return whole


def _logits(model: TrainableModel, task: Task, settings: Settings) -> Tensor:
    task = seen_by(model, task)
    with matmul_precision(), activation_precision(settings, task.features.device):
        logits: Tensor = model(task.features, task.graph)
    return logits.to(task.features.dtype)


def _probability(model: TrainableModel, task: Task, settings: Settings) -> Tensor | None:
    task = seen_by(model, task)
    with matmul_precision(), activation_precision(settings, task.features.device):
        return model.pair_probability(task.features, task.graph)
