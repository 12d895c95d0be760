"""Positions in the leading directions of the features: by hand, against dense definitions, and where they must be 0."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from gumbel_mpnn.candidates import Local
from gumbel_mpnn.candidates.latent import COUNTS, latent_positions
from helpers import edges, normal


def by_definition(x, dimensions):
    """Leading directions by a dense singular value decomposition."""
    x = x.double().numpy()
    if (x >= 0).all() and (x != 0).mean() <= COUNTS:
        x = np.log1p(x) * np.log(len(x) / np.maximum((x != 0).sum(0), 1))
    x = x[:, (x != 0).sum(0) > 1]
    centered = x - x.mean(0)
    centered[(x == 0).all(1)] = 0
    unit = centered / np.maximum(np.linalg.norm(centered, axis=1, keepdims=True), 1e-12)
    left, values, _ = np.linalg.svd(unit, full_matrices=False)
    found = (left * values)[:, :dimensions]
    return torch.from_numpy(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)).float()


def topics(nodes=60, words=300, kinds=3):
    """Counts of words: most words of a node belong to its kind."""
    kind = torch.arange(nodes) % kinds
    generator = torch.Generator().manual_seed(0)
    x = torch.zeros(nodes, words)
    own = torch.randint(words // kinds, (nodes, 12), generator=generator) + (kind * (words // kinds))[:, None]
    any_word = torch.randint(words, (nodes, 3), generator=generator)
    return x.scatter_add_(1, torch.cat([own, any_word], dim=1), torch.ones(nodes, 15)), kind


def test_two_kinds_of_nodes_by_hand():
    """Centered, the nodes are at ±(1, −1) / 2, so that one direction has them all, at −1 and 1."""
    x = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    found = latent_positions(x, 2)
    assert (found @ found.T).tolist() == [[1, 1, -1, -1], [1, 1, -1, -1], [-1, -1, 1, 1], [-1, -1, 1, 1]]


@pytest.mark.parametrize("x", [topics()[0], normal(50, 12, dtype=torch.float32)], ids=["counts", "dense"])
def test_the_definition(x):
    """All directions together, where none is cut off; signs and rotations do not matter to cosines."""
    expected, found = by_definition(x, 300), latent_positions(x, 300)
    torch.testing.assert_close(found @ found.T, expected @ expected.T, atol=1e-4, rtol=0)


def test_a_large_constant_column_has_no_influence():
    x = normal(40, 5)
    shifted = torch.cat([x, torch.full((40, 1), 1e9, dtype=x.dtype)], dim=1)
    expected, found = (latent_positions(each, 5) for each in (x, shifted))
    torch.testing.assert_close(found @ found.T, expected @ expected.T, atol=1e-4, rtol=0)


def test_leading_directions_find_the_kinds():
    x, kind = topics()
    found = latent_positions(x, 2)
    assert torch.equal(found @ found.T > 0.5, kind[:, None] == kind)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_of_dense_features_has_no_influence(scale):
    x = normal(20, 5)
    torch.testing.assert_close(latent_positions(x * scale), latent_positions(x))


@pytest.mark.parametrize(
    "x",
    [torch.zeros(4, 3), torch.ones(4, 3), torch.eye(4), torch.empty(4, 0)],
    ids=["zeros", "constant", "apart", "none"],
)
def test_features_that_say_nothing(x):
    assert latent_positions(x).tolist() == torch.zeros(4, 32).tolist()


def test_a_node_without_features_is_like_no_other():
    x, _ = topics()
    x[5] = x[6] = 0
    assert latent_positions(x)[5:7].abs().sum() == 0


def test_graphs_of_a_batch_are_apart():
    graphs = [Data(x=topics()[0][start : start + 30], edge_index=edges((0, 1))) for start in (0, 30)]
    together = Local(2, "latent")(Batch.from_data_list(graphs)).to_data_list()
    for alone, found in zip(graphs, together, strict=True):
        assert torch.equal(Local(2, "latent")(alone).candidate_index, found.candidate_index)
