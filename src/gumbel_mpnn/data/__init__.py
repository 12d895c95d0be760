"""Data sets by name, graphs from the user's own files, split protocols and export."""

from gumbel_mpnn.data.export import graph_file, save_graph
from gumbel_mpnn.data.feature_columns import FeatureColumn
from gumbel_mpnn.data.files import Presence, locate
from gumbel_mpnn.data.identity import with_identity_features
from gumbel_mpnn.data.load import choose_split, get_spec, load, specs
from gumbel_mpnn.data.networks import from_graphml, from_networkx
from gumbel_mpnn.data.own import from_npz
from gumbel_mpnn.data.spec import DatasetSpec, GeneratedSpec
from gumbel_mpnn.data.splits import add_splits, check_masks, with_all_masks
from gumbel_mpnn.data.tables import from_csv, from_parquet
from gumbel_mpnn.data.tasks import (
    add_noise_edges,
    bottleneck,
    demo_graph,
    leaf_count,
    mixture_neighborhoods,
    tree_neighbors_match,
)
from gumbel_mpnn.data.validate import GraphFacts, check, facts_of

__all__ = [
    "DatasetSpec",
    "FeatureColumn",
    "GeneratedSpec",
    "GraphFacts",
    "Presence",
    "add_noise_edges",
    "add_splits",
    "bottleneck",
    "check",
    "check_masks",
    "choose_split",
    "demo_graph",
    "facts_of",
    "from_csv",
    "from_graphml",
    "from_networkx",
    "from_npz",
    "from_parquet",
    "get_spec",
    "graph_file",
    "leaf_count",
    "load",
    "locate",
    "mixture_neighborhoods",
    "save_graph",
    "specs",
    "tree_neighbors_match",
    "with_all_masks",
    "with_identity_features",
]
