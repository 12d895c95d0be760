"""Inter-class distance: neighborhoods of different classes should differ."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.nn.each_replica import outer_sum, over_nodes, total
from gumbel_mpnn.rewiring.regularizers.base import regularizers
from gumbel_mpnn.rewiring.regularizers.soft_labels import (
    SoftLabelRegularizer,
    checked_choice,
    confidence,
    is_positive,
    neighborhood_labels,
    nonzero,
    weighted_degree,
)
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph


@regularizers.register("inter-class")
class InterClass(SoftLabelRegularizer):
    """L_inter: mean over pairs of classes of ReLU(m − ‖r_c − r_c'‖₂), where r_c is the mean neighborhood p̃ of class c.

    In the mean r_c, the weight of a node is the product of its soft label ỹ_c, its confidence 1 − H(ỹ) / log C and its
    degree: a node without neighbors has no neighborhood. The weights are divided by their sum, so the normalization of
    the degree does not matter. Classes of total weight 0 are left out.

    The options `labels="one-hot"`, `weighting="entropy"`, `prototypes="labels"` and `factor="printed"` together are
    L_inter as the paper prints it. The entropy of a one-hot ỹ is 0, and so are then all weights and prototypes: L_inter
    is the constant m (C − 1) and has no gradient.

    Args:
        weight: λ.
        margin: m, the distance from which on two classes do not contribute. The distance of two distributions is at
            most √2. With margin 1, the penalty is 0 if about 85 % (two classes) or 75 % (seven classes) of each
            neighborhood, including the node itself, belong to the class of the node.
        detach: Stop the gradient through the predictions, so that only edges are changed; see `soft_labels`.
        labels: ỹ of nodes that are not in the training set: `soft` (softmax prediction) or `one-hot` (predicted class).
        weighting: What the degree of a node is multiplied by to give its weight: `confidence`, `entropy`, which is
            H(ỹ) / log C, as printed, or `prediction-entropy`, the same of the softmax prediction even if ỹ is one-hot.
            Training nodes have the entropy 0 and the confidence 1.
        prototypes: `neighborhoods` as above, or `labels`, as printed: r_c is the mean of w_v ỹ_v over the nodes v
            whose label or predicted class is c, with the degree in w_v divided by the largest degree.
        factor: `mean` over the pairs of classes that are present, or `printed`: the sum over ordered pairs of all
            classes divided by C, which is C − 1 times as large. A mean lies between 0 and m for any C.
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        margin: float = 1.0,
        detach: bool = True,
        labels: str = "soft",
        weighting: str = "confidence",
        prototypes: str = "neighborhoods",
        factor: str = "mean",
    ) -> None:
        if not margin > 0:
            raise UserError(f"the margin between classes must be above 0, but is {margin}")
        self.margin = margin
        super().__init__(weight, detach=detach, labels=labels)
        self.weighting = checked_choice("weighting", weighting, ["confidence", "entropy", "prediction-entropy"])
        self.prototypes = checked_choice("prototypes", prototypes, ["neighborhoods", "labels"])
        self.factor = checked_choice("factor", factor, ["mean", "printed"])

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_inter of every replica, [R]."""
        return self.with_neighborhoods(logits, graph, y, train_mask)[0]

    def with_neighborhoods(
        self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """L_inter of every replica, [R], and the neighborhoods p̃, [R, N, C]."""
        labels = self.soft_labels(logits, graph, y, train_mask)
        weight = self._certainty(logits, train_mask, graph.weight.dtype) * weighted_degree(graph)
        neighborhoods = neighborhood_labels(labels, graph)
        if self.prototypes == "labels":
            prototypes, present = label_prototypes(labels, weight, weighted_degree(graph))
        else:
            prototypes, present = neighborhood_prototypes(labels, weight, neighborhoods)
        return closeness(prototypes, present, self.margin, as_printed=self.factor == "printed"), neighborhoods

    def _certainty(self, logits: Tensor, train_mask: Tensor, dtype: torch.dtype) -> Tensor:
        """Factor of the degree in the weight of every node, [R, N]."""
        certain = confidence(logits, train_mask, dtype, detach=self.detach)
        if self.weighting == "confidence":
            return certain
        if self.weighting == "entropy" and self.labels == "one-hot":
            return torch.zeros_like(certain)
        return 1 - certain


def neighborhood_prototypes(labels: Tensor, weight: Tensor, neighborhoods: Tensor) -> tuple[Tensor, Tensor]:
    """Mean p̃ of every class, [R, C, C], and whether a class has any weight, [R, C].

    From the soft labels ỹ [R, N, C], the weight [R, N] and the neighborhood p̃ [R, N, C] of every node.
    """
    share = labels * weight[..., None]
    of_class = over_nodes(share)
    return outer_sum(share, neighborhoods) / nonzero(of_class)[..., None], is_positive(of_class)


def label_prototypes(labels: Tensor, weight: Tensor, degree: Tensor) -> tuple[Tensor, Tensor]:
    """The paper's prototypes, [R, C, C], and whether a class has any node, [R, C].

    From the soft labels ỹ [R, N, C], and the weight, before the degree is normalized, and degree of every node [R, N].
    """
    members = torch.zeros_like(labels).scatter_(-1, labels.argmax(-1, keepdim=True), 1.0)
    count = members.sum(1)
    largest = nonzero(degree.amax(-1, keepdim=True))
    weighted = labels * (weight / largest)[..., None]
    return outer_sum(members, weighted) / count.clamp(min=1)[..., None], is_positive(count)


def closeness(prototypes: Tensor, present: Tensor, margin: float, *, as_printed: bool = False) -> Tensor:
    """L_inter [R] of prototypes [R, C, C]: mean over pairs of present classes [R, C], or with the paper's factor."""
    wide = prototypes.to(torch.promote_types(prototypes.dtype, torch.float32))  # cdist does not support 16 bits
    distance = torch.cdist(wide, wide, compute_mode="donot_use_mm_for_euclid_dist")
    close = (margin - distance).relu()
    if as_printed:
        others = 1 - torch.eye(close.shape[-1], device=close.device, dtype=close.dtype)
        return total((close * others).flatten(1)) / max(close.shape[-1], 1)
    pairs = (present[:, :, None] & present[:, None, :]).triu(1)
    return total(close.masked_fill(~pairs, 0.0).flatten(1)) / pairs.sum((1, 2)).clamp(min=1)
