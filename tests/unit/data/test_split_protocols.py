import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import add_splits, check_masks, with_all_masks
from gumbel_mpnn.data.splits import random_masks
from gumbel_mpnn.util.errors import DataError, UnknownNameError, UserError

LABELS = np.repeat([0, 1, 2, -1], [100, 60, 10, 7])


def per_class(mask):
    return [int(mask[label == LABELS].sum()) for label in (0, 1, 2, -1)]


@pytest.mark.parametrize(
    ("protocol", "sizes"),
    [
        ("random-48-32-20", [[48, 29, 5, 0], [32, 19, 3, 0], [20, 12, 2, 0]]),
        ("per-class-20-30", [[20, 20, 10, 0], [30, 30, 0, 0], [50, 10, 0, 0]]),
        ("final", [[90, 54, 9, 0], [10, 6, 1, 0], [0, 0, 0, 0]]),
        ("all", [[100, 60, 10, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    ],
)
def test_every_class_is_split_alike(protocol, sizes):
    masks = random_masks(LABELS, protocol)
    for split in zip(*(mask.T for mask in masks), strict=True):
        assert [per_class(mask) for mask in split] == sizes
    assert masks.train.shape == (177, 1 if protocol == "all" else 10)


def test_random_splits_stay_what_they_are():
    """The splits are part of the results: a change of them must be seen."""
    masks = random_masks(np.arange(12) % 3, "random-60-20-20", seed=1, num_splits=2)
    assert [np.flatnonzero(mask).tolist() for mask in masks.train.T] == [[0, 1, 2, 3, 10, 11], [0, 4, 6, 7, 8, 11]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"protocol": "random-48-32"}, UnknownNameError, "no random split protocol called 'random-48-32'"),
        ({"protocol": "random-48-32-20", "seed": -1}, UserError, "seed must be at least 0, but is -1"),
        ({"protocol": "random-48-32-20", "num_splits": 0}, UserError, "num_splits must be at least 1, but is 0"),
    ],
)
def test_what_is_no_random_protocol(options, error, message):
    with pytest.raises(error, match=message):
        random_masks(LABELS, **options)


def test_add_splits_leaves_the_given_data_alone():
    data = Data(y=torch.from_numpy(LABELS))
    split = add_splits(data, "per-class-20-30", seed=2, num_splits=3)
    assert "train_mask" not in data
    assert split.train_mask.shape == (177, 3)
    assert split.protocol == "per-class-20-30"
    check_masks(split)


class TestMasks:
    @pytest.fixture
    def data(self):
        part = torch.tensor([[0, 1], [0, 0], [1, 0], [1, 0], [2, 2], [2, 1]])
        y = torch.tensor([0, 1, 0, 1, 0, 1])
        return Data(y=y, train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)

    def test_good_ones_pass(self, data):
        check_masks(data)
        for mask in ("train_mask", "val_mask", "test_mask"):
            data[mask] = data[mask][:, 0]
        check_masks(data)

    @pytest.mark.parametrize("name", ["val_mask", "test_mask"])
    def test_a_missing_one_is_empty(self, data, name):
        del data[name]
        check_masks(data)
        filled = with_all_masks(data)
        assert filled[name].shape == (6, 2)
        assert not filled[name].any()
        assert name not in data

    @pytest.mark.parametrize(
        ("name", "mask", "message"),
        [
            (
                "val_mask",
                [[0, 1], [0, 1], [1, 1], [1, 0], [0, 0], [0, 1]],
                "2 nodes are in more than one .* of split 1",
            ),
            ("train_mask", [[1, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 0]], "the training mask of split 1 is empty"),
            (
                "train_mask",
                [[1, 0], [0, 1], [0, 1], [0, 1], [0, 0], [0, 0]],
                r"class 1 \('yes'\) is to be predicted in split 0 but has no training node",
            ),
            ("val_mask", [[1]] * 6, r"val_mask has the shape \[6, 1\], but train_mask has \[6, 2\]"),
            ("val_mask", [1] * 5, r"val_mask must be bool of shape \[6\] or \[6, S\], not torch.bool \[5\]"),
            ("train_mask", None, "^this graph has no train_mask: give it train_mask, val_mask"),
        ],
    )
    def test_what_cannot_be_used(self, data, name, mask, message):
        data.class_names = ["no", "yes"]
        data[name] = None if mask is None else torch.tensor(mask).bool()
        with pytest.raises(DataError, match=message):
            check_masks(data)

    def test_training_nodes_of_one_class(self, data):
        for mask in ("train_mask", "val_mask", "test_mask"):
            data[mask] = data[mask][:, 0] & (data.y == 1)
        with pytest.raises(DataError, match="all training nodes of the split are of class 1: add nodes of another"):
            check_masks(data)
        data.y = torch.ones(6, dtype=torch.int64)
        check_masks(data)

    def test_an_unlabelled_node(self, data):
        data.y[5], data.node_ids = -1, list("abcdef")
        with pytest.raises(DataError, match=r"node 5 \('f'\) is in a mask of split 0 but has no label"):
            check_masks(data)
