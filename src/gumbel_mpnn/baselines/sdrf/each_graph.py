"""SDRF on a disjoint union of graphs, one graph after the other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.baselines.sdrf.transform import SDRF
from gumbel_mpnn.graph import without_pairs


@dataclass(frozen=True)
class SDRFOfEachGraph:
    """Transform that applies SDRF to each graph of a disjoint union separately.

    SDRF on the union itself takes the edge of lowest curvature of all graphs in every step. A new edge lowers the
    curvature of others next to it, so most steps are spent on a few graphs and the others do not change.

    Attributes:
        iterations: Number of steps for each graph.
        seed: Seed of the draws.
    """

    iterations: int = 100
    seed: int = 0

    def __call__(self, data: Data) -> Data:
        """Return a copy of a graph with `batch` [N], in which every graph is rewired; edge weights are not allowed."""
        batch = data.get("batch")
        if batch is None:
            raise DataError("this graph has no batch, which says which nodes belong to the same graph")
        if data.get("edge_weight") is not None:
            raise DataError("SDRF of each graph does not take edge weights: leave out edge_weight")
        rewire = SDRF(self.iterations, seed=self.seed)
        parts = [(nodes, rewire.rewire(graph)) for nodes, graph in _graphs(data, batch)]
        out = without_pairs(data, len(batch))
        out.edge_index = torch.cat([nodes[graph.edge_index] for nodes, graph in parts], dim=1)
        out.edge_origin = torch.cat([graph.edge_origin for _, graph in parts])
        return out


def _graphs(data: Data, batch: Tensor) -> list[tuple[Tensor, Data]]:
    """Return the nodes [n] of each graph, and the graph with nodes 0 to n - 1 and the features of `data`."""
    sizes = torch.bincount(batch)
    of_edge = batch[data.edge_index[0]]
    nodes = torch.argsort(batch, stable=True)
    place = torch.empty_like(nodes)
    place[nodes] = torch.arange(len(nodes)) - (sizes.cumsum(0) - sizes)[batch[nodes]]
    edges = place[data.edge_index[:, torch.argsort(of_edge, stable=True)]]
    of_graphs = zip(
        nodes.split(sizes.tolist()),
        edges.split(torch.bincount(of_edge, minlength=len(sizes)).tolist(), dim=1),
        strict=True,
    )
    return [(own, Data(x=data.x[own], edge_index=inside, num_nodes=len(own))) for own, inside in of_graphs]
