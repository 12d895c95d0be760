"""Tasks: the tensors that a group of replicas trains on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.content_cache import add_tensor
from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn._util.sparse_tensors import dense_if_small
from gumbel_mpnn.config import DataSettings, Replica, Settings
from gumbel_mpnn.data.splits import by_split, with_all_masks
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures, as_features
from gumbel_mpnn.training.metrics import metric_of
from gumbel_mpnn.training.parts import Part, cut


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
    labels_per_class: tuple[int, ...]
    """Number of model outputs per class, which are consecutive; 1 for every class without `train_y`."""
    train_y: Tensor | None = None
    """Finer labels to train on, [S, N]; metrics still use the classes `y`."""
    parts: tuple[Part, ...] = ()
    """Parts of the graph to train on one after the other; none to train on the whole graph at once."""
    device_of_parts: torch.device | None = None
    """Device that parts are copied to for a step, while the task itself stays in the memory of the CPU."""

    @classmethod
    def for_model(cls, data: Data, settings: Settings, device: torch.device | str = "cpu") -> Task:
        """Create the task of a model from its prepared graph, in parts if the settings ask for them."""
        rewiring, partitions = settings.rewiring, settings.train.partitions
        options = {"candidates": rewiring is not None, "symmetric": rewiring is None or rewiring.symmetric}
        if partitions == 1:
            return cls.of(data, settings.data, device, **options)
        task = cls.of(data, settings.data, "cpu", **options)
        return replace(task, parts=cut(task, partitions), device_of_parts=torch.device(device))

    @classmethod
    def of(
        cls,
        data: Data,
        settings: DataSettings,
        device: torch.device | str = "cpu",
        *,
        candidates: bool = True,
        symmetric: bool = True,
    ) -> Task:
        """Create a task from a graph with features, labels and masks, on request with its candidates.

        If `symmetric`, both directions of an undirected edge are one pair; otherwise they are two.
        """
        for name, what in (("x", "features"), ("y", "labels"), ("edge_index", "edges")):
            if data.get(name) is None:
                raise DataError(f"this graph has no {what}: give it data.{name}")
        metric = metric_of(data, settings)
        data = with_all_masks(data)
        masks = [by_split(data[name].bool()).T.contiguous() for name in ("train_mask", "val_mask", "test_mask")]
        x = data.x.float()
        if settings.features == "row-normalized":
            x = _row_normalized(x)
        train, val, test = (mask.to(device) for mask in masks)
        graph = PairGraph.of(data, undirected=settings.undirected, candidates=candidates)
        return cls(
            # Standardized features have hardly a zero.
            features=x.to_dense().to(device) if settings.features == "standardized" else as_features(x, device),
            graph=(graph if symmetric else graph.directed()).to(device),
            y=data.y.long().to(device),
            train_mask=train,
            val_mask=val,
            test_mask=test,
            metric=metric,
            num_features=int(x.shape[1]),
            labels_per_class=labels_per_class(data),
            train_y=_train_y(data, masks[0]).long().to(device) if data.get("train_y") is not None else None,
        )

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

    @property
    def num_classes(self) -> int:
        """Number of classes C."""
        return len(self.labels_per_class)

    @property
    def num_outputs(self) -> int:
        """Number of model outputs: classes, or finer labels to train on."""
        return sum(self.labels_per_class)

    def class_scores(self, logits: Tensor) -> Tensor:
        """Logits of the classes, [..., C], from the outputs of a model; finer labels of a class are added up."""
        if all(size == 1 for size in self.labels_per_class):
            return logits
        parts = logits.split(self.labels_per_class, dim=-1)
        return torch.stack([part.logsumexp(-1) for part in parts], dim=-1)

    def targets(self, replicas: Sequence[Replica]) -> Tensor:
        """Labels to train on: classes [N], or finer labels of each replica [R, N]."""
        return self.y if self.train_y is None else self.train_y[self._splits(replicas)]

    def masks(self, replicas: Sequence[Replica]) -> tuple[Tensor, Tensor, Tensor]:
        """Training, validation and test mask of each replica, [R, N]."""
        split = self._splits(replicas)
        return self.train_mask[split], self.val_mask[split], self.test_mask[split]

    def _splits(self, replicas: Sequence[Replica]) -> Tensor:
        return torch.tensor([replica.split for replica in replicas], device=self.y.device)


def data_hash(data: Data) -> str:
    """Hash of all that training depends on, including labels and masks, and of all names; 16 hex digits.

    Names of nodes, classes and feature columns do not change training, but results are shown with them: graphs that
    differ in names have runs of their own. Masks of a single split have the same hash as [N] and as [N, 1].
    """
    digest = hashlib.sha256()
    names = (
        "x",
        "edge_index",
        "edge_weight",
        "candidate_index",
        "batch",
        "y",
        "train_mask",
        "val_mask",
        "test_mask",
        "class_of",
        "train_y",
    )
    of_each_split = ("train_mask", "val_mask", "test_mask", "train_y")
    for name in names:
        value = data.get(name)
        if isinstance(value, Tensor):
            add_tensor(digest, name, by_split(value) if name in of_each_split else value)
    digest.update(str(data.get("metric") or "accuracy").encode())
    for name in ("node_ids", "class_names", "feature_columns"):
        if (names := data.get(name)) is not None:
            digest.update(f"{name}{list(names)}".encode())
    return digest.hexdigest()[:16]


def labels_per_class(data: Data) -> tuple[int, ...]:
    """Number of labels per class: 1, unless `data.class_of` [Q] maps the finer labels of `train_y` to classes."""
    num_classes = int(data.y.max()) + 1 if data.y.numel() else 0
    class_of: Tensor | None = data.get("class_of")
    if data.get("train_y") is None or class_of is None:
        return (1,) * num_classes
    if class_of.dim() != 1 or (class_of < 0).any() or (class_of.diff() < 0).any():
        raise DataError("data.class_of must have the class of every label of train_y, in ascending order")
    return tuple(class_of.bincount(minlength=num_classes).tolist())


def _train_y(data: Data, train_mask: Tensor) -> Tensor:
    """Check the finer labels of each split, and return them as [S, N]."""
    class_of: Tensor | None = data.get("class_of")
    train_y: Tensor = data.train_y
    if class_of is None:
        raise DataError("data.train_y needs data.class_of: set it to the class of each label of train_y")
    labels = by_split(train_y).T.expand(train_mask.shape).contiguous()
    trained = labels[train_mask]
    if trained.numel() and (trained.min() < 0 or trained.max() >= len(class_of)):
        raise DataError(f"data.train_y must lie between 0 and {len(class_of) - 1} on training nodes")
    if (class_of[trained] != data.y.expand(train_mask.shape)[train_mask]).any():
        raise DataError("data.class_of[data.train_y] must be equal to data.y on training nodes")
    return labels


def _row_normalized(x: Tensor) -> Tensor:
    """Divide each row by the sum of its absolute values; `x` [N, F] is dense or sparse."""
    x = dense_if_small(x)
    if x.layout is torch.strided:
        return x / x.abs().sum(-1, keepdim=True).clamp(min=1e-12)
    row, values = x.indices()[0], x.values()
    total = values.new_zeros(len(x)).index_add_(0, row, values.abs()).clamp(min=1e-12)
    return torch.sparse_coo_tensor(x.indices(), values / total[row], x.shape, is_coalesced=True, check_invariants=False)
