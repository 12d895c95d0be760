"""The pair graph and its differentiable products."""

from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.pair_graph import PairGraph, WeightedGraph
from gumbel_mpnn.graph.pairs import (
    check_candidates,
    check_edges,
    contains,
    content_order,
    edge_index_of,
    in_order,
    ordered,
    pair_key,
    pairs_of,
    tensor_of,
    undirected_keys,
    without_candidates,
    without_pairs,
)
from gumbel_mpnn.graph.products import matmul, sampled_product

__all__ = [
    "PairGraph",
    "SparseLayout",
    "WeightedGraph",
    "check_candidates",
    "check_edges",
    "contains",
    "content_order",
    "edge_index_of",
    "in_order",
    "matmul",
    "ordered",
    "pair_key",
    "pairs_of",
    "sampled_product",
    "tensor_of",
    "undirected_keys",
    "without_candidates",
    "without_pairs",
]
