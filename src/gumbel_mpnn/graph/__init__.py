"""The pair graph and its differentiable products."""

from gumbel_mpnn.graph.candidate_origin import digest_of_nodes, warn_if_stale
from gumbel_mpnn.graph.edge_list import (
    check_candidates,
    check_edges,
    check_weights,
    distinct_pairs,
    edge_index_of,
    tensor_of,
)
from gumbel_mpnn.graph.layout import SparseLayout
from gumbel_mpnn.graph.pair_graph import PairGraph
from gumbel_mpnn.graph.pairs import (
    ABOUT_CANDIDATES,
    CANDIDATE_OF,
    contains,
    ordered,
    pair_key,
    pairs_of,
    says_directed,
    undirected_keys,
    without_candidates,
    without_pairs,
)
from gumbel_mpnn.graph.partition import partition, subgraphs
from gumbel_mpnn.graph.sparse import matmul, sampled_product
from gumbel_mpnn.graph.symmetric import symmetric_product
from gumbel_mpnn.graph.weighted import WeightedGraph

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
    "digest_of_nodes",
    "distinct_pairs",
    "edge_index_of",
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
