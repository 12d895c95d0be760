"""What every regularizer is: a pure function of predictions and a rewired graph, one value for each replica."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


class Regularizer(ABC):
    """A term λ · L of the loss; L is `penalty`, λ is `weight`.

    `regularizer(out, graph, data)` is the weighted term for a loop of one's own; `weighted` is the same for a loop that
    has its labels and masks laid out along the replica axis already. Regularizers can be added: `a + b` is a `Sum`.
    Only labels of training nodes are ever used.
    """

    uses_labels: bool = False
    """Whether labels of training nodes and the training mask are needed; else any will do."""

    def __init__(self, weight: float = 1.0) -> None:
        if not math.isfinite(weight):
            raise UserError(f"the weight of {type(self).__name__} must be a finite number, but is {weight}")
        self.weight = weight

    @abstractmethod
    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L of every replica, unweighted, [R].

        Args:
            logits: Predictions, [R, N, C].
            graph: The rewired graph, θ and weights [R, P].
            y: Class of every node, [N]; only those of training nodes are used, the others may be anything.
            train_mask: Training nodes of every replica, [R, N].
        """

    def weighted(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """λ · L of every replica, [R]; the arguments are those of `penalty`."""
        return self.weight * self.penalty(logits, graph, y, train_mask)

    def __call__(self, out: Tensor, graph: RewiredGraph, data: Data) -> Tensor:
        """λ · L, to be added to the loss of a loop of one's own.

        Args:
            out: Predictions (logits), [N, C] or [R, N, C].
            graph: The rewired graph these predictions were made on.
            data: Its `y` [N] and `train_mask` [N] or [N, R] are used; training nodes without a label (below 0) count as
                any other node.

        Returns:
            One value for each replica, [R]; a scalar where `out` has no axis of replicas.
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
        """`sum()` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if name != "weight"}
        return f"{type(self).__name__}({', '.join([str(self.weight), *(f'{k}={v}' for k, v in options.items())])})"


class Sum(Regularizer):
    """Several regularizers, each with its own weight, as one."""

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
    """The graph with θ and weights for every replica, [R, P]; what all share is not copied."""
    theta, weight = (_rows(getattr(graph, name), name, replicas) for name in ("theta", "weight"))
    return replace(graph, theta=theta, weight=weight)


def _rows(values: Tensor, name: str, replicas: int) -> Tensor:
    """Values [P], [1, P] or [R, P] as [R, P]."""
    if values.dim() == 1 or (values.dim() == 2 and len(values) in (1, replicas)):
        return values.expand(replicas, -1)
    raise UserError(
        f"the output has {replicas} replicas, but the rewired graph's {name} the shape {list(values.shape)}: "
        "give the graph of this output"
    )


def labels_of(data: Data, logits: Tensor, *, needed: bool = False) -> tuple[Tensor, Tensor]:
    """`y` int64 [N] and the training mask [R, N] of `data`, in which nodes without a label (y below 0) are not.

    Where labels are `needed`, a mask without any is a `DataError`. What was found is kept while the tensors stay as
    they are: looking at them makes the program wait for a GPU.
    """
    replicas, nodes, classes = logits.shape
    for name in ("y", "train_mask"):
        if data.get(name) is None:
            raise DataError(f"this part of the loss uses the labels of training nodes: give it data.{name}")
        if data[name].shape[0] != nodes:
            raise DataError(f"data.{name} is for {data[name].shape[0]} nodes, but the output for {nodes}")
    y, train_mask = data.y, data.train_mask
    labels, mask, some = _found.get(
        train_mask, [train_mask, y], lambda: _labels(y, train_mask, replicas, nodes, classes), replicas, classes
    )
    if needed and not some:
        raise DataError("data.train_mask has no node with a label (data.y of 0 or more), and this loss needs some")
    return labels, mask


def _labels(y: Tensor, train_mask: Tensor, replicas: int, nodes: int, classes: int) -> tuple[Tensor, Tensor, bool]:
    """Labels, mask, and whether every replica has some of them."""
    if y.numel() != nodes or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise DataError(f"data.y must be whole numbers of shape [{nodes}], not {y.dtype} {list(y.shape)}")
    mask = train_mask.bool()
    mask = mask[None] if mask.dim() == 1 else mask.T
    if mask.shape[0] not in (1, replicas):
        raise UserError(
            f"data.train_mask has {mask.shape[0]} splits and the output {replicas} replicas: "
            "choose one split, train_mask[:, k], or a split for each replica"
        )
    labels = y.reshape(nodes).long()
    mask = mask & (labels >= 0)
    if bool((mask & (labels >= classes)).any()):
        raise DataError(f"a training node has the label {int(labels.max())}, but the output is for {classes} classes")
    return labels, mask.expand(replicas, nodes), bool(mask.any(-1).all())


_found: TensorCache[tuple[Tensor, Tensor, bool]] = TensorCache()


def _no_labels(logits: Tensor) -> tuple[Tensor, Tensor]:
    replicas, nodes = logits.shape[:2]
    mask = torch.zeros(replicas, nodes, dtype=torch.bool, device=logits.device)
    return mask.new_zeros(nodes, dtype=torch.int64), mask
