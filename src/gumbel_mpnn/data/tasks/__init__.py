"""Synthetic tasks that show what rewiring can and cannot do; they depend on their arguments and a seed only."""

from gumbel_mpnn.data.tasks.bottleneck import bottleneck
from gumbel_mpnn.data.tasks.demo import demo_graph
from gumbel_mpnn.data.tasks.leaf_count import leaf_count
from gumbel_mpnn.data.tasks.neighborhoods import mixture_neighborhoods, neighborhood_supports
from gumbel_mpnn.data.tasks.noise import add_noise_edges
from gumbel_mpnn.data.tasks.siege import Besieged
from gumbel_mpnn.data.tasks.tree_neighbors_match import tree_neighbors_match

__all__ = [
    "Besieged",
    "add_noise_edges",
    "bottleneck",
    "demo_graph",
    "leaf_count",
    "mixture_neighborhoods",
    "neighborhood_supports",
    "tree_neighbors_match",
]
