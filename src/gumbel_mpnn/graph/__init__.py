"""The pair graph and its differentiable operations."""

from gumbel_mpnn.graph.pair_graph import PairGraph, check_candidates
from gumbel_mpnn.graph.sparse import SparseLayout, matmul, sampled_product
from gumbel_mpnn.graph.weighted import WeightedGraph

__all__ = ["PairGraph", "SparseLayout", "WeightedGraph", "check_candidates", "matmul", "sampled_product"]
