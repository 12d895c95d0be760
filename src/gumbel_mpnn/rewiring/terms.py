"""Terms of the loss: each computes a value per replica from the results of a training step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import softplus

from gumbel_mpnn.nn.each_replica import total
from gumbel_mpnn.nn.modules import cross_entropy
from gumbel_mpnn.rewiring.decoys import Flood
from gumbel_mpnn.rewiring.regularizers import Regularizer, agreement
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@dataclass(frozen=True, eq=False)
class Draw:
    """One drawn graph and the predictions on it."""

    graph: RewiredGraph
    logits: Tensor
    """Predictions, [R, N, C]."""
    flood: Flood | None = None
    """Decoys that were shown, if there were any."""


@dataclass(frozen=True, eq=False)
class Step:
    """Results of one training step."""

    draws: Sequence[Draw]
    y: Tensor
    """Class of every node, [N]."""
    train_mask: Tensor
    """Training nodes of every replica, [R, N]."""
    progress: Tensor
    """Share of the epochs done, a scalar."""
    belief_logits: Tensor | None = None
    """Class logits of the belief head, [R, N, C], if there is one."""
    weight: Tensor | None = None
    """Weight of every node in the classification loss, [R, N]; None for 1."""

    @property
    def theta(self) -> Tensor:
        """Logits of the pairs of the first draw, [R, P]."""
        return self.draws[0].graph.theta


class Term(ABC):
    """A term of the loss."""

    @abstractmethod
    def __call__(self, step: Step) -> Tensor:
        """Weighted value of the term for every replica, [R]."""


class BeliefLoss(Term):
    """Cross-entropy of the belief head on training nodes; 0 without a belief head."""

    def __call__(self, step: Step) -> Tensor:
        """Unweighted, [R]."""
        if step.belief_logits is None:
            return step.theta.new_zeros(len(step.theta))
        return cross_entropy(step.belief_logits, step.y, step.train_mask, step.weight)


class DecoyLoss(Term):
    """Loss of the edge model for telling given edges from decoys."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, step: Step) -> Tensor:
        """λ · cross-entropy of "is a given edge" over given edges and the decoys shown, [R]; a mean over draws."""
        return self.weight * mean([draw.flood.loss(draw.graph.theta) for draw in step.draws if draw.flood is not None])


class Classification(Term):
    """Cross-entropy on training nodes, averaged over the drawn graphs."""

    def __call__(self, step: Step) -> Tensor:
        """Unweighted, [R]."""
        return mean([cross_entropy(draw.logits, step.y, step.train_mask, step.weight) for draw in step.draws])


class Regularization(Term):
    """A regularizer, averaged over the drawn graphs."""

    def __init__(self, regularizer: Regularizer) -> None:
        self.regularizer = regularizer

    def __call__(self, step: Step) -> Tensor:
        """λ · L, [R]."""
        weighted = self.regularizer.weighted
        return mean([weighted(draw.logits, draw.graph, step.y, step.train_mask) for draw in step.draws])


class PairLoss(Term):
    """Loss of the edge model for telling pairs of one class from others, over pairs of two training nodes."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, step: Step) -> Tensor:
        """λ · mean cross-entropy of "is of one class", [R]; 0 if no pair has two training nodes."""
        first, second = step.draws[0].graph.graph.pair_index
        same = (step.y[first] == step.y[second]).to(step.theta.dtype)
        counted = (step.train_mask[:, first] & step.train_mask[:, second]).to(step.theta.dtype)
        each = softplus(step.theta) - same * step.theta
        return self.weight * total(each * counted) / total(counted).clamp(min=1)


class Agreement(Term):
    """Disagreement between the predictions on the drawn graphs, with the weight λ.

    `ramp` is the share of the epochs over which λ grows from 0; with a large λ from the start, all predictions may
    collapse to one class.
    """

    def __init__(self, weight: float, ramp: float = 0.0) -> None:
        self.weight, self.ramp = weight, ramp

    def __call__(self, step: Step) -> Tensor:
        """λ · disagreement of the predictions with their sharpened mean, [R]."""
        return self.between([draw.logits for draw in step.draws], step.progress)

    def between(self, outputs: Sequence[Tensor], progress: Tensor) -> Tensor:
        """λ · disagreement of `outputs` [R, N, C], two or more, when a share `progress` of the epochs is done, [R]."""
        grown = (progress / self.ramp).clamp(max=1) if self.ramp else 1.0
        return grown * (self.weight * agreement(outputs))


def mean(values: Sequence[Tensor]) -> Tensor:
    """Mean of several tensors of the same shape."""
    total = values[0] / len(values)
    for value in values[1:]:
        total = total + value / len(values)
    return total
