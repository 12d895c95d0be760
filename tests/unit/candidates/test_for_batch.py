"""Candidates of a whole graph in the mini-batches of PyG's loaders."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, ClusterLoader, RandomNodeLoader

import gumbel_mpnn as gm
from gumbel_mpnn.util.errors import DataError


def path_of_six() -> Data:
    """0 - 1 - 2 - 3 - 4 - 5, and four candidates."""
    index = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    candidates = torch.tensor([[0, 0, 1, 3], [2, 5, 4, 5]])
    return Data(x=torch.eye(6), edge_index=index, candidate_index=candidates, n_id=torch.arange(6))


def original_pairs(batch: Data) -> list[tuple[int, int]]:
    return sorted(tuple(sorted(pair)) for pair in batch.n_id[batch.candidate_index].T.tolist())


def test_candidates_have_the_numbers_of_the_batch():
    """Nodes 5, 0, 3 and 2 have the numbers 0 to 3: of the candidates, 0-2, 0-5 and 3-5 are 1-3, 0-1 and 0-2."""
    data = path_of_six()
    batch = Data(x=data.x[[5, 0, 3, 2]], edge_index=torch.tensor([[2], [3]]), n_id=torch.tensor([5, 0, 3, 2]))
    found = gm.candidates.for_batch(batch, data.candidate_index)
    assert found.candidate_index.tolist() == [[0, 0, 1], [1, 2, 3]]
    assert "candidate_index" not in batch


def test_nodes_can_be_given_apart():
    data = path_of_six()
    batch = data.subgraph(torch.tensor([3, 4, 5]))
    del batch.n_id
    found = gm.candidates.for_batch(batch, data.candidate_index, n_id=torch.tensor([3, 4, 5]))
    assert found.candidate_index.tolist() == [[0], [2]]
    none = gm.candidates.for_batch(batch, torch.empty(2, 0, dtype=torch.int64), n_id=torch.tensor([3, 4, 5]))
    assert none.candidate_index.shape == (2, 0)


def test_a_random_node_loader_trains_a_model():
    """Batches have every pair of their nodes and no other, without a warning that they belong to other nodes."""
    data = gm.data.demo_graph()
    data.n_id = torch.arange(data.num_nodes)
    data.train_mask = data.train_mask[:, 0]
    whole = gm.candidates.Local(per_node=5)(data)
    model = gm.GumbelMPNN(in_channels=data.num_features, out_channels=4, hidden_channels=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in RandomNodeLoader(whole, num_parts=2, shuffle=True):
            batch = gm.candidates.for_batch(batch, whole.candidate_index)
            here = set(batch.n_id.tolist())
            among = [pair for pair in map(tuple, whole.candidate_index.T.tolist()) if here.issuperset(pair)]
            assert original_pairs(batch) == sorted(among)
            loss = F.cross_entropy(model(batch)[batch.train_mask], batch.y[batch.train_mask])
            (loss + model.auxiliary_loss(batch)).backward()
    assert all(parameter.grad is not None for parameter in model.backbone.parameters())


def test_a_batch_with_the_attributes_of_a_neighbor_loader():
    """Sampled edges point to the seeds, which come first; `n_id` and `batch_size` are set by the loader."""
    data = path_of_six()
    batch = Data(
        x=data.x[[2, 1, 3, 4]],
        edge_index=torch.tensor([[1, 2, 3], [0, 0, 2]]),
        n_id=torch.tensor([2, 1, 3, 4]),
        e_id=torch.tensor([1, 2, 3]),
        input_id=torch.tensor([2]),
        batch_size=1,
    )
    found = gm.candidates.for_batch(batch, data.candidate_index)
    assert original_pairs(found) == [(1, 4)]
    assert gm.GumbelMPNN(in_channels=6, out_channels=2, hidden_channels=4)(found)[: found.batch_size].shape == (1, 2)


class PartsByHand(ClusterData):
    """Two given parts, in place of those of METIS, which needs a compiled add-on."""

    def _metis(self, edge_index: torch.Tensor, num_nodes: int) -> torch.Tensor:
        return torch.tensor([0, 1, 0, 1, 0, 1])


def test_a_cluster_loader():
    data = path_of_six()
    batches = ClusterLoader(PartsByHand(data, num_parts=2, log=False), batch_size=1)
    found = [gm.candidates.for_batch(batch, data.candidate_index) for batch in batches]
    assert [original_pairs(batch) for batch in found] == [[(0, 2)], [(3, 5)]]
    together = next(iter(ClusterLoader(PartsByHand(data, num_parts=2, log=False), batch_size=2)))
    every = gm.candidates.for_batch(together, data.candidate_index)
    assert original_pairs(every) == [(0, 2), (0, 5), (1, 4), (3, 5)]


def test_what_cannot_be_renumbered_is_told():
    data = path_of_six()
    batch = data.subgraph(torch.tensor([0, 2]))
    with pytest.raises(DataError, match="a node is in the batch twice"):
        gm.candidates.for_batch(batch, data.candidate_index, n_id=torch.tensor([2, 2]))
    with pytest.raises(DataError, match=r"n_id must be integers of shape \[2\], .* not torch.int64 \[3\]"):
        gm.candidates.for_batch(batch, data.candidate_index, n_id=torch.tensor([0, 1, 2]))
    with pytest.raises(DataError, match=r"candidate_index must be integers of shape \[2, M\]"):
        gm.candidates.for_batch(batch, data.candidate_index.T)
    del batch.n_id
    with pytest.raises(DataError, match=r"set data.n_id = torch.arange\(data.num_nodes\)"):
        gm.candidates.for_batch(batch, data.candidate_index)
