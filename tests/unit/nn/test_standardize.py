"""Standardized features, by hand and as scikit-learn's."""

import math

import torch
from sklearn.preprocessing import StandardScaler

from gumbel_mpnn.nn.standardize import Standardize, column_statistics
from helpers import normal

X = torch.tensor([[1.0, 7.0, 0.1], [3.0, 7.0, 0.1], [5.0, 1.0, 0.1], [100.0, 9.0, 4.0]])
MASK = torch.tensor([[True, True, True, False], [True, True, False, False]])


def test_statistics_worked_by_hand():
    mean, scale = column_statistics(X[:3])
    # (1, 3, 5): mean 3, variance (4 + 0 + 4) / 3. (7, 7, 1): mean 5, variance (4 + 4 + 16) / 3. The third is constant.
    torch.testing.assert_close(mean, torch.tensor([3.0, 5.0, X[0, 2].double()], dtype=torch.float64))
    torch.testing.assert_close(scale, torch.tensor([math.sqrt(8 / 3), math.sqrt(8), 1.0], dtype=torch.float64))


def test_each_replica_has_the_statistics_of_its_training_nodes():
    standardize = Standardize(2, 3)
    standardize.fit(X, MASK)
    out = standardize(X)
    assert (out.shape, out.dtype) == ((2, 4, 3), torch.float32)
    # In the second replica, the first column has mean 2 and deviation 1; the second is constant and only centered.
    torch.testing.assert_close(out[1, :, :2], torch.tensor([[-1.0, 0.0], [1.0, 0.0], [3.0, -6.0], [98.0, 2.0]]))
    assert out[:, :3, 2].abs().max() == 0  # exactly, though 0.1 is not a binary number
    torch.testing.assert_close(out[0, :3].mean(0), torch.zeros(3))


def test_as_scikit_learn():
    x = normal(20, 4) * torch.tensor([1.0, 100.0, 1e-3, 1e4]) + 5
    standardize = Standardize(1, 4)
    standardize.fit(x, (torch.arange(20) < 12)[None])
    expected = StandardScaler().fit(x[:12].numpy()).transform(x.numpy())
    torch.testing.assert_close(standardize(x)[0], torch.from_numpy(expected))


def test_the_statistics_are_part_of_the_state():
    one, other = Standardize(2, 3), Standardize(2, 3)
    one.fit(X, MASK)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(X), other(X))
