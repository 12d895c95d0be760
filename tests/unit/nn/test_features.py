import pytest
import torch

from gumbel_mpnn.nn import SparseFeatures, as_features
from gumbel_mpnn.nn.features import SPARSE_BELOW


def with_nonzeros(count):
    x = torch.zeros(4, 10, dtype=torch.float64)
    x.view(-1)[torch.arange(count) * 40 // max(count, 1)] = torch.arange(1.0, count + 1, dtype=torch.float64)
    return x


@pytest.mark.parametrize(("nonzeros", "sparse"), [(0, True), (1, True), (9, True), (10, False), (40, False)])
def test_features_are_sparse_below_a_quarter(nonzeros, sparse):
    assert SPARSE_BELOW["cpu"] == 0.25
    x = with_nonzeros(nonzeros)
    features = as_features(x)
    assert isinstance(features, SparseFeatures) == sparse
    if not sparse:
        assert features is x


def test_features_stay_dense_on_a_device_nobody_measured():
    assert as_features(with_nonzeros(1), "meta").shape == (4, 10)


def test_sparse_features_worked_by_hand():
    x = torch.zeros(3, 4)
    x[0, 2], x[2, 1] = 5.0, -7.0
    features = as_features(x)
    assert features.layout.shape == (3, 4)
    assert features.layout.rowptr.tolist() == [0, 1, 1, 2]
    assert features.layout.col.tolist() == [2, 1]
    assert features.values.tolist() == [5.0, -7.0]
    assert (features.dtype, features.device) == (torch.float32, torch.device("cpu"))


@pytest.mark.parametrize("nonzeros", [0, 3, 40])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_become_what_dense_ones_do(nonzeros, layout):
    x = with_nonzeros(nonzeros)
    expected, features = as_features(x), as_features(x.to_sparse(layout=layout))
    assert isinstance(features, SparseFeatures) == isinstance(expected, SparseFeatures)
    if isinstance(features, SparseFeatures):
        assert features.shape == expected.shape
        assert torch.equal(features.layout.rowptr, expected.layout.rowptr)
        assert torch.equal(features.layout.col, expected.layout.col)
        assert torch.equal(features.values, expected.values)
    else:
        assert torch.equal(features, expected)


def test_stored_zeros_are_not_kept():
    x = torch.sparse_coo_tensor([[0, 2], [1, 1]], [0.0, 3.0], (3, 4))
    assert as_features(x).values.tolist() == [3.0]


def test_sparse_features_move():
    moved = as_features(with_nonzeros(3)).to("meta")
    assert moved.device.type == moved.layout.col.device.type == "meta"
    assert moved.dtype == torch.float64
