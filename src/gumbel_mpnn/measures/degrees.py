"""Numbers of nodes, edges and components, and degrees."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import without_candidates
from gumbel_mpnn.measures.edges import Convention, node_count, undirected_edges
from gumbel_mpnn.measures.matrices import adjacency, component_of


def num_nodes(data: Data) -> int:
    """Number of nodes, including unlabelled ones."""
    return node_count(data)


def num_edges(data: Data, convention: Convention = "coalesced") -> int:
    """Number of undirected edges; with `as_listed`, the number of columns of `edge_index`."""
    return undirected_edges(data, convention).shape[1]


def node_degrees(data: Data, convention: Convention = "coalesced") -> Tensor:
    """Number of distinct neighbors of every node other than itself, int64 [N].

    With `as_listed`, the number of listed edges at every node, where a self-loop counts twice.
    """
    return undirected_edges(data, convention).flatten().bincount(minlength=node_count(data))


def degree_min(data: Data, convention: Convention = "coalesced") -> int:
    """The smallest degree."""
    return int(node_degrees(data, convention).min())


def degree_mean(data: Data, convention: Convention = "coalesced") -> float:
    """The mean degree."""
    return float(node_degrees(data, convention).double().mean())


def degree_max(data: Data, convention: Convention = "coalesced") -> int:
    """The largest degree."""
    return int(node_degrees(data, convention).max())


def num_components(data: Data) -> int:
    """Number of connected components, including isolated nodes."""
    return int(component_of(adjacency(data)).max()) + 1


def largest_component(data: Data) -> Data:
    """Subgraph of `data` on its largest connected component, the first of several equally large ones.

    Node attributes, masks and edge attributes are restricted to it; candidates are removed.
    """
    component = torch.from_numpy(component_of(adjacency(data)))
    nodes = component == component.bincount().argmax()
    bare = without_candidates(data)
    bare.num_nodes = node_count(data)  # without features, PyG would infer it from the edges
    bare.edge_index = data.edge_index.long()
    part: Data = bare.subgraph(nodes.to(data.edge_index.device))
    return part
