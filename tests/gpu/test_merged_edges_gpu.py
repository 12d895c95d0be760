"""Edges of a graph on a GPU are merged, and stay there."""

import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.check import set_edges


def test_edges_stay_on_their_device():
    data = Data(edge_index=torch.tensor([[0, 0, 2], [1, 1, 1]], device="cuda"), num_nodes=3)
    set_edges(data, undirected=True)
    assert data.edge_index.device.type == "cuda"
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
