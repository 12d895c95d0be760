"""What every regularizer is: a pure function of predictions and a rewired graph, one value for each replica."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.errors import DataError, UserError
from gumbel_mpnn.registry import Registry
from gumbel_mpnn.rewiring.rewired import RewiredGraph


class Regularizer(ABC):
    """A term λ · L of the loss; L is `penalty`, λ is `weight`.

    `regularizer(out, graph, data)` is the weighted term for a loop of one's own; `weighted` is the same for a loop that
    has its labels and masks laid out along the replica axis already. Regularizers can be added: `a + b` is a `Sum`.
    Only labels of training nodes are ever used.
    """

    uses_labels: bool = False
    """Whether labels of training nodes and the training mask are needed; else any will do."""
    compares_samples: bool = False
    """Whether it looks at several sampled graphs side by side: three axes are then [S, N, C], not [R, N, C]."""

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

    def over_samples(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L of every replica where S graphs were sampled for each, the mean over them: logits [S, R, N, C] → [R].

        The graph's weights are [S, R, P] or [S · R, P], sample by sample, or [R, P] where all samples share them.
        """
        samples, replicas = logits.shape[:2]
        flat = logits.flatten(0, 1)
        values = self.penalty(flat, _aligned(graph, samples, replicas), y, train_mask.repeat(samples, 1))
        return values.view(samples, replicas).mean(0)

    def weighted(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """λ · L of every replica, [R]: `penalty` of logits [R, N, C], `over_samples` of logits [S, R, N, C]."""
        if logits.dim() == 4:
            return self.weight * self.over_samples(logits, graph, y, train_mask)
        return self.weight * self.penalty(logits, _aligned(graph, 1, logits.shape[0]), y, train_mask)

    def __call__(self, out: Tensor, graph: RewiredGraph, data: Data) -> Tensor:
        """λ · L, to be added to the loss of a loop of one's own.

        Args:
            out: Predictions (logits), [N, C], [R, N, C] or [S, R, N, C]; where samples are compared three axes are
                [S, N, C].
            graph: The rewired graph these predictions were made on.
            data: Its `y` [N] and `train_mask` [N] or [N, R] are used.

        Returns:
            One value for each replica, [R]; a scalar where `out` has no axis of replicas.
        """
        logits, alone = self._with_axes(out)
        y, train_mask = labels_of(data, logits) if self.uses_labels else _no_labels(logits)
        value = self.weighted(logits, graph, y, train_mask)
        return value[0] if alone else value

    def __add__(self, other: Regularizer) -> Sum:
        return Sum([self, other]) if isinstance(other, Regularizer) else NotImplemented

    def __radd__(self, other: object) -> Regularizer:
        """`sum()` begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if name != "weight"}
        return f"{type(self).__name__}({', '.join([str(self.weight), *(f'{k}={v}' for k, v in options.items())])})"

    def _with_axes(self, out: Tensor) -> tuple[Tensor, bool]:
        """`out` with all its axes, and whether that of the replicas was added."""
        if out.dim() == 2:
            return out[None], True
        if out.dim() == 3 and self.compares_samples:
            return out[:, None], True
        if out.dim() in (3, 4):
            return out, False
        raise UserError(
            f"{type(self).__name__} takes the model's output [N, C], [R, N, C] or [S, R, N, C], "
            f"but was given a tensor of shape {list(out.shape)}"
        )


class Sum(Regularizer):
    """Several regularizers, each with its own weight, as one."""

    def __init__(self, terms: Sequence[Regularizer], weight: float = 1.0) -> None:
        super().__init__(weight)
        self.terms = tuple(terms)
        self.uses_labels = any(term.uses_labels for term in self.terms)
        self.compares_samples = any(term.compares_samples for term in self.terms)

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Σ λ_k · L_k, [R]."""
        total = graph.weight.new_zeros(logits.shape[-3])
        for term in self.terms:
            total = total + term.weighted(logits, graph, y, train_mask)
        return total

    def over_samples(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """The same of logits [S, R, N, C]."""
        return self.penalty(logits, graph, y, train_mask)

    def __repr__(self) -> str:
        return f"Sum({list(self.terms)}, weight={self.weight})"


regularizers: Registry[Regularizer] = Registry("regularizer")


def _aligned(graph: RewiredGraph, samples: int, replicas: int) -> RewiredGraph:
    """The graph with θ and weights for every sample of every replica, [S · R, P]."""
    theta = _rows(graph.theta, "theta", samples, replicas)
    return replace(graph, theta=theta, weight=_rows(graph.weight, "weight", samples, replicas))


def _rows(values: Tensor, name: str, samples: int, replicas: int) -> Tensor:
    """Values [P], [R, P], [S · R, P] or [S, R, P] as [S · R, P]; what all share is not copied."""
    flat = values[None] if values.dim() == 1 else values.flatten(0, -2)
    wanted = samples * replicas
    if flat.shape[0] == wanted:
        return flat
    if flat.shape[0] == 1:
        return flat.expand(wanted, -1)
    if flat.shape[0] == replicas:
        return flat.repeat(samples, 1)
    of = f"{replicas} replicas" if samples == 1 else f"{samples} samples of {replicas} replicas"
    raise UserError(f"the output has {of}, but the rewired graph's {name} has {flat.shape[0]}: give those of one draw")


def labels_of(data: Data, logits: Tensor) -> tuple[Tensor, Tensor]:
    """`y` [N] and the training mask [R, N] of `data`."""
    replicas, nodes = logits.shape[-3:-1]
    for name in ("y", "train_mask"):
        if data.get(name) is None:
            raise DataError(f"this part of the loss uses the labels of training nodes: give it data.{name}")
        if data[name].shape[0] != nodes:
            raise DataError(f"data.{name} is for {data[name].shape[0]} nodes, but the output for {nodes}")
    mask: Tensor = data.train_mask.bool()
    mask = mask[None] if mask.dim() == 1 else mask.T
    if mask.shape[0] not in (1, replicas):
        raise UserError(
            f"data.train_mask has {mask.shape[0]} splits and the output {replicas} replicas: "
            "choose one split, train_mask[:, k], or a split for each replica"
        )
    return data.y.view(nodes), mask.expand(replicas, nodes)


def _no_labels(logits: Tensor) -> tuple[Tensor, Tensor]:
    replicas, nodes = logits.shape[-3:-1]
    mask = torch.zeros(replicas, nodes, dtype=torch.bool, device=logits.device)
    return mask.new_zeros(nodes, dtype=torch.int64), mask
