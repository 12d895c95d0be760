"""Curvature against its definition, on random graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import brute_curvature as brute
from gumbel_mpnn.measures import balanced_forman

NODES = 11
PAIRS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=45)


@given(pairs=PAIRS)
@settings(max_examples=150, deadline=None)
def test_equal_to_the_definition(pairs):
    data = Data(edge_index=torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, num_nodes=NODES)
    a = brute.matrix(pairs, NODES)
    expected = [brute.curvature_of(a, i, j) if i != j else 0.0 for i, j in pairs]
    assert balanced_forman(data).tolist() == pytest.approx(expected, abs=1e-12)
