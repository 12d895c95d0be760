"""The loss of a training step: terms that compute a value per replica from the results of the step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.nn.replica import total
from gumbel_mpnn.rewiring.decoys import ShownDecoys
from gumbel_mpnn.rewiring.regularizers import Prior, Regularizer, regularizers
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.rewiring.scorers import Scorer
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.util.errors import UserError


def make_terms(settings: RewiringSettings, scorer: Scorer) -> list[Term]:
    """Create the terms of the loss that the settings and the scorer ask for."""
    terms: list[Term] = [BeliefLoss()]
    if scorer.decoys:
        terms.append(DecoyLoss())
    terms.append(Classification())
    if settings.regularizer.lower() in ("prior", "agreement"):
        name = settings.regularizer.lower()
        raise UserError(f"rewiring.regularizer cannot be {name!r}: set rewiring.{name} to its weight instead")
    if settings.regularizer != "none":
        regularizer = regularizers[settings.regularizer](**settings.options_of("regularizer"))
        terms += [Regularization(regularizer)] if regularizer.weight else []
    if settings.prior:
        terms.append(Regularization(Prior(settings.prior, keep=settings.keep, add=settings.add)))
    if scorer.pair_loss:
        terms.append(PairLoss(scorer.pair_loss))
    if settings.agreement and settings.samples > 1:
        terms.append(Agreement(settings.agreement, settings.agreement_ramp))
    return terms


@dataclass(frozen=True, eq=False)
class Draw:
    """One drawn graph and the predictions on it."""

    graph: RewiredGraph
    logits: Tensor
    """Predictions, [R, N, C]."""
    decoys: ShownDecoys | None = None
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
    """Loss of the scorer for telling given edges from decoys."""

    WEIGHT = 10.0

    def __call__(self, step: Step) -> Tensor:
        """λ · cross-entropy of "is a given edge" over given edges and the decoys shown, [R]; a mean over draws."""
        shown = [draw.decoys.loss(draw.graph.theta) for draw in step.draws if draw.decoys is not None]
        return self.WEIGHT * mean(shown)


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
    """Loss of the scorer for telling pairs of one class from others, over pairs of two training nodes."""

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


def agreement(outputs: Sequence[Tensor], *, temperature: float = 0.5) -> Tensor:
    """Mean over samples s and all nodes of ‖softmax(z_s) − t‖², where t is the sharpened mean prediction.

    The target t ∝ (mean over s of softmax(z_s))^(1/T) receives no gradient. The squared distance is at most 2 per node,
    so a node that one graph misleads does not outweigh the others, as it would with the unbounded KL divergence. Unlike
    a `Regularizer`, agreement compares several outputs and acts on the classifier:
    `loss = loss + 0.5 * agreement([model(data), model(data)])`.

    Args:
        outputs: Logits z_s of two or more calls of the model, each [N, C] or [R, N, C].
        temperature: T, above 0; below 1 the target is sharper than the mean prediction, at 1 it is the mean prediction.

    Returns:
        One value per replica, [R]; a scalar if the outputs have no replica axis. It is 0 if all outputs agree.
    """
    if not temperature > 0:
        raise UserError(f"the temperature of the agreement must be above 0, but is {temperature}")
    if isinstance(outputs, Tensor):  # its first axis may be the replica axis, and replicas need not agree
        raise UserError(f"agreement takes a list of two or more outputs, not a tensor of shape {list(outputs.shape)}")
    shapes = {tuple(output.shape) for output in outputs}
    if len(outputs) < 2 or len(shapes) > 1 or any(len(shape) not in (2, 3) for shape in shapes):
        given = ", ".join(str(list(output.shape)) for output in outputs) or "none"
        raise UserError(f"agreement takes two or more outputs, all [N, C] or all [R, N, C], but was given {given}")
    logits = torch.stack(list(outputs))
    log_predicted = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    mean = log_predicted.detach().logsumexp(0) - math.log(len(outputs))
    target = (mean / temperature).softmax(-1)
    apart = (log_predicted.exp() - target).square().sum(-1)
    return total(total(apart).movedim(0, -1)) / len(outputs) / apart.shape[-1]
