"""Attributes of a pair that do not change during training: similarity, common neighbors, degrees."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.pair_facts import count_common
from gumbel_mpnn.nn import SparseFeatures

NUMBERS_AT_ONCE = 2**24
"""Entries of sparse features that are converted to dense at a time: 64 MiB."""
COSINE = 8.0
"""Factor of cosines beside counts: cosines of sparse features differ by about .1, logarithms of counts by about 1."""
NAMES = ("cosine", "common neighbors", "smaller degree", "larger degree")


def pair_facts(features: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
    """Facts about every pair, [P, 4], in the order of `NAMES`; counts are of given edges only, as log(1 + count).

    Features [R, N, F] give the facts of every replica, [R, P, 4].
    """
    given = graph.is_original.to(features.dtype)
    degree = graph.degree(given, given.dtype)[0]
    ends = degree[graph.pair_index]
    similar = cosine(features, graph)
    counts = [common_neighbors(graph).to(degree), ends.min(0).values, ends.max(0).values]
    return torch.stack([similar, *(count.log1p().expand_as(similar) for count in counts)], dim=-1)


def cosine(features: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
    """Cosine similarity of the features of every pair, [P]; 0 if all features of a node are 0.

    Features [R, N, F] give the similarity in every replica, [R, P].
    """
    if isinstance(features, SparseFeatures):
        return _sparse_cosine(features, graph)
    unit = F.normalize(features, dim=-1)
    if unit.dim() == 3:
        return graph.pair_scores(unit, unit)
    return graph.pair_scores(unit[None], unit[None])[0]


def _sparse_cosine(features: SparseFeatures, graph: PairGraph) -> Tensor:
    """Cosine similarity of sparse features, [P]; computed in blocks of columns to save memory."""
    layout, values, (nodes, columns) = features.layout, features.values, features.shape
    row, col = layout.row.long(), layout.col.long()
    length = torch.segment_reduce(values.square(), "sum", lengths=layout.rowptr.diff().long()).sqrt()
    unit = values / length.clamp(min=1e-12)[row]
    total, width = values.new_zeros(graph.num_pairs), max(NUMBERS_AT_ONCE // max(nodes, 1), 1)
    for start in range(0, columns, width):
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
    arcs = torch.stack([graph.arc_target[given], graph.arcs.col[given].long()])  # sorted
    weight = None if graph.pair_weight is None else graph.pair_weight.clamp(max=1)[graph.arc_pair[given]]
    return count_common(arcs, graph.num_nodes, graph.pair_index, weight)
