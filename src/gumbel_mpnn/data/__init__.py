"""Data sets by name, graphs from the user's own files, split protocols and export."""

from gumbel_mpnn.data.check import GraphFacts, check, facts_of, with_identity_features
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.data.datasets import DatasetSpec, get_spec, load, missing_files, specs
from gumbel_mpnn.data.export import graph_file, save_graph
from gumbel_mpnn.data.networks import from_graphml, from_networkx
from gumbel_mpnn.data.noise import HostileEdges, add_noise_edges
from gumbel_mpnn.data.npz import from_npz
from gumbel_mpnn.data.public_files import File
from gumbel_mpnn.data.splits import add_splits, check_masks, with_all_masks
from gumbel_mpnn.data.tables import from_csv, from_parquet
from gumbel_mpnn.data.tasks import bottleneck, demo_graph, leaf_count

__all__ = [
    "DatasetSpec",
    "FeatureColumn",
    "File",
    "GraphFacts",
    "HostileEdges",
    "add_noise_edges",
    "add_splits",
    "bottleneck",
    "check",
    "check_masks",
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
    "missing_files",
    "save_graph",
    "specs",
    "with_all_masks",
    "with_identity_features",
]
