"""Regularizers of models in 16 bits."""

import copy

import pytest
import torch

from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.regularizers import InterClass, LabelConsistency, Mix, NeighborhoodConsistency
from helpers import small_data


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [InterClass, LabelConsistency, Mix, NeighborhoodConsistency])
def test_about_the_same_as_in_32_bits(kind, dtype):
    data, model = small_data(splits=1), GumbelMPNN(6, out_channels=3, hidden_channels=8, dropout=0.0).eval()
    data.train_mask = data.train_mask[:, 0]
    with torch.no_grad():
        expected = kind()(*model(data, return_graph=True), data)
        narrow = copy.copy(data)
        narrow.x = data.x.to(dtype)
        found = kind()(*model.to(dtype)(narrow, return_graph=True), narrow)
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.02)
