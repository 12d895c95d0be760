import hashlib

import torch

from gumbel_mpnn._util import sparse_tensors
from gumbel_mpnn._util.content_cache import add_tensor
from gumbel_mpnn._util.sparse_tensors import coalesced, dense_if_small

X = torch.tensor([[0.0, 2.0], [3.0, 0.0]])


def digest(value):
    found = hashlib.sha256()
    add_tensor(found, "x", value)
    return found.hexdigest()


def test_small_tensors_become_dense(monkeypatch):
    assert dense_if_small(X) is X
    for sparse in (X.to_sparse(), X.to_sparse_csr()):
        assert torch.equal(dense_if_small(sparse), X)
    monkeypatch.setattr(sparse_tensors, "MOST_DENSE", 3)
    large = dense_if_small(X.to_sparse_csr())
    assert large.layout is torch.sparse_coo
    assert large.is_coalesced()
    assert torch.equal(large.to_dense(), X)


def test_positions_are_merged_and_in_order():
    twice = torch.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], [1.0, 2.0, 2.0], (2, 2))
    assert coalesced(twice).indices().tolist() == [[0, 1], [1, 0]]
    assert coalesced(twice).values().tolist() == [2, 3]


def test_the_digest_does_not_depend_on_the_layout_of_small_tensors():
    assert digest(X) == digest(X.to_sparse()) == digest(X.to_sparse_csr())


def test_the_digest_of_large_tensors_depends_on_positions_and_values(monkeypatch):
    monkeypatch.setattr(sparse_tensors, "MOST_DENSE", 0)
    assert digest(X.to_sparse()) == digest(X.to_sparse_csr())
    assert len({digest(x.to_sparse()) for x in (X, 2 * X, X.flip(1))}) == 3
