import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gumbel_mpnn.data.splits import ALL, PROTOCOLS, deal, random_masks, shares

labels = arrays(np.int64, st.integers(0, 60), elements=st.integers(-1, 4))
seeds = st.integers(0, 2**32)
protocols = st.sampled_from(sorted(PROTOCOLS.keys() - {ALL}))


@given(labels, protocols, seeds)
def test_masks_are_disjoint_and_cover_the_labelled_nodes_alone(y, protocol, seed):
    masks = random_masks(y, protocol, seed, num_splits=2)
    times = sum(mask.astype(int) for mask in masks)
    assert times.shape == (len(y), 2)
    assert (times == (y >= 0)[:, None]).all()


@given(labels, protocols, seeds, st.integers(1, 4))
def test_split_k_is_a_function_of_labels_seed_and_k(y, protocol, seed, count):
    masks, more = random_masks(y.copy(), protocol, seed, count), random_masks(y, protocol, seed, count + 2)
    for mask, longer in zip(masks, more, strict=True):
        assert np.array_equal(mask, longer[:, :count])


@given(labels, st.floats(0, 0.6), st.floats(0, 0.4), seeds)
def test_each_class_gives_its_share_to_within_a_node(y, train, val, seed):
    masks = deal(y, shares(train, val), seed)
    for label in set(y[y >= 0].tolist()):
        size = int((y == label).sum())
        assert 1 <= masks.train[y == label].sum() <= max(1, train * size + 0.5)
        assert abs(masks.train[y == label].sum() - train * size) <= 1
        assert abs(masks.val[y == label].sum() - val * size) <= 1


@given(labels, st.integers(0, 9), st.integers(0, 9), seeds)
def test_each_class_gives_a_fixed_number_or_all_it_has(y, train, val, seed):
    masks = deal(y, lambda size: (train, val), seed)
    for label in set(y[y >= 0].tolist()):
        size = int((y == label).sum())
        assert masks.train[y == label].sum() == min(train, size)
        assert masks.val[y == label].sum() == min(val, size - min(train, size))
