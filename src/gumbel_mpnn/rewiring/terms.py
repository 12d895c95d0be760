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
from gumbel_mpnn.rewiring.regularizers.soft_labels import confidence, nonzero, soft_labels
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@dataclass(frozen=True, eq=False)
class Draw:
    """One drawn graph and the predictions on it."""

    graph: RewiredGraph
    logits: Tensor
    """Predictions, [R, N, C]."""


@dataclass(frozen=True, eq=False)
class Step:
    """Results of one training step."""

    theta: Tensor
    """Logits of all pairs, [R, P]."""
    draws: Sequence[Draw]
    y: Tensor
    """Class of every node, [N]."""
    train_mask: Tensor
    """Training nodes of every replica, [R, N]."""
    progress: Tensor
    """Share of the epochs done, a scalar."""
    belief_loss: Tensor | None = None
    """Loss of the belief head, [R], if there is one."""
    flood: Flood | None = None
    """Decoys of this step, if there are any."""
    weight: Tensor | None = None
    """Weight of every node in the classification loss, [R, N]; None for 1."""


class Term(ABC):
    """A term of the loss."""

    @abstractmethod
    def __call__(self, step: Step) -> Tensor:
        """Weighted value of the term for every replica, [R]."""


class BeliefLoss(Term):
    """Loss of the belief head; 0 without one."""

    def __call__(self, step: Step) -> Tensor:
        """Unweighted, [R]."""
        return step.theta.new_zeros(len(step.theta)) if step.belief_loss is None else step.belief_loss


class DecoyLoss(Term):
    """Loss of the edge model for telling given edges from decoys."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, step: Step) -> Tensor:
        """λ · cross-entropy of "is a given edge" over given edges and the decoys shown, [R]."""
        assert step.flood is not None
        return self.weight * step.flood.loss(step.theta)


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
    """Loss of the edge model for telling pairs of one class from others.

    Args:
        weight: λ.
        confident: Count all pairs, with the mean prediction on the drawn graphs in place of unknown labels, weighted by
            the confidence of both nodes; otherwise pairs of two training nodes only.
    """

    def __init__(self, weight: float, *, confident: bool = False) -> None:
        self.weight, self.confident = weight, confident

    def __call__(self, step: Step) -> Tensor:
        """λ · mean cross-entropy of "is of one class", [R]."""
        graph, dtype = step.draws[0].graph.graph, step.theta.dtype
        logits = mean([draw.logits.detach().log_softmax(-1) for draw in step.draws])
        labels = soft_labels(logits, step.y, step.train_mask, dtype)
        sure = confidence(logits, step.train_mask, dtype) if self.confident else step.train_mask.to(dtype)
        same = graph.pair_scores(labels, labels)
        counted = sure[:, graph.pair_index].prod(1)
        each = softplus(step.theta) - same * step.theta
        return self.weight * total(each * counted) / nonzero(total(counted))


class Agreement(Term):
    """Disagreement between the predictions on the drawn graphs.

    Args:
        weight: λ.
        ramp: Share of the epochs over which λ grows from 0; with a large λ from the start, all predictions may collapse
            to one class.
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
