"""The pair graph and its differentiable products."""

from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.order import content_order, digest_of_nodes, in_order, warn_if_stale
from gumbel_mpnn.graph.pair_graph import PairGraph, WeightedGraph
from gumbel_mpnn.graph.pairs import (
    ABOUT_CANDIDATES,
    CANDIDATE_OF,
    check_candidates,
    check_edges,
    check_weights,
    contains,
    edge_index_of,
    ordered,
    pair_key,
    pairs_of,
    says_directed,
    tensor_of,
    undirected_keys,
    without_candidates,
    without_pairs,
)
from gumbel_mpnn.graph.partition import partition, subgraphs
from gumbel_mpnn.graph.products import matmul, sampled_product, symmetric_product

__all__ = [
    "ABOUT_CANDIDATES",
    "CANDIDATE_OF",
    "PairGraph",
    "SparseLayout",
    "WeightedGraph",
    "check_candidates",
    "check_edges",
    "check_weights",
    "contains",
    "content_order",
    "digest_of_nodes",
    "edge_index_of",
    "in_order",
    "matmul",
    "ordered",
    "pair_key",
    "pairs_of",
    "partition",
    "sampled_product",
    "says_directed",
    "subgraphs",
    "symmetric_product",
    "tensor_of",
    "undirected_keys",
    "warn_if_stale",
    "without_candidates",
    "without_pairs",
]
