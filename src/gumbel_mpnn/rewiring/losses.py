"""The loss of a training step, with one value per replica, and the decoys that one of its terms tells from edges.

Decoys are random pairs that are shown to a scorer as if they were given edges, so that it learns to recognize them.
Some nodes get all decoys while the rest of the graph stays unchanged. How many are shown changes from draw to draw; a
few are as likely as many. The scorer learns how far to trust an edge from its surroundings: edges of a clean
neighborhood can be trusted, those among many random ones cannot. No labels are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from gumbel_mpnn.graph import PairGraph, contains, pair_key
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.nn.replica import total
from gumbel_mpnn.rewiring.regularizers import Prior, Regularizer, regularizers
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.rewiring.scorers import Scorer
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.util.errors import UserError

SHARE_OF_NODES = 0.2
"""Share of the nodes that get decoys."""
FEWEST = 0.01
"""Smallest share of the decoys that are shown at a time."""
WEIGHT_OF_DECOYS = 10.0
"""λ of the loss for telling given edges from decoys."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One drawn graph and the predictions on it."""

    graph: RewiredGraph
    logits: Tensor
    """Predictions, [R, N, C]."""
    decoys: ShownDecoys | None = None
    """Decoys that were shown, if there were any."""


class Terms:
    """The terms of the loss of a training step that the settings and the scorer ask for."""

    def __init__(self, settings: RewiringSettings, scorer: Scorer) -> None:
        self.settings, self.scorer = settings, scorer
        self.regularizers: dict[str, Regularizer] = {}
        name = settings.regularizer.lower()
        if name in ("prior", "agreement"):
            raise UserError(f"rewiring.regularizer cannot be {name!r}: set rewiring.{name} to its weight instead")
        if name != "none":
            self.regularizers["regularizer"] = regularizers[name](**settings.options_of("regularizer"))
        self.regularizers["prior"] = Prior(settings.prior, keep=settings.keep, add=settings.add)

    def __call__(
        self,
        draws: Sequence[Draw],
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        belief_logits: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Weighted terms of the loss by name, each [R]; terms of the drawn graphs are means over them.

        Args:
            draws: Graphs that were drawn, with the predictions on them.
            y: Class of every node, [N].
            train_mask: Training nodes of every replica, [R, N].
            progress: Share of the epochs done, a scalar.
            belief_logits: Class logits of the belief head, [R, N, C], if there is one.
            weight: Weight of every node in the classification losses, [R, N]; None for 1.
        """
        theta, terms = draws[0].graph.theta, dict[str, Tensor]()
        if belief_logits is not None:
            terms["beliefs"] = cross_entropy(belief_logits, y, train_mask, weight)
        if self.scorer.decoys:
            shown = [draw.decoys.loss(draw.graph.theta) for draw in draws if draw.decoys is not None]
            terms["decoys"] = WEIGHT_OF_DECOYS * mean(shown)
        terms["classification"] = mean([cross_entropy(draw.logits, y, train_mask, weight) for draw in draws])
        for name, regularizer in self.regularizers.items():
            if regularizer.weight:
                values = [regularizer.penalty(draw.logits, draw.graph, y, train_mask) for draw in draws]
                terms[name] = mean([regularizer.weight * value for value in values])
        if self.scorer.pair_loss:
            terms["pairs"] = self.scorer.pair_loss * pair_loss(theta, draws[0].graph.graph, y, train_mask)
        if self.settings.agreement and len(draws) > 1:
            outputs, of = [draw.logits for draw in draws], self.settings
            terms["agreement"] = growing_agreement(outputs, of.agreement, of.agreement_ramp, progress)
        return terms


def pair_loss(theta: Tensor, graph: PairGraph, y: Tensor, train_mask: Tensor) -> Tensor:
    """Mean cross-entropy of "is of one class" over pairs of two training nodes, [R]; 0 if there are none."""
    first, second = graph.pair_index
    same = (y[first] == y[second]).to(theta.dtype)
    counted = (train_mask[:, first] & train_mask[:, second]).to(theta.dtype)
    each = softplus(theta) - same * theta
    return total(each * counted) / total(counted).clamp(min=1)


def growing_agreement(outputs: Sequence[Tensor], weight: float, ramp: float, progress: Tensor) -> Tensor:
    """λ · `agreement` of outputs [R, N, C], when a share `progress` of the epochs is done, [R].

    λ grows from 0 to `weight` over the share `ramp` of the epochs; if it were large from the start, all predictions may
    collapse to one class.
    """
    grown = (progress / ramp).clamp(max=1) if ramp else 1.0
    return grown * (weight * agreement(outputs))


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


@dataclass(frozen=True, eq=False)
class Decoys:
    """A graph whose pairs include decoys."""

    graph: PairGraph
    is_decoy: Tensor
    """Which pairs are decoys, bool [P]."""

    @classmethod
    def among(cls, graph: PairGraph, ratio: float) -> Decoys:
        """Add about `ratio` decoys per given edge to `graph`; the same graph always gets the same decoys."""
        generator = torch.Generator().manual_seed(0)
        nodes, count = graph.num_nodes, round(ratio * int(graph.is_original.sum()))
        crowded = torch.randperm(nodes, generator=generator)[: max(1, round(SHARE_OF_NODES * nodes))]
        near = crowded[torch.randint(len(crowded), (count,), generator=generator)] if nodes else crowded[:0]
        far = torch.randint(max(nodes, 1), near.shape, generator=generator)
        decoys = torch.stack([far, near]).to(graph.pair_index.device)
        joined = PairGraph.build(
            graph.pair_index[:, graph.is_original],
            nodes,
            undirected=graph.undirected,
            edge_weight=None if graph.pair_weight is None else graph.pair_weight[graph.is_original],
            candidate_index=torch.cat([graph.pair_index[:, ~graph.is_original], decoys], dim=1),
        )
        return cls(joined, ~contains(*(pair_key(some.pair_index, nodes) for some in (graph, joined))))

    def draw(self, rng: ReplicaRNG) -> ShownDecoys:
        """Draw decoys for every replica: a share of all whose logarithm is uniform, from `FEWEST` to 1."""
        share = FEWEST ** rng.noise(1)
        shown = self.is_decoy & (rng.noise(self.graph.num_pairs) < share)
        return ShownDecoys(self.graph, self.graph.is_original | shown, shown | ~self.is_decoy)


@dataclass(frozen=True, eq=False)
class ShownDecoys:
    """The decoys of one draw."""

    graph: PairGraph
    """Graph whose pairs include all decoys."""
    given: Tensor
    """Pairs that look like given edges: edges and the decoys shown, bool [R, P]."""
    present: Tensor
    """Pairs that may become edges: all but the decoys that are not shown, bool [R, P]."""

    def loss(self, theta: Tensor) -> Tensor:
        """Mean cross-entropy of telling given edges from the decoys shown, [R]."""
        counted = self.given.to(theta.dtype)
        each = -logsigmoid(torch.where(self.graph.is_original, theta, -theta))
        return total(each * counted) / counted.sum(-1).clamp(min=1)
