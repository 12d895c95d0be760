"""Base class of regularizers: functions of predictions and a rewired graph, with one value per replica."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.graph import tensor_of
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


class Regularizer(ABC):
    """A term λ · L of the loss, where L is `penalty` and λ is `weight`.

    In your own training loop, add `regularizer(out, graph, data)` to the loss. Regularizers can be added: `a + b` is a
    `Sum`. Only labels of training nodes are used.
    """

    uses_labels: bool = False
    """Whether the labels of training nodes and the training mask are used."""
    space: ClassVar[Mapping[str, Any]] = {"weight": {"low": 0.001, "high": 1.0, "log": True}}
    """Options that `tune` searches by default: a list of values or a range for each."""

    def __init__(self, weight: float = 1.0) -> None:
        if not math.isfinite(weight):
            raise UserError(f"the weight of {type(self).__name__} must be a finite number, but is {weight}")
        self.weight = weight

    @abstractmethod
    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Unweighted penalty L of every replica, [R].

        Args:
            logits: Predictions, [R, N, C].
            graph: Rewired graph, with θ and weights [R, P].
            y: Class of every node, [N]; only those of training nodes are used.
            train_mask: Training nodes of every replica, [R, N].
        """

    def weighted(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Weighted penalty λ · L of every replica, [R]; takes the arguments of `penalty`."""
        return self.weight * self.penalty(logits, graph, y, train_mask)

    def __call__(self, out: Tensor, graph: RewiredGraph, data: Data) -> Tensor:
        """Weighted penalty λ · L, to be added to the loss.

        Args:
            out: Predictions (logits), [N, C] or [R, N, C].
            graph: Rewired graph that these predictions were made on.
            data: Provides `y` [N] and `train_mask` [N] or [N, R]; training nodes without a label (y below 0) count as
                other nodes.

        Returns:
            One value per replica, [R]; a scalar if `out` has no replica axis.
        """
        logits = out[None] if out.dim() == 2 else out
        if logits.dim() != 3:
            raise UserError(
                f"{type(self).__name__} takes the model's output [N, C] or [R, N, C], "
                f"but was given a tensor of shape {list(out.shape)}"
            )
        y, train_mask = labels_of(data, logits) if self.uses_labels else _no_labels(logits)
        value = self.weighted(logits, _aligned(graph, len(logits)), y, train_mask)
        return value[0] if out.dim() == 2 else value

    def __add__(self, other: Regularizer) -> Sum:
        return Sum([self, other]) if isinstance(other, Regularizer) else NotImplemented

    def __radd__(self, other: object) -> Regularizer:
        """Support `sum()`, which starts with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if name != "weight"}
        return f"{type(self).__name__}({', '.join([str(self.weight), *(f'{k}={v}' for k, v in options.items())])})"


class Sum(Regularizer):
    """Sum of several regularizers, each with its own weight."""

    def __init__(self, terms: Sequence[Regularizer], weight: float = 1.0) -> None:
        super().__init__(weight)
        self.terms = tuple(terms)
        self.uses_labels = any(term.uses_labels for term in self.terms)

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Σ λ_k · L_k, [R]."""
        total = graph.weight.new_zeros(len(logits))
        for term in self.terms:
            total = total + term.weighted(logits, graph, y, train_mask)
        return total

    def __repr__(self) -> str:
        return f"Sum({list(self.terms)}, weight={self.weight})"


regularizers: Registry[Regularizer] = Registry("regularizer")


def _aligned(graph: RewiredGraph, replicas: int) -> RewiredGraph:
    """Expand θ and weights of a graph to [R, P], without copying what the replicas share."""
    theta, weight = (_rows(getattr(graph, name), name, replicas) for name in ("theta", "weight"))
    return replace(graph, theta=theta, weight=weight)


def _rows(values: Tensor, name: str, replicas: int) -> Tensor:
    """Expand values [P], [1, P] or [R, P] to [R, P]."""
    if values.dim() == 1 or (values.dim() == 2 and len(values) in (1, replicas)):
        return values.expand(replicas, -1)
    raise UserError(
        f"the output has {replicas} replicas, but {name} of the rewired graph has the shape {list(values.shape)}: "
        "pass the graph that was returned with this output"
    )


def labels_of(data: Data, logits: Tensor, *, needed: bool = False) -> tuple[Tensor, Tensor]:
    """Labels int64 [N] and training mask [R, N] of `data`; nodes without a label (y below 0) are not in the mask.

    If labels are `needed`, a replica without any raises a `DataError`. Results are cached as long as the tensors are
    unchanged, since checking their values waits for the GPU.
    """
    replicas, nodes, classes = logits.shape
    for name in ("y", "train_mask"):
        value = tensor_of(data, name)
        if value is None:
            raise DataError(f"this loss uses the labels of training nodes, which this graph lacks: give it data.{name}")
        if value.shape[0] != nodes:
            raise DataError(f"data.{name} has {value.shape[0]} nodes, but the output has {nodes}: they must match")
    y, train_mask = data.y, data.train_mask
    labels, mask, some = _label_cache.get(
        train_mask, [train_mask, y], lambda: _labels(y, train_mask, replicas, nodes, classes), replicas, classes
    )
    if needed and not some:
        raise DataError("this loss needs training nodes with a label (data.y of 0 or more): data.train_mask has none")
    return labels, mask


def _labels(y: Tensor, train_mask: Tensor, replicas: int, nodes: int, classes: int) -> tuple[Tensor, Tensor, bool]:
    """Labels [N], mask [R, N], and whether every replica has a label."""
    if y.numel() != nodes or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise DataError(f"data.y must be whole numbers of shape [{nodes}], not {y.dtype} {list(y.shape)}")
    mask = by_split(train_mask.bool()).T
    if mask.shape[0] not in (1, replicas):
        raise UserError(
            f"data.train_mask has {mask.shape[0]} splits, but the output has {replicas} replicas: "
            "choose one split, train_mask[:, k], or one split per replica"
        )
    labels = y.reshape(nodes).long()
    mask = mask & (labels >= 0)
    if bool((mask & (labels >= classes)).any()):
        raise DataError(f"a training node has the label {int(labels.max())}, but the output has {classes} classes")
    return labels, mask.expand(replicas, nodes), bool(mask.any(-1).all())


_label_cache: TensorCache[tuple[Tensor, Tensor, bool]] = TensorCache()


def _no_labels(logits: Tensor) -> tuple[Tensor, Tensor]:
    replicas, nodes = logits.shape[:2]
    mask = torch.zeros(replicas, nodes, dtype=torch.bool, device=logits.device)
    return mask.new_zeros(nodes, dtype=torch.int64), mask
