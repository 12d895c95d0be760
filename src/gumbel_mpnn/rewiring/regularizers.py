"""Regularizers: functions of predictions and a rewired graph that favor certain graphs, with one value per replica."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch_geometric.data import Data

from gumbel_mpnn.graph.pair_graph import NO_WEIGHT
from gumbel_mpnn.nn.replica import outer_sum, over_nodes, sigmoid, total
from gumbel_mpnn.rewiring.own_loop import labels_of
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.settings import Registry
from gumbel_mpnn.util.errors import UserError, unknown_name


class Regularizer(ABC):
    """A term λ · L of the loss, where L is `penalty` and λ is `weight`.

    In your own training loop, add `regularizer(out, graph, data)` to the loss. Only labels of training nodes are used.
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
        if self.uses_labels:
            y, train_mask = labels_of(data, logits)
        else:
            train_mask = torch.zeros(logits.shape[:2], dtype=torch.bool, device=logits.device)
            y = train_mask[0].long()
        value = self.weight * self.penalty(logits, graph, y, train_mask)
        return value[0] if out.dim() == 2 else value

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if name != "weight"}
        return f"{type(self).__name__}({', '.join([str(self.weight), *(f'{k}={v}' for k, v in options.items())])})"


regularizers: Registry[Regularizer] = Registry("regularizer")


class SoftLabelRegularizer(Regularizer):
    """A regularizer that uses soft labels ỹ: one-hot labels of training nodes, and predictions of all others.

    Predictions have no gradient, so that only edges are changed; else a penalty could be minimized by predicting one
    class for all nodes.

    Args:
        weight: λ.
        labels: ỹ of nodes that are not in the training set: `soft` (softmax prediction) or `one-hot` (predicted class).
    """

    uses_labels = True

    def __init__(self, weight: float = 1.0, *, labels: str = "soft") -> None:
        super().__init__(weight)
        self.labels = _checked("labels", labels, ["soft", "one-hot"])

    def soft_labels(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Soft label ỹ of every node, [R, N, C]."""
        dtype, classes = graph.weight.dtype, torch.arange(logits.shape[-1], device=y.device)
        labels = y[:, None] == classes  # one_hot does not accept the -1 of unlabelled nodes
        if self.labels == "soft":
            predicted = logits.detach().softmax(-1, dtype=dtype)
        else:
            predicted = (logits.argmax(-1, keepdim=True) == classes).to(dtype)
        return torch.where(train_mask[..., None], labels.to(dtype), predicted)


def _checked(option: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise unknown_name(f"value of the option {option!r}", value, known)
    return value


@regularizers.register("label-consistency", "lc")
class LabelConsistency(SoftLabelRegularizer):
    """The paper's L_label = Σ w_ij (1 − ỹ_i · ỹ_j) / Σ w_ij, which increases homophily."""

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_label of every replica, [R]."""
        return disagreement(self.soft_labels(logits, graph, y, train_mask), graph)


@regularizers.register("neighborhood-consistency", "pc")
class NeighborhoodConsistency(SoftLabelRegularizer):
    """L_Ncon = Σ w_ij (1 − p̃_i · p̃_j) / Σ w_ij, where p̃ is the mean of ỹ over the neighbors of a node and itself.

    It favors edges between nodes with the same distribution of labels around them, whatever their own labels are. A
    weight w_ij receives gradient as a weight in the sum and through the neighborhoods p̃_i and p̃_j. Options are those
    of `LabelConsistency`.
    """

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_Ncon of every replica, [R]."""
        return disagreement(neighborhood_labels(self.soft_labels(logits, graph, y, train_mask), graph), graph)


@regularizers.register("inter-class")
class InterClass(SoftLabelRegularizer):
    """L_inter: mean over pairs of classes of ReLU(m − ‖r_c − r_c'‖₂), where r_c is the mean neighborhood p̃ of class c.

    In the mean r_c, the weight of a node is the product of its soft label ỹ_c, its confidence 1 − H(ỹ) / log C and its
    degree: a node without neighbors has no neighborhood. The weights are divided by their sum, so the normalization of
    the degree does not matter. Classes of total weight 0 are left out.

    The options `labels="one-hot"`, `weighting="entropy"`, `prototypes="labels"` and `factor="printed"` together are
    L_inter as the paper prints it. The entropy of a one-hot ỹ is 0, and so are then all weights and prototypes: L_inter
    is the constant m (C − 1) and has no gradient. It has the options of `LabelConsistency` and these:

    Args:
        margin: m, the distance from which on two classes do not contribute. The distance of two distributions is at
            most √2. With margin 1, the penalty is 0 if about 85 % (two classes) or 75 % (seven classes) of each
            neighborhood, including the node itself, belong to the class of the node.
        weighting: What the degree of a node is multiplied by to give its weight: `confidence`, or `entropy`, which is
            H(ỹ) / log C, as printed. Training nodes have the entropy 0 and the confidence 1.
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
        labels: str = "soft",
        weighting: str = "confidence",
        prototypes: str = "neighborhoods",
        factor: str = "mean",
    ) -> None:
        if not margin > 0:
            raise UserError(f"the margin between classes must be above 0, but is {margin}")
        self.margin = margin
        super().__init__(weight, labels=labels)
        self.weighting = _checked("weighting", weighting, ["confidence", "entropy"])
        self.prototypes = _checked("prototypes", prototypes, ["neighborhoods", "labels"])
        self.factor = _checked("factor", factor, ["mean", "printed"])

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_inter of every replica, [R]."""
        return self.with_neighborhoods(logits, graph, y, train_mask)[0]

    def with_neighborhoods(
        self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """L_inter of every replica, [R], and the neighborhoods p̃, [R, N, C]."""
        labels = self.soft_labels(logits, graph, y, train_mask)
        certain = confidence(logits.detach(), train_mask, graph.weight.dtype)
        if self.weighting == "entropy":
            certain = torch.zeros_like(certain) if self.labels == "one-hot" else 1 - certain
        weight = certain * weighted_degree(graph)
        neighborhoods = neighborhood_labels(labels, graph)
        if self.prototypes == "labels":
            prototypes, present = label_prototypes(labels, weight, weighted_degree(graph))
        else:
            prototypes, present = neighborhood_prototypes(labels, weight, neighborhoods)
        return closeness(prototypes, present, self.margin, as_printed=self.factor == "printed"), neighborhoods


def neighborhood_prototypes(labels: Tensor, weight: Tensor, neighborhoods: Tensor) -> tuple[Tensor, Tensor]:
    """Mean neighborhood p̃ of every class, [R, C, C], and whether a class has any weight, [R, C]."""
    share = labels * weight[..., None]
    of_class = over_nodes(share)
    return outer_sum(share, neighborhoods) / nonzero(of_class)[..., None], is_positive(of_class)


def label_prototypes(labels: Tensor, weight: Tensor, degree: Tensor) -> tuple[Tensor, Tensor]:
    """The paper's prototypes, [R, C, C], and whether a class has any node, [R, C]."""
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


@regularizers.register("mix")
class Mix(InterClass):
    """L_Ncon + L_inter: the sum of `NeighborhoodConsistency` and `InterClass`, with neighborhoods computed once.

    It has the arguments of `InterClass`; `weight` is λ of the sum, and `labels` are those of both terms.
    """

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_Ncon + L_inter of every replica, [R]."""
        closeness, neighborhoods = self.with_neighborhoods(logits, graph, y, train_mask)
        return disagreement(neighborhoods, graph) + closeness


ABOVE_MEAN = 5.0
"""Increase of the mean degree in the paper's degree experiment."""


@regularizers.register("degree", "dc")
class Degree(Regularizer):
    """The paper's L_deg: mean over nodes of ReLU(d* − d_i + δ)², where d_i is the weighted (in-)degree.

    Args:
        weight: λ.
        target: d*, the degree that every node should reach; 0 for 5 above the mean degree of the given graph, as in the
            paper's degree experiment. The paper gives no other value; the default 5 affects nodes with few neighbors.
        tolerance: δ; as in the paper, there is no penalty from the degree d* + δ on.
    """

    space: ClassVar[Mapping[str, Any]] = {"target": [0.0, 5.0]}

    def __init__(self, weight: float = 1.0, *, target: float = 5.0, tolerance: float = 0.0) -> None:
        super().__init__(weight)
        self.target, self.tolerance = target, tolerance

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """L_deg of every replica, [R]."""
        if graph.graph.num_nodes == 0:
            return graph.weight.sum(-1)  # 0, since there are no pairs
        target: Tensor | float = self.target
        if not target:  # as a tensor, so that the device need not be waited for
            pairs = graph.graph
            weight = pairs.times_given(pairs.is_original.to(graph.weight.dtype))
            target = weight.sum() * (len(pairs.pair_arcs) / pairs.num_nodes) + ABOVE_MEAN
        missing = (target + self.tolerance - weighted_degree(graph)).relu()
        return total(missing.square()) / missing.shape[-1]


@regularizers.register("prior")
class Prior(Regularizer):
    """Mean over pairs of KL(σ(θ) ‖ π), where π is the prior probability of a pair to be an edge.

    Without it, a scorer may add most candidates and overfit.

    Args:
        weight: λ.
        keep: π of given edges, between 0 and 1.
        add: π of candidates, between 0 and 1.
    """

    def __init__(self, weight: float = 1.0, *, keep: float = 0.95, add: float = 0.05) -> None:
        super().__init__(weight)
        self.keep, self.add = keep, add
        for name, value in (("keep", keep), ("add", add)):
            if not 0 < value < 1:
                raise UserError(f"the prior probability {name} must lie between 0 and 1, but is {value}")

    def penalty(self, logits: Tensor, graph: RewiredGraph, y: Tensor, train_mask: Tensor) -> Tensor:
        """Mean divergence of every replica, [R]."""
        theta, original = graph.theta, graph.graph.is_original

        def by_origin(log: Callable[[float], float]) -> Tensor:
            # Filled on the device: copying a number from the host cannot be captured in a CUDA graph.
            return theta.new_full(original.shape, log(self.add)).masked_fill(original, log(self.keep))

        # Each probability is multiplied by its own logarithm, which avoids 0 · ∞ and the cancellation of large numbers.
        edge = logsigmoid(theta) - by_origin(math.log)
        no_edge = logsigmoid(-theta) - by_origin(lambda probability: math.log1p(-probability))
        divergence = sigmoid(theta) * edge + sigmoid(-theta) * no_edge
        return total(divergence) / max(graph.graph.num_pairs, 1)


def confidence(logits: Tensor, train_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Confidence 1 − H(ỹ) / log C, [R, N]: 1 for training nodes, 0 if all classes are equally likely."""
    log_predicted = logits.log_softmax(-1, dtype=dtype)
    entropy = -(log_predicted.exp() * log_predicted).sum(-1)  # a probability may underflow to 0, its logarithm does not
    share = entropy / math.log(max(logits.shape[-1], 2))
    return (1 - share).masked_fill(train_mask, 1.0)


def neighborhood_labels(labels: Tensor, graph: RewiredGraph) -> Tensor:
    """p̃, [R, N, C]: weighted mean of the soft labels of a node's neighbors and itself."""
    neighbors = graph.graph.propagate(labels, graph.weight)
    return (labels + neighbors) / (1 + weighted_degree(graph))[..., None]


def weighted_degree(graph: RewiredGraph) -> Tensor:
    """Sum of the weights of a node's (incoming) edges, as in the layers of a backbone, [R, N]."""
    degree = graph.graph.degree(graph.weight, graph.weight.dtype)
    return degree.expand(graph.weight.shape[0], -1)  # a graph without pairs has one row for all replicas


def disagreement(labels: Tensor, graph: RewiredGraph) -> Tensor:
    """Weighted mean of 1 − y_i · y_j over edges, [R], for soft labels [R, N, C]; 0 if there are no edges."""
    weight = graph.edge_weight
    apart = 1 - graph.graph.pair_scores(labels, labels)
    return total(weight * apart) / nonzero(total(weight))


def nonzero(summed: Tensor) -> Tensor:
    """Replace sums of weights that are 0 by 1, to divide by them."""
    return summed.masked_fill(~is_positive(summed), 1.0)


def is_positive(summed: Tensor) -> Tensor:
    """Whether a sum of weights is above 0, up to rounding."""
    return summed > NO_WEIGHT
