"""Measures of a graph and its labels: homophily, neighborhoods, mixtures, curvature, degrees, components, spectral gap.

Every measure takes a `Data` and treats it as a simple undirected graph (each edge once, no self-loops) unless an edge
convention says otherwise. Edge weights are ignored. A node with the label -1 is unlabelled: it counts as a node and as
a neighbor, but not where labels are compared. Everything is computed on the CPU.
"""

from gumbel_mpnn.measures.curvature import balanced_forman
from gumbel_mpnn.measures.homophily import (
    adjusted_homophily,
    edge_homophily,
    edge_label_shares,
    label_informativeness,
    training_pairs,
)
from gumbel_mpnn.measures.mixtures import Decomposition, decompose
from gumbel_mpnn.measures.neighborhoods import neighborhood_distributions, std_per_class
from gumbel_mpnn.measures.pair_facts import random_non_edges
from gumbel_mpnn.measures.structure import (
    CONVENTIONS,
    Convention,
    directed_edges,
    largest_component,
    node_degrees,
    num_components,
    num_edges,
    num_nodes,
    spectral_gap,
    undirected_edges,
)
from gumbel_mpnn.measures.table import MEASURES, Measure, measure

__all__ = [
    "CONVENTIONS",
    "MEASURES",
    "Convention",
    "Decomposition",
    "Measure",
    "adjusted_homophily",
    "balanced_forman",
    "decompose",
    "directed_edges",
    "edge_homophily",
    "edge_label_shares",
    "label_informativeness",
    "largest_component",
    "measure",
    "neighborhood_distributions",
    "node_degrees",
    "num_components",
    "num_edges",
    "num_nodes",
    "random_non_edges",
    "spectral_gap",
    "std_per_class",
    "training_pairs",
    "undirected_edges",
]
