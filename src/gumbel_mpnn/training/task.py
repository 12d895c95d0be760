"""What a group of replicas trains on: one graph, one set of labels, a split for each replica."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.content_cache import add_tensor
from gumbel_mpnn._util.errors import DataError, unknown_name
from gumbel_mpnn.config import DataSettings, Replica
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures, as_features
from gumbel_mpnn.training.metrics import metrics


@dataclass(frozen=True)
class Task:
    """Tensors of one training problem, on one device; masks are [S, N]."""

    features: Tensor | SparseFeatures
    graph: PairGraph
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    metric: str
    num_features: int
    labels_per_class: tuple[int, ...]
    """How many outputs of a model stand for each class, one class after the other: one, unless there is `train_y`."""
    train_y: Tensor | None = None
    """Finer labels to train on, [S, N]; only predictions are judged by the classes `y`."""

    @classmethod
    def of(
        cls, data: Data, settings: DataSettings, device: torch.device | str = "cpu", *, candidates: bool = True
    ) -> Task:
        """The task that `data` poses, read with `settings`, with its candidates among the pairs or without."""
        for name, what in (("x", "features"), ("y", "labels"), ("edge_index", "edges")):
            if data.get(name) is None:
                raise DataError(f"this graph has no {what}: give it data.{name}")
        metric = data.get("metric") or "accuracy"
        if not isinstance(metric, str):  # a Batch has those of all its graphs
            raise DataError(f"data.metric must be the name of one metric, as 'accuracy', not {metric!r}")
        if metric not in metrics:
            raise unknown_name("metric", metric, metrics)
        masks = [_columns(data, name) for name in ("train_mask", "val_mask", "test_mask")]
        x = (data.x if data.x.layout == torch.strided else data.x.to_dense()).float()
        if settings.features == "row-normalized":
            x = x / x.abs().sum(-1, keepdim=True).clamp(min=1e-12)
        train, val, test = (mask.to(device) for mask in masks)
        return cls(
            features=as_features(x, device),
            graph=PairGraph.of(data, undirected=settings.undirected, candidates=candidates).to(device),
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
    def num_splits(self) -> int:
        """S."""
        return self.train_mask.shape[0]

    @property
    def num_classes(self) -> int:
        """C."""
        return len(self.labels_per_class)

    @property
    def num_outputs(self) -> int:
        """What a model has to tell apart: the classes, or the finer labels it trains on."""
        return sum(self.labels_per_class)

    def class_scores(self, logits: Tensor) -> Tensor:
        """Logits of the classes [..., C] from a model's; a class is as likely as its finer labels together."""
        if all(size == 1 for size in self.labels_per_class):
            return logits
        parts = logits.split(self.labels_per_class, dim=-1)
        return torch.stack([part.logsumexp(-1) for part in parts], dim=-1)

    def targets(self, replicas: Sequence[Replica]) -> Tensor:
        """What the replicas train on: the classes [N], or finer labels for each of them [R, N]."""
        return self.y if self.train_y is None else self.train_y[self._splits(replicas)]

    def masks(self, replicas: Sequence[Replica]) -> tuple[Tensor, Tensor, Tensor]:
        """Train, validation and test mask of each replica, [R, N]."""
        split = self._splits(replicas)
        return self.train_mask[split], self.val_mask[split], self.test_mask[split]

    def _splits(self, replicas: Sequence[Replica]) -> Tensor:
        return torch.tensor([replica.split for replica in replicas], device=self.y.device)


def data_hash(data: Data) -> str:
    """16 hex digits of everything in `data` that training can see, labels and masks included.

    A single split is the same as [N] and as [N, 1].
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
            add_tensor(digest, name, value[:, None] if name in of_each_split and value.dim() == 1 else value)
    digest.update(str(data.get("metric") or "accuracy").encode())
    return digest.hexdigest()[:16]


def labels_per_class(data: Data) -> tuple[int, ...]:
    """How many labels stand for each class: one, unless `data.class_of` [Q] names the class of each of `train_y`."""
    num_classes = int(data.y.max()) + 1 if data.y.numel() else 0
    class_of: Tensor | None = data.get("class_of")
    if data.get("train_y") is None or class_of is None:
        return (1,) * num_classes
    if class_of.dim() != 1 or (class_of < 0).any() or (class_of.diff() < 0).any():
        raise DataError("class_of must name the class of every label in train_y, in ascending order")
    return tuple(class_of.bincount(minlength=num_classes).tolist())


def _train_y(data: Data, train_mask: Tensor) -> Tensor:
    """The finer labels of each split, [S, N]: they must be of the class that `y` says."""
    class_of: Tensor | None = data.get("class_of")
    train_y: Tensor = data.train_y
    if class_of is None:
        raise DataError("train_y needs class_of, the class of each of its labels")
    labels = (train_y[:, None] if train_y.dim() == 1 else train_y).T.expand(train_mask.shape).contiguous()
    trained = labels[train_mask]
    if trained.numel() and (trained.min() < 0 or trained.max() >= len(class_of)):
        raise DataError(f"train_y must lie between 0 and {len(class_of) - 1} on training nodes")
    if (class_of[trained] != data.y.expand(train_mask.shape)[train_mask]).any():
        raise DataError("class_of[train_y] must be y on training nodes")
    return labels


def _columns(data: Data, name: str) -> Tensor:
    mask: Tensor | None = data.get(name)
    if mask is None:
        raise DataError(f"this graph has no {name}: give it train_mask, val_mask and test_mask, or a split protocol")
    mask = mask.bool()
    return (mask[:, None] if mask.dim() == 1 else mask).T.contiguous()
