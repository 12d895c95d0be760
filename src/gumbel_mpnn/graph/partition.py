"""Parts of a graph: nodes divided so that few pairs join two parts, and the subgraph of each part with its halo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.graph.pair_graph import PairGraph
from gumbel_mpnn.util.errors import UserError


@dataclass(frozen=True, eq=False)
class Subgraph:
    """The own nodes of a part, the nodes that they receive messages from (the halo), and all pairs among them."""

    graph: PairGraph
    nodes: Tensor
    """int64 [n], the number of each node in the whole graph, ascending."""
    own: Tensor
    """bool [n], false for nodes of the halo."""
    pairs: Tensor
    """int64 [P], the number of each pair in the whole graph, ascending."""

    @property
    def own_pairs(self) -> Tensor:
        """Whether the target of a pair is an own node, bool [P]; true in one part for each pair of the whole graph."""
        return self.own[self.graph.pair_index[1]]


def partition(graph: PairGraph, count: int) -> Tensor:
    """Divide the nodes into at most `count` parts of about equal size with METIS; returns the part of each, int64 [N].

    Few pairs join two parts, candidates included. The same graph is always divided in the same way.
    """
    if count <= 1 or graph.num_nodes <= 1:
        return torch.zeros(graph.num_nodes, dtype=torch.int64)
    try:
        import pymetis
    except ImportError:
        raise UserError("parts of a graph need the package pymetis: pip install 'gumbel-mpnn[scale]'") from None
    symmetric = graph if graph.undirected else PairGraph.build(graph.pair_index, graph.num_nodes)
    arcs = symmetric.arcs.to("cpu")
    found = pymetis.part_graph(
        min(count, graph.num_nodes),
        pymetis.CSRAdjacency(arcs.rowptr.numpy(), arcs.col.numpy()),
        options=pymetis.Options(seed=0),
    )
    return torch.as_tensor(found.vertex_part, dtype=torch.int64)


def subgraphs(graph: PairGraph, part: Tensor) -> Iterator[Subgraph]:
    """The subgraph of every part [N] that has a node."""
    arcs = graph.arcs
    for number in part.unique():
        own = part == number
        inside = own.clone()
        inside[arcs.col[arcs.positions_in(own.nonzero().flatten())].long()] = True
        nodes = inside.nonzero().flatten()
        places = arcs.positions_in(nodes)
        source, target = arcs.col[places].long(), arcs.row[places].long()
        chosen = inside[source]
        if graph.undirected:
            chosen &= source < target  # one of the two arcs of a pair
        pairs = graph.arc_pair[places[chosen]].sort().values
        yield Subgraph(graph.among(nodes, pairs), nodes, own[nodes], pairs)
