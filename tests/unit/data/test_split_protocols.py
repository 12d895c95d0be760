import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UnknownNameError, UserError
from gumbel_mpnn.data import add_splits, check_masks, with_all_masks
from gumbel_mpnn.data.splits import per_class_split, random_masks, random_split

LABELS = np.repeat([0, 1, 2, -1], [100, 60, 10, 7])


def per_class(mask, labels=LABELS):
    return [int(mask[labels == label].sum()) for label in (0, 1, 2, -1)]


def test_random_split_takes_its_share_of_every_class():
    masks = random_split(LABELS, (0.48, 0.32), seed=0)
    assert [per_class(mask) for mask in masks] == [[48, 29, 5, 0], [32, 19, 3, 0], [20, 12, 2, 0]]


def test_a_class_of_one_node_trains():
    masks = random_split(np.array([0] * 9 + [1]), (0.1, 0.2), seed=0)
    assert masks.train[9]


def test_per_class_split_takes_fixed_numbers_and_what_there_is():
    masks = per_class_split(LABELS, train=20, val=30, seed=0)
    assert [per_class(mask) for mask in masks] == [[20, 20, 10, 0], [30, 30, 0, 0], [50, 10, 0, 0]]


def test_random_masks_name_an_unknown_protocol_and_refuse_odd_numbers():
    with pytest.raises(UnknownNameError, match="no random split protocol called 'random-48-32'"):
        random_masks(LABELS, "random-48-32")
    with pytest.raises(UserError, match="seed must be at least 0, but is -1"):
        random_masks(LABELS, "random-48-32-20", seed=-1)
    with pytest.raises(UserError, match="num_splits must be at least 1, but is 0"):
        random_masks(LABELS, "random-48-32-20", num_splits=0)


def test_random_splits_stay_what_they_are():
    """The splits are part of the results: a change of them must be seen."""
    masks = random_masks(np.arange(12) % 3, "random-60-20-20", seed=1, num_splits=2)
    assert [np.flatnonzero(mask).tolist() for mask in masks.train.T] == [[0, 1, 2, 3, 10, 11], [0, 4, 6, 7, 8, 11]]


def test_add_splits_leaves_the_given_data_alone():
    data = Data(y=torch.from_numpy(LABELS))
    split = add_splits(data, "per-class-20-30", seed=2, num_splits=3)
    assert "train_mask" not in data
    assert split.train_mask.shape == (177, 3)
    assert split.protocol == "per-class-20-30"
    check_masks(split)


@pytest.fixture
def data():
    part = torch.tensor([[0, 1], [0, 0], [1, 0], [1, 0], [2, 2], [2, 1]])
    y = torch.tensor([0, 1, 0, 1, 0, 1])
    return Data(y=y, train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)


def test_good_masks_pass(data):
    check_masks(data)
    for mask in ("train_mask", "val_mask", "test_mask"):
        data[mask] = data[mask][:, 0]
    check_masks(data)


def test_overlapping_masks_are_counted(data):
    data.val_mask[1:3, 1] = True
    with pytest.raises(DataError, match=r"2 nodes are in more than one of .* of split 1"):
        check_masks(data)


def test_an_empty_training_set(data):
    data.train_mask[:, 1] = False
    with pytest.raises(DataError, match="the training mask of split 1 is empty"):
        check_masks(data)


def test_a_class_absent_from_training_is_named(data):
    data.train_mask[1, 0] = False
    with pytest.raises(DataError, match="class 1 is to be predicted in split 0 but has no training node there"):
        check_masks(data)
    data.class_names = ["no", "yes"]
    with pytest.raises(DataError, match=r"class 1 \('yes'\)"):
        check_masks(data)
    check_masks(data, require_all_classes=False)


def test_training_nodes_of_one_class(data):
    for mask in ("train_mask", "val_mask", "test_mask"):
        data[mask] = data[mask][:, 0] & (data.y == 1)
    with pytest.raises(DataError, match="all training nodes of the split are of class 1: add nodes of another class"):
        check_masks(data)
    data.class_names = ["no", "yes"]
    with pytest.raises(DataError, match=r"are of class 1 \('yes'\)"):
        check_masks(data)
    check_masks(data, require_all_classes=False)
    data.y = torch.ones(6, dtype=torch.int64)
    check_masks(data)


def test_an_unlabelled_node_in_a_mask(data):
    data.y[5] = -1
    with pytest.raises(DataError, match="node 5 is in a mask of split 0 but has no label"):
        check_masks(data)


def test_masks_of_another_shape(data):
    data.val_mask = data.val_mask[:, :1]
    with pytest.raises(DataError, match=r"val_mask has the shape \[6, 1\], but train_mask has \[6, 2\]"):
        check_masks(data)
    data.val_mask = torch.ones(5, dtype=torch.bool)
    with pytest.raises(DataError, match=r"val_mask must be bool of shape \[6\] or \[6, S\], not torch.bool \[5\]"):
        check_masks(data)
    data.val_mask = torch.ones(6)
    with pytest.raises(DataError, match="val_mask must be bool"):
        check_masks(data)
    del data.train_mask
    with pytest.raises(DataError, match=r"^the graph has a val_mask and a test_mask but no train_mask: give it"):
        check_masks(data)


@pytest.mark.parametrize("name", ["val_mask", "test_mask"])
def test_a_missing_mask_is_an_empty_one(data, name):
    del data[name]
    check_masks(data)
    filled = with_all_masks(data)
    assert filled[name].shape == (6, 2)
    assert not filled[name].any()
    assert name not in data


def test_final_trains_on_nine_tenths_of_every_class_and_tests_on_none():
    masks = random_masks(LABELS, "final")
    assert masks.train.shape == (177, 10)
    for train, val, test in zip(*(mask.T for mask in masks), strict=True):
        assert [per_class(mask) for mask in (train, val, test)] == [[90, 54, 9, 0], [10, 6, 1, 0], [0, 0, 0, 0]]
    assert len({mask.tobytes() for mask in masks.val.T}) == 10


def test_all_is_one_split_in_which_every_labelled_node_trains():
    masks = random_masks(LABELS, "all")
    assert masks.train.T.tolist() == [(LABELS >= 0).tolist()]
    assert not masks.val.any()
    assert not masks.test.any()
