"""Tasks: the tensors that a group of replicas trains on, whole or in parts that are trained on one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split, with_all_masks
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.graph.partition import Subgraph, partition, subgraphs
from gumbel_mpnn.nn import SparseFeatures, as_features
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training.metrics import metric_of
from gumbel_mpnn.util.errors import DataError
from gumbel_mpnn.util.tensors import add_tensor, dense_if_small

MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class Task:
    """Graph, labels and masks [S, N] of one training problem, on one device."""

    features: Tensor | SparseFeatures
    """Features [N, F]; [R, N, F] where `seen_by` a model that standardizes them."""
    graph: PairGraph
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    metric: str
    num_features: int
    num_classes: int
    parts: tuple[Part, ...] = ()
    """Parts of the graph to train on one after the other; none to train on the whole graph at once."""
    device_of_parts: torch.device | None = None
    """Device that parts are copied to for a step, while the task itself stays in the memory of the CPU."""

    @classmethod
    def of(cls, data: Data, settings: Settings, device: torch.device | str = "cpu") -> Task:
        """Create the task of a model from its prepared graph, in parts if the settings ask for them."""
        for name, what in (("x", "features"), ("y", "labels"), ("edge_index", "edges")):
            if data.get(name) is None:
                raise DataError(f"this graph has no {what}: give it data.{name}")
        metric = metric_of(data, settings.data)
        data = with_all_masks(data)
        x, features = data.x.float(), settings.data.features
        if features == "row-normalized":
            x = _row_normalized(x)
        rewiring, partitions = settings.rewiring, settings.train.partitions
        graph = PairGraph.of(data, undirected=settings.data.undirected, candidates=rewiring is not None)
        if rewiring is not None and not rewiring.symmetric:
            graph = graph.directed()
        place = device if partitions == 1 else "cpu"
        masks: dict[str, Any] = {name: by_split(data[name].bool()).T.contiguous().to(place) for name in MASKS}
        task = cls(
            # Standardized features have hardly a zero.
            features=x.to_dense().to(place) if features == "standardized" else as_features(x, place),
            graph=graph.to(place),
            y=data.y.long().to(place),
            metric=metric,
            num_features=int(x.shape[1]),
            num_classes=num_classes(data),
            **masks,
        )
        if partitions == 1:
            return task
        return replace(task, parts=_cut(task, partitions), device_of_parts=torch.device(device))

    @property
    def device(self) -> torch.device:
        """Device of training."""
        return self.device_of_parts or self.y.device

    @property
    def largest(self) -> Task:
        """The part with the most pairs, or the task itself."""
        return max((part.task for part in self.parts), key=lambda task: task.graph.num_pairs, default=self)

    def to(self, device: torch.device) -> Task:
        """The task with features and graph on another device."""
        return replace(self, features=self.features.to(device), graph=self.graph.to(device))

    @property
    def num_splits(self) -> int:
        """Number of splits S."""
        return self.train_mask.shape[0]

    def masks(self, replicas: Sequence[Replica]) -> tuple[Tensor, Tensor, Tensor]:
        """Training, validation and test mask of each replica, [R, N]."""
        split = torch.tensor([replica.split for replica in replicas], device=self.y.device)
        return self.train_mask[split], self.val_mask[split], self.test_mask[split]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a task, which is trained on by itself."""

    task: Task
    """Task of the nodes of the part and of its halo, which are in no mask."""
    cut: Subgraph
    """Which nodes and pairs these are."""


def _cut(task: Task, count: int) -> tuple[Part, ...]:
    """Cut a task on the CPU into at most `count` parts, with as few pairs between them as possible."""
    parts = []
    for cut in subgraphs(task.graph, partition(task.graph, count)):
        of_nodes = {name: getattr(task, name)[:, cut.nodes] & cut.own for name in MASKS}
        of_part = replace(task, features=task.features[cut.nodes], graph=cut.graph, y=task.y[cut.nodes], **of_nodes)
        parts.append(Part(of_part, cut))
    return tuple(parts)


@dataclass(frozen=True, eq=False)
class Batch:
    """What one backward pass of a group of replicas is computed from."""

    seen: Task
    """Features and graph; a part is still in the memory of the CPU."""
    y: Tensor
    """Labels, [N]."""
    train_mask: Tensor
    """Training nodes, [R, N]."""
    weight: Tensor | None
    """Weights of the nodes in the classification loss, [R, N]; None for 1."""
    share: Tensor | None = None
    """Share of the training nodes of each replica that are in this part, [R]; None for the whole task."""

    def of_part(self, part: Part) -> Batch | None:
        """The batch of a part of this whole task; None if no replica has a training node there."""
        nodes, own = part.cut.nodes, part.cut.own
        mask = self.train_mask[:, nodes] & own
        if not mask.any():
            return None
        weights = torch.ones_like(self.train_mask, dtype=torch.float32) if self.weight is None else self.weight
        weight = weights[:, nodes]
        here, everywhere = (mask * weight).double().sum(-1), (self.train_mask * weights).double().sum(-1)
        # The mean of a replica without a training node here would be NaN. It is taken over another node, and its share
        # is 0, so that it counts nothing.
        without, first = ~mask.any(-1), own.nonzero()[0]
        mask[without, first], weight[without, first] = True, 1.0
        return Batch(
            seen=part.task,
            y=self.y[nodes],
            train_mask=mask,
            weight=None if self.weight is None else weight,
            share=(here / everywhere).float(),
        )

    def to(self, device: torch.device) -> Batch:
        """The batch on another device."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        moved: dict[str, Any] = {name: value.to(device) for name, value in given.items()}
        return replace(self, **moved)


def balanced(y: Tensor, train_mask: Tensor) -> Tensor:
    """Weight of every node, inversely proportional to the number of training nodes of its class, [N], [R, N] → [R, N].

    As scikit-learn's `class_weight="balanced"`: over the training nodes, weights are 1 on average. Nodes of a class
    without training nodes, and nodes without a label, have weight 0.
    """
    labels = y.clamp(min=0).expand(train_mask.shape)
    num_classes = int(y.max()) + 1
    counts = train_mask.new_zeros(len(train_mask), num_classes).double().scatter_add_(1, labels, train_mask.double())
    weight = train_mask.sum(-1, keepdim=True) / ((counts > 0).sum(-1, keepdim=True) * counts.clamp(min=1))
    return ((weight * (counts > 0)).gather(1, labels) * (y >= 0)).float()


def data_hash(data: Data) -> str:
    """Hash of all that training depends on, including labels and masks, and of all names; 16 hex digits.

    Names of nodes, classes and feature columns do not change training, but results are shown with them: graphs that
    differ in names have runs of their own. Masks of a single split have the same hash as [N] and as [N, 1].
    """
    digest = hashlib.sha256()
    for name in ("x", "edge_index", "edge_weight", "candidate_index", "batch", "y", *MASKS):
        value = data.get(name)
        if isinstance(value, Tensor):
            add_tensor(digest, name, by_split(value) if name in MASKS else value)
    digest.update(str(data.get("metric") or "accuracy").encode())
    for name in ("node_ids", "class_names", "feature_columns"):
        if (names := data.get(name)) is not None:
            digest.update(f"{name}{list(names)}".encode())
    return digest.hexdigest()[:16]


def num_classes(data: Data) -> int:
    """Number of classes: one more than the largest label."""
    return int(data.y.max()) + 1 if data.y.numel() else 0


def _row_normalized(x: Tensor) -> Tensor:
    """Divide each row by the sum of its absolute values; `x` [N, F] is dense or sparse."""
    x = dense_if_small(x)
    if x.layout is torch.strided:
        return x / x.abs().sum(-1, keepdim=True).clamp(min=1e-12)
    row, values = x.indices()[0], x.values()
    total = values.new_zeros(len(x)).index_add_(0, row, values.abs()).clamp(min=1e-12)
    return torch.sparse_coo_tensor(x.indices(), values / total[row], x.shape, is_coalesced=True, check_invariants=False)
