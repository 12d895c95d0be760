"""Scorers: node features and class beliefs in, a logit for every pair out.

A scorer sees features and beliefs but never the index of a node, so it can be used on unseen graphs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.pair_facts import count_common
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.layers import Linear, ReplicaModule, linear_sum, parameter, relu_dropout
from gumbel_mpnn.nn.replica import product, spread
from gumbel_mpnn.settings import Registry
from gumbel_mpnn.util.errors import check_between
from gumbel_mpnn.util.tensors import TensorCache


@dataclass(frozen=True)
class NodeView:
    """Input of a scorer."""

    features: Tensor | SparseFeatures
    """[N, F], shared by all replicas, or [R, N, F]."""
    beliefs: Tensor
    """Class probabilities that the model predicts for every node, without gradient, [R, N, C]; [R, N, 0] if the scorer
    does not use them."""
    given: Tensor
    """1 for pairs shown as edges of the given graph, otherwise 0, [P] or [R, P]."""

    @property
    def values(self) -> Tensor:
        """Tensor that holds the features; cached results are valid as long as it is unchanged."""
        return self.features.values if isinstance(self.features, SparseFeatures) else self.features


class BeliefHead(ReplicaModule):
    """A small perceptron for the class beliefs. It sees features only, so wrong edges cannot mislead it."""

    WIDTH, DROPOUT = 64, 0.5

    def __init__(self, replicas: int, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.hidden = Linear(replicas, num_features, self.WIDTH)
        self.out = Linear(replicas, self.WIDTH, num_classes)

    def forward(self, features: Tensor | SparseFeatures, rng: ReplicaRNG) -> Tensor:
        """Logits [R, N, C]."""
        logits: Tensor = self.out(relu_dropout(self.hidden(features), self.DROPOUT * self.training, rng))
        return logits


class Scorer(ReplicaModule, ABC):
    """Computes logits θ of all pairs, without the bias by origin that `Rewirer` adds.

    Args:
        replicas: Number of replicas R.
        num_features: Number of features per node.
        num_classes: Number of classes.
    """

    uses_beliefs: ClassVar[bool] = True
    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default: a list of values or a range for each."""
    second_sigmoid = False
    """Whether `Rewirer` applies a sigmoid to θ, before that of the probability."""
    pair_loss: float = 0.0
    """Weight of the `pair_loss` of this scorer."""
    decoys: float = 0.0
    """Number of decoys for each given edge that this scorer is trained with."""

    def __init__(self, replicas: int, num_features: int, num_classes: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""


scorers: Registry[Scorer] = Registry("scorer")


class SymmetricForm(ReplicaModule):
    """h_iᵀ W h_j + b for every pair, where W is the symmetric part of a learned matrix.

    If not `always`, W is the learned matrix itself on a directed graph, where i → j and j → i are two pairs.
    """

    def __init__(self, replicas: int, channels: int, *, always: bool) -> None:
        super().__init__()
        self.always = always
        self.matrix = parameter(replicas, channels, channels)
        self.bias = parameter(replicas, 1)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Initialize with the identity and 0, for which the score is the dot product."""
        with torch.no_grad():
            self.matrix.zero_().diagonal(dim1=1, dim2=2).fill_(1)
            self.bias.zero_()

    def forward(self, hidden: Tensor, graph: PairGraph) -> Tensor:
        """[R, N, D] → [R, P], computed as (h W) · h without an array of pairs × channels."""
        matrix = symmetric_part(self.matrix) if self.always or graph.undirected else self.matrix
        return graph.pair_scores(product(hidden, matrix), hidden) + spread(self.bias, graph.num_pairs)


def symmetric_part(matrix: Tensor) -> Tensor:
    """(W + Wᵀ) / 2, [R, D, D]."""
    return (matrix + matrix.transpose(1, 2)) / 2


@scorers.register("bilinear")
class Bilinear(Scorer):
    """The paper's form, θ_ij = h_iᵀ W h_j + b, where h are the features mapped to `channels` and scaled to length 1.

    Args:
        channels: Width in which two nodes are compared.
        second_sigmoid: Use σ(θ) in place of θ, as printed in the paper: probabilities then lie between .5 and .73.
    """

    uses_beliefs = False
    space: ClassVar[Mapping[str, Any]] = {"channels": [32, 64, 128]}

    def __init__(
        self,
        replicas: int,
        num_features: int,
        num_classes: int,
        *,
        channels: int = 64,
        second_sigmoid: bool = False,
    ) -> None:
        super().__init__(replicas, num_features, num_classes)
        self.second_sigmoid = second_sigmoid
        self.encoder = Linear(replicas, num_features, channels, bias=False)
        self.form = SymmetricForm(replicas, channels, always=False)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        scores: Tensor = self.form(F.normalize(self.encoder(nodes.features), dim=-1), graph)
        return scores


@scorers.register("literal")
class Literal(Scorer):
    """θ_ij = x_iᵀ W x_j + b with a free matrix W [F, F] on the raw features x: the paper's form to the letter.

    There is no encoder and no scaling. On an undirected graph, W is used through its symmetric part. Parameters start
    as in `torch.nn.Bilinear`, uniform in ±1/√F. An entry W_fg receives a gradient only from pairs whose nodes have the
    features f and g: 44 % of the entries on cora never leave their random start, which adds noise to unseen pairs.

    Args:
        second_sigmoid: Use σ(θ) in place of θ, as printed in the paper: probabilities then lie between .5 and .73.
    """

    uses_beliefs = False

    def __init__(self, replicas: int, num_features: int, num_classes: int, *, second_sigmoid: bool = False) -> None:
        super().__init__(replicas, num_features, num_classes)
        self.second_sigmoid = second_sigmoid
        self.matrix = parameter(replicas, num_features, num_features)
        self.bias = parameter(replicas, 1)
        self._dense: TensorCache[Tensor] = TensorCache()

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Uniform in ±1/√F."""
        bound = 1 / math.sqrt(max(self.matrix.shape[1], 1))
        with torch.no_grad():
            for part in (self.matrix, self.bias):
                part.copy_(rng.uniform(part.shape[1:], -bound, bound))

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        x, matrix = nodes.features, symmetric_part(self.matrix) if graph.undirected else self.matrix
        dense = self._dense.get(graph, [nodes.values], lambda: x.to_dense() if isinstance(x, SparseFeatures) else x)
        # In blocks of columns, so that no sum depends on the number of replicas or on the width of the features.
        width = max(1, BLOCK // max(graph.num_nodes, 1))
        scores: Tensor = matrix.new_zeros(len(matrix), graph.num_pairs)
        for block, part in enumerate(matrix.split(width, -1)):
            columns = dense.narrow(-1, block * width, part.shape[-1]).expand(len(part), -1, -1)
            scores = scores + graph.pair_scores(linear_sum([(x, part)]), columns)
        return scores + spread(self.bias, graph.num_pairs)


BLOCK = 2**21
"""Numbers of a block of columns, for one replica: 8 MiB."""


@scorers.register("class-space")
class ClassSpace(Scorer):
    """θ_ij = q_iᵀ B q_j + b, where q are the class beliefs of the nodes: one parameter for each pair of classes.

    Args:
        pair_loss: Weight of a loss of the scorer: whether the two nodes of a pair have the same class, over pairs of
            training nodes.
    """

    def __init__(self, replicas: int, num_features: int, num_classes: int, *, pair_loss: float = 0.0) -> None:
        super().__init__(replicas, num_features, num_classes)
        check_between(0, math.inf, pair_loss=pair_loss)
        self.pair_loss = pair_loss
        self.form = SymmetricForm(replicas, num_classes, always=True)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        scores: Tensor = self.form(nodes.beliefs, graph)
        return scores


@scorers.register("constant")
class Constant(Scorer):
    """θ_ij = 0 for every pair, without parameters, so that only the bias by origin tells pairs apart.

    Given edges are drawn with probability `keep` and candidates with probability `add`; with `origin="none"`, both with
    ½. With `origin="learned"`, the two probabilities are learned, and nothing else.
    """

    uses_beliefs = False

    def __init__(self, replicas: int, num_features: int, num_classes: int) -> None:
        super().__init__(replicas, num_features, num_classes)
        self.replicas = replicas

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        return nodes.given.new_zeros(self.replicas, graph.num_pairs)


@scorers.register("class-facts")
class ClassFacts(ClassSpace):
    """θ_ij = q_iᵀ B q_j + a · s_ij + b, where q are class beliefs and s are cosine, common neighbors and degrees.

    The weights of the facts start at 0, where this is `class-space`.
    """

    def __init__(self, replicas: int, num_features: int, num_classes: int, **options: Any) -> None:
        super().__init__(replicas, num_features, num_classes, **options)
        # Facts of about the same spread, so that their weights learn at about the same pace.
        self.facts = WeightedFacts(replicas, cosine_factor=COSINE)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        scores: Tensor = super().forward(nodes, graph) + self.facts(nodes, graph)
        return scores


@scorers.register("mixed")
class Mixed(Bilinear):
    """θ_ij = h_iᵀ W h_j + a · s_ij + b, where s are the agreement of beliefs, cosine, common neighbors and degrees.

    A bilinear form alone learns nothing about features that occur only in unseen nodes; the weight of the cosine
    applies to these as well.
    """

    uses_beliefs = True

    def __init__(self, replicas: int, num_features: int, num_classes: int, **options: Any) -> None:
        super().__init__(replicas, num_features, num_classes, **options)
        self.facts = WeightedFacts(replicas, start_of_cosine=1.0)
        self.of_agreement = parameter(replicas, 1)

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the weight of the agreement to 1."""
        nn.init.ones_(self.of_agreement)

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        agreement = spread(self.of_agreement, graph.num_pairs) * graph.pair_scores(nodes.beliefs, nodes.beliefs)
        scores: Tensor = super().forward(nodes, graph) + self.facts(nodes, graph) + agreement
        return scores


@scorers.register("neighborhood")
class Neighborhood(Scorer):
    """θ_ij from the agreement of the beliefs of i and j, and from how well i and j agree with their given neighbors.

    If most edges around i and j agree, an edge between them can be trusted. If there are many random edges around them,
    it can be trusted only if i and j agree. The paper names scoring each pair on its own as a limitation (section
    Limitations).

    Args:
        decoys: Random pairs shown in training as if they were given edges, up to this many for each edge; with several
            samples, the first has none. The scorer learns to tell them from edges.
    """

    WIDTH = 32
    numbers_per_arc = 2 * WIDTH
    """Upper bound of the numbers that a training step keeps of every arc, which is half a pair."""

    def __init__(self, replicas: int, num_features: int, num_classes: int, *, decoys: float = 0.0) -> None:
        super().__init__(replicas, num_features, num_classes)
        check_between(0, math.inf, decoys=decoys)
        self.decoys = decoys
        self.hidden = Linear(replicas, 6, self.WIDTH)
        self.out = Linear(replicas, self.WIDTH, 1)
        self._similarity: TensorCache[Tensor] = TensorCache()

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        agreement = graph.pair_scores(nodes.beliefs, nodes.beliefs)
        degree = graph.degree(nodes.given, nodes.given.dtype)
        # Mean agreement of a node with its given neighbors.
        trust = graph.degree(agreement * nodes.given, agreement.dtype) / degree.clamp(min=1)
        # In a graph without pairs, degrees have one row for all replicas.
        first, second = trust[:, graph.pair_index].expand(len(agreement), -1, -1).unbind(1)
        here, there = degree[:, graph.pair_index].log1p().expand(len(agreement), -1, -1).unbind(1)
        cosines = self._similarity.get(graph, [nodes.values], lambda: COSINE * cosine(nodes.features, graph))
        low, high = torch.minimum, torch.maximum
        facts = [agreement, cosines.expand_as(agreement), low(first, second), high(first, second)]
        seen = torch.stack([*facts, low(here, there), high(here, there)], dim=-1)
        scores = linear_sum([(torch.relu(self.hidden(seen)), self.out.weight)]).squeeze(-1)
        assert self.out.bias is not None
        return scores + spread(self.out.bias[:, 0], graph.num_pairs)


COSINE = 8.0
"""Factor of cosines beside counts: cosines of sparse features differ by about .1, logarithms of counts by about 1."""
FACTS = ("cosine", "common neighbors", "smaller degree", "larger degree")
NUMBERS_AT_ONCE = 2**24
"""Entries of sparse features that are converted to dense at a time: 64 MiB."""


class WeightedFacts(ReplicaModule):
    """a · s_ij for every pair, where s are the `FACTS` and the weights a start at 0, or for the cosine where given."""

    def __init__(self, replicas: int, *, cosine_factor: float = 1.0, start_of_cosine: float = 0.0) -> None:
        super().__init__()
        self.cosine_factor, self.start_of_cosine = cosine_factor, start_of_cosine
        self.weight = parameter(replicas, len(FACTS))
        self._facts: TensorCache[Tensor] = TensorCache()

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Set the weights of all facts but the cosine to 0."""
        with torch.no_grad():
            self.weight.zero_()[:, 0] = self.start_of_cosine

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """[R, P]; the facts are found once, since they do not change in training."""
        found = [nodes.values, graph.pair_weight]
        facts = self._facts.get(graph, found, lambda: pair_facts(nodes.features, graph, self.cosine_factor))
        return product(facts.expand(len(self.weight), -1, -1), self.weight[..., None]).squeeze(-1)


def pair_facts(features: Tensor | SparseFeatures, graph: PairGraph, cosine_factor: float = 1.0) -> Tensor:
    """`FACTS` about every pair, [P, 4], or [R, P, 4] of [R, N, F]; counts are log(1 + count) in given edges."""
    given = graph.is_original.to(features.dtype)
    degree = graph.degree(given, given.dtype)[0]
    ends = degree[graph.pair_index]
    similar = cosine_factor * cosine(features, graph)
    counts = [common_neighbors(graph).to(degree), ends.min(0).values, ends.max(0).values]
    return torch.stack([similar, *(count.log1p().expand_as(similar) for count in counts)], dim=-1)


def cosine(features: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
    """Cosine similarity of the features of every pair, [P] or [R, P]; 0 if all features of a node are 0."""
    if isinstance(features, Tensor):
        unit = F.normalize(features, dim=-1)
        return graph.pair_scores(unit, unit) if unit.dim() == 3 else graph.pair_scores(unit[None], unit[None])[0]
    layout, values, (nodes, columns) = features.layout, features.values, features.shape
    row, col = layout.row.long(), layout.col.long()
    length = torch.segment_reduce(values.square(), "sum", lengths=layout.rowptr.diff().long()).sqrt()
    unit = values / length.clamp(min=1e-12)[row]
    total, width = values.new_zeros(graph.num_pairs), max(NUMBERS_AT_ONCE // max(nodes, 1), 1)
    for start in range(0, columns, width):  # blocks of columns save memory
        chosen = (col >= start) & (col < start + width)
        some = values.new_zeros(1, nodes, min(width, columns - start))
        some[0, row[chosen], col[chosen] - start] = unit[chosen]
        total = total + graph.pair_scores(some, some)[0]
    return total


def common_neighbors(graph: PairGraph) -> Tensor:
    """Number of common neighbors of the two nodes of every pair in the given graph, [P].

    If edges have weights, an edge counts as its weight, at most 1.
    """
    given = graph.is_original[graph.arc_pair]
    arcs = graph.edge_index[:, given].flip(0)  # sorted
    weight = None if graph.pair_weight is None else graph.pair_weight.clamp(max=1)[graph.arc_pair[given]]
    return count_common(arcs, graph.num_nodes, graph.pair_index, weight)
