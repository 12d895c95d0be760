"""Edges of a file are sorted, merged and mirrored as PyG does it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from gumbel_mpnn.data.raw import set_edges

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30)


@given(pairs=EDGES, undirected=st.booleans())
def test_edges_are_those_of_pyg(pairs, undirected):
    index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T.contiguous()
    data = Data(edge_index=index, num_nodes=7)
    set_edges(data, undirected)
    expected = (to_undirected if undirected else coalesce)(index, num_nodes=7)
    assert data.edge_index.dtype == torch.int64
    assert torch.equal(data.edge_index, expected)


@pytest.mark.parametrize("undirected", [True, False])
def test_many_edges(undirected):
    index = torch.randint(1000, (2, 20_000), generator=torch.Generator().manual_seed(0))
    data = Data(edge_index=index, num_nodes=1000)
    set_edges(data, undirected)
    assert torch.equal(data.edge_index, (to_undirected if undirected else coalesce)(index, num_nodes=1000))


def test_no_nodes_at_all():
    data = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    set_edges(data, True)
    assert data.edge_index.shape == (2, 0)
