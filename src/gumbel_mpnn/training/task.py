"""What a group of replicas trains on: one graph, one set of labels, a split for each replica."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.config import DataSettings
from gumbel_mpnn.data.digest import add_tensor
from gumbel_mpnn.errors import DataError, unknown_name
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures, as_features
from gumbel_mpnn.training.metrics import metrics


@dataclass(frozen=True, order=True)
class Replica:
    """One training run of a setting: the split it trains on and the seed it starts from."""

    split: int
    seed: int

    def __str__(self) -> str:
        return f"split{self.split}-seed{self.seed}"

    @classmethod
    def parse(cls, name: str) -> Replica:
        """The replica that `str` gave this name."""
        split, seed = name.removeprefix("split").split("-seed")
        return cls(int(split), int(seed))

    @property
    def stream_seed(self) -> int:
        """The seed of its random stream, different for every split too."""
        return self.seed * 1_000_003 + self.split


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
    num_classes: int

    @classmethod
    def of(
        cls, data: Data, settings: DataSettings, device: torch.device | str = "cpu", *, candidates: bool = True
    ) -> Task:
        """The task that `data` poses, read with `settings`, with its candidates among the pairs or without."""
        for name, what in (("x", "features"), ("y", "labels"), ("edge_index", "edges")):
            if data.get(name) is None:
                raise DataError(f"this graph has no {what}: give it data.{name}")
        metric = data.get("metric") or "accuracy"
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
            y=data.y.to(device),
            train_mask=train,
            val_mask=val,
            test_mask=test,
            metric=metric,
            num_features=int(x.shape[1]),
            num_classes=int(data.y.max()) + 1 if data.y.numel() else 0,
        )

    @property
    def num_splits(self) -> int:
        """S."""
        return self.train_mask.shape[0]

    def masks(self, replicas: Sequence[Replica]) -> tuple[Tensor, Tensor, Tensor]:
        """Train, validation and test mask of each replica, [R, N]."""
        split = torch.tensor([replica.split for replica in replicas], device=self.y.device)
        return self.train_mask[split], self.val_mask[split], self.test_mask[split]


def data_hash(data: Data) -> str:
    """16 hex digits of everything in `data` that training can see, labels and masks included."""
    digest = hashlib.sha256()
    names = ("x", "edge_index", "edge_weight", "candidate_index", "y", "train_mask", "val_mask", "test_mask")
    for name in names:
        value = data.get(name)
        if isinstance(value, Tensor):
            add_tensor(digest, name, value)
    digest.update(str(data.get("metric") or "accuracy").encode())
    return digest.hexdigest()[:16]


def _columns(data: Data, name: str) -> Tensor:
    mask: Tensor | None = data.get(name)
    if mask is None:
        raise DataError(f"this graph has no {name}: give it train_mask, val_mask and test_mask, or a split protocol")
    mask = mask.bool()
    return (mask[:, None] if mask.dim() == 1 else mask).T.contiguous()
