"""What is kept of tensors: as long as they live, and no longer than they stay as they were."""

import copy
import gc
import hashlib
import weakref

import pytest
import torch

from gumbel_mpnn.util import tensors
from gumbel_mpnn.util.tensors import MAX_RESULTS, TensorCache, add_tensor, dense_if_small


class Owner:
    """Something that results belong to."""


@pytest.fixture
def owner():
    return Owner()


def counted(memo, owner, source, *facts):
    """How often the result was made anew in two looks: 0, 1 or 2."""
    made = []
    for _ in range(2):
        memo.get(owner, [source], lambda: made.append(1), *facts)
    return len(made)


def test_made_once_and_anew_after_a_change(owner):
    memo, source = TensorCache(), torch.ones(2)
    assert [counted(memo, owner, source), counted(memo, owner, source)] == [1, 0]
    source.add_(1)
    assert counted(memo, owner, source) == 1
    assert counted(memo, owner, torch.ones(2)) == 1
    assert counted(memo, owner, None) == 1
    assert counted(memo, owner, None, "another fact") == 1
    assert counted(memo, Owner(), None, "another fact") == 1


def test_the_look_that_was_asked_for_longest_ago_goes_first(owner):
    memo, results = TensorCache(), [Owner() for _ in range(MAX_RESULTS + 1)]
    gone = [weakref.ref(result) for result in results]
    for number in [0, 1, 2, 0, 3]:
        memo.get(owner, [], lambda number=number: results[number], number)
    results.clear()
    gc.collect()
    assert [result() is None for result in gone] == [False, True, False, False]


def test_a_source_lives_as_long_as_what_was_made_of_it(owner):
    memo, source = TensorCache(), torch.ones(2)
    gone = weakref.ref(source)
    memo.get(owner, [source], lambda: None)
    del source
    assert gone() is not None  # else a new tensor might have its id
    for number in range(MAX_RESULTS):
        memo.get(owner, [], lambda: None, number)
    gc.collect()
    assert gone() is None


def test_nothing_is_kept_of_what_needs_a_gradient(owner):
    memo, source = TensorCache(), torch.ones(2)
    memo.get(owner, [source], lambda: source.sum())
    source.requires_grad_()
    for _ in range(2):
        memo.get(owner, [source], lambda: (source * source).sum()).backward()
    assert source.grad.tolist() == [4.0, 4.0]
    with torch.no_grad():
        assert counted(memo, owner, source) == 2


def test_what_is_first_asked_for_in_inference_mode_can_be_trained_with(owner):
    memo, source = TensorCache(), torch.ones(2)
    with torch.inference_mode():
        made = memo.get(owner, [source], lambda: source + 1)
        own = torch.ones(2)
        assert counted(memo, Owner(), own) == 2
    assert memo.get(owner, [source], lambda: source + 1) is made
    weight = torch.ones(2, requires_grad=True)
    (weight * made).sum().backward()
    assert weight.grad.tolist() == [2.0, 2.0]


def test_results_go_with_their_owner():
    memo, owner, result = TensorCache(), torch.ones(1), Owner()
    gone = weakref.ref(result)
    memo.get(owner, [owner], lambda result=result: result)
    del result
    gc.collect()
    assert gone() is not None
    del owner
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_are_empty(owner, duplicate):
    memo = TensorCache()
    counted(memo, owner, None)
    assert counted(duplicate(memo), owner, None) == 1
    assert counted(memo, owner, None) == 0


def digest(value):
    found = hashlib.sha256()
    add_tensor(found, "x", value)
    return found.hexdigest()


class TestSparse:
    X = torch.tensor([[0.0, 2.0], [3.0, 0.0]])

    def test_small_tensors_become_dense(self, monkeypatch):
        assert dense_if_small(self.X) is self.X
        for sparse in (self.X.to_sparse(), self.X.to_sparse_csr()):
            assert torch.equal(dense_if_small(sparse), self.X)
        monkeypatch.setattr(tensors, "MOST_DENSE", 3)
        large = dense_if_small(self.X.to_sparse_csr())
        assert large.layout is torch.sparse_coo
        assert large.is_coalesced()
        assert torch.equal(large.to_dense(), self.X)

    def test_the_digest_does_not_depend_on_the_layout_of_small_tensors(self):
        assert digest(self.X) == digest(self.X.to_sparse()) == digest(self.X.to_sparse_csr())

    def test_the_digest_of_large_tensors_depends_on_positions_and_values(self, monkeypatch):
        monkeypatch.setattr(tensors, "MOST_DENSE", 0)
        assert digest(self.X.to_sparse()) == digest(self.X.to_sparse_csr())
        assert len({digest(x.to_sparse()) for x in (self.X, 2 * self.X, self.X.flip(1))}) == 3
