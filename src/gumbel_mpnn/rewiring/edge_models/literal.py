"""The paper's edge model to the letter: a free bilinear form of the raw features of two nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures
from gumbel_mpnn.nn.each_replica import spread
from gumbel_mpnn.nn.fused_linear import linear_sum
from gumbel_mpnn.nn.model import COPIES_OF_A_LAYER, Sizes
from gumbel_mpnn.nn.replica_rng import ReplicaRNG
from gumbel_mpnn.rewiring.edge_models.base import NodeView, Scorer, scorers

NUMBERS_AT_ONCE = 2**21
"""Numbers of a block, for one replica: 8 MiB."""
COPIES_OF_THE_MATRIX = 3
"""Arrays of the size of W in use besides its parameters: the symmetric part, its gradient and a temporary copy."""


def columns_at_once(nodes: int, columns: int) -> int:
    """Number of columns of a block; the same for any number of replicas, so that their sums do not depend on it."""
    return max(1, min(columns, NUMBERS_AT_ONCE // max(nodes, 1)))


@dataclass(frozen=True, eq=False)
class Columns:
    """Features [N, F] or, if dense, [R, N, F] in blocks of columns; positions of non-zeros are sorted by block once."""

    x: Tensor | SparseFeatures
    widths: list[int]
    places: Sequence[Tensor]
    """Of sparse features: flat positions of the non-zeros in each block, int64."""
    values: Sequence[Tensor]
    """Of sparse features: values of these non-zeros."""

    @classmethod
    def of(cls, x: Tensor | SparseFeatures) -> Columns:
        """Prepare the blocks."""
        nodes, count = x.shape[-2:]
        step = columns_at_once(nodes, count)
        widths = [min(step, count - first) for first in range(0, count, step)]
        if isinstance(x, Tensor):
            return cls(x, widths, (), ())
        row, col, order = x.layout.row_by_col.long(), x.layout.col.long(), x.layout.to_transposed
        col = col[order]
        sizes = torch.bincount(col // step, minlength=len(widths)).tolist()
        places = row * (count - col // step * step).clamp(max=step) + col % step
        return cls(x, widths, places.split(sizes), x.values[order].split(sizes))

    def __getitem__(self, block: int) -> Tensor:
        """Columns of one block as a dense array, [N, width] or [R, N, width]."""
        width = self.widths[block]
        if isinstance(self.x, Tensor):
            return self.x.narrow(-1, sum(self.widths[:block]), width)
        values, nodes = self.values[block], self.x.shape[0]
        return values.new_zeros(nodes * width).scatter(0, self.places[block], values).view(nodes, width)


@scorers.register("literal")
class Literal(Scorer):
    """θ_ij = x_iᵀ W x_j + b with a free matrix W [F, F] on the raw features x: no encoder and no scaling.

    On an undirected graph, W is used through its symmetric part (W + Wᵀ) / 2. Parameters start as in
    `torch.nn.Bilinear`, uniform in ±1/√F.

    W has F² entries per replica: with the 3,703 features of citeseer 0.06 GB, and 0.4 GB with its gradient, the moments
    of Adam and temporary arrays. An entry W_fg receives a gradient only from pairs whose nodes have the features f and
    g. Of sparse binary features there may be no such pair: 44 % of the entries on cora and 61 % on citeseer never leave
    their random start, which adds noise to the scores of unseen pairs.

    Args:
        replicas: Number of replicas R.
        num_features: F.
        num_classes: Not used.
        channels: Not used.
        rank: 0 for a full W; r for W = U Vᵀ with U and V [F, r], which start so that entries of W have the same scale.
    """

    uses_beliefs = False
    space: ClassVar[Mapping[str, Any]] = {"rank": [0, 8, 32]}

    def __init__(self, replicas: int, num_features: int, num_classes: int, channels: int, *, rank: int = 0) -> None:
        super().__init__(replicas, num_features, num_classes, channels)
        if rank < 0:
            raise UserError(f"the rank of the matrix must be 0 (full) or more, but is {rank}")
        self.rank, self.num_features = rank, num_features
        shapes = [(num_features, rank)] * 2 if rank else [(num_features, num_features)]
        self.factors = nn.ParameterList(torch.empty(replicas, *shape) for shape in shapes)
        self.bias = nn.Parameter(torch.empty(replicas, 1))
        self._columns: TensorCache[Columns] = TensorCache()

    def init_own_parameters(self, rng: ReplicaRNG) -> None:
        """Uniform in ±1/√F, and for factors so that the entries of U Vᵀ have the same variance 1 / 3F."""
        bound = 1 / math.sqrt(max(self.num_features, 1))
        of_factor = bound if not self.rank else math.sqrt(3 * bound) * (3 * self.rank) ** -0.25
        with torch.no_grad():
            for factor in self.factors:
                factor.copy_(rng.uniform(factor.shape[1:], -of_factor, of_factor))
            self.bias.copy_(rng.uniform((1,), -bound, bound))

    def forward(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """θ of every pair, [R, P]."""
        scores = self._factorized(nodes, graph) if self.rank else self._full(nodes, graph)
        return scores + spread(self.bias, graph.num_pairs)

    def _factorized(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """x_iᵀ U Vᵀ x_j, [R, P]."""
        source, target = (linear_sum([(nodes.features, factor)]) for factor in self.factors)
        if graph.undirected:
            source, target = torch.cat([source, target], -1) / 2, torch.cat([target, source], -1)
        return graph.pair_scores(source, target)

    def _full(self, nodes: NodeView, graph: PairGraph) -> Tensor:
        """x_iᵀ W x_j, [R, P], in blocks of columns of W.

        For the gradient, x W is computed again block by block, instead of kept: [N, F] for every replica.
        """
        (matrix,) = self.factors
        if graph.undirected:
            matrix = (matrix + matrix.transpose(1, 2)) / 2
        columns = self._columns.get(graph, [nodes.values], lambda: Columns.of(nodes.features))
        scores: Tensor = matrix.new_zeros(len(matrix), graph.num_pairs)
        for block, part in enumerate(matrix.split(columns.widths, -1)):
            scores = scores + checkpoint(
                _of_columns, part, columns, block, graph, use_reentrant=False, preserve_rng_state=False
            )
        return scores

    def step_numbers(self, sizes: Sizes) -> int:
        """Numbers of a block of columns (or of the factors) for every node, and of W."""
        width = 2 * self.rank or columns_at_once(sizes.nodes, self.num_features)
        of_matrix = 0 if self.rank else COPIES_OF_THE_MATRIX * self.num_features**2
        return COPIES_OF_A_LAYER * sizes.nodes * width + of_matrix


def _of_columns(part: Tensor, columns: Columns, block: int, graph: PairGraph) -> Tensor:
    """(x W)_i · x_j over the columns of one block, [R, P]; `part` has these columns of W, [R, F, width]."""
    some = columns[block].expand(len(part), -1, -1)
    return graph.pair_scores(linear_sum([(columns.x, part)]), some)
