import torch
from torch_geometric.data import Data

from gumbel_mpnn._util import sparse_tensors
from gumbel_mpnn.data import from_npz, save_graph, with_identity_features

EDGES = torch.tensor([[0, 1], [1, 0]])


def test_every_node_has_a_feature_of_its_own():
    data = Data(edge_index=EDGES, y=torch.tensor([0, 1, 0]))
    out = with_identity_features(data)
    assert torch.equal(out.x, torch.eye(3))
    assert out.identity_features
    assert "x" not in data


def test_without_labels_the_nodes_are_counted_by_the_graph():
    assert with_identity_features(Data(edge_index=EDGES, num_nodes=4)).x.shape == (4, 4)


def test_the_matrix_of_a_large_graph_is_sparse(monkeypatch):
    monkeypatch.setattr(sparse_tensors, "MOST_DENSE", 8)
    x = with_identity_features(Data(edge_index=EDGES, num_nodes=3)).x
    assert x.layout is torch.sparse_coo
    assert torch.equal(x.to_dense(), torch.eye(3))


def test_it_is_not_written_to_files(tmp_path):
    data = with_identity_features(Data(edge_index=EDGES, y=torch.tensor([0, 1, 0])))
    save_graph(data, tmp_path / "g.npz")
    assert data.x is not None
    stored = from_npz(tmp_path / "g.npz")
    assert stored.x is None
    assert stored.num_nodes == 3
