"""Random split protocols, which depend on labels and seed only, and the validation of masks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.util.errors import DataError, check_at_least, unknown_name

Seed = int | Sequence[int]
Sizes = Callable[[int], tuple[int, int]]
"""Number of training and of validation nodes of a class of so many; the rest is for testing."""
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
MASKS = ("train_mask", "val_mask", "test_mask")


class Masks(NamedTuple):
    """Training, validation and test nodes: bool [N], or [N, S] for S splits."""

    train: BoolArray
    val: BoolArray
    test: BoolArray

    @classmethod
    def stack(cls, splits: Sequence[Masks]) -> Masks:
        """Stack the masks [N] of each split into masks [N, S]."""
        return cls(*(np.stack(masks, axis=1) for masks in zip(*splits, strict=True)))


def set_masks(data: Data, masks: Masks) -> None:
    """Set the training, validation and test masks of `data`."""
    data.train_mask, data.val_mask, data.test_mask = map(torch.from_numpy, masks)


def mask_of(nodes: IntArray, num_nodes: int, where: object) -> BoolArray:
    """Return a bool mask [N] that is true at `nodes`; an error message names `where` they come from."""
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        raise DataError(f"{where} names the nodes {nodes.min()} to {nodes.max()}, but nodes are 0 to {num_nodes - 1}")
    mask = np.zeros(num_nodes, dtype=bool)
    mask[nodes] = True
    return mask


def shares(train: float, val: float) -> Sizes:
    """Training and validation nodes of a class by these fractions, at least one for training."""
    return lambda size: (max(1, round(train * size)), round(val * size))


def deal(y: ArrayLike, sizes: Sizes, seed: Seed) -> Masks:
    """Shuffle each class and cut it into three parts; unlabelled nodes (-1) are in no mask. Returns masks [N]."""
    labels = np.asarray(y)
    rng = np.random.default_rng(seed)
    masks = Masks(*(np.zeros(len(labels), dtype=bool) for _ in range(3)))
    for label in np.unique(labels[labels >= 0]):
        nodes = rng.permutation(np.flatnonzero(labels == label))
        num_train, num_val = sizes(len(nodes))
        for mask, part in zip(masks, np.split(nodes, [num_train, num_train + num_val]), strict=True):
            mask[part] = True
    return masks


RANDOM_PROTOCOLS: dict[str, Sizes] = {
    "per-class-20-30": lambda size: (20, 30),
    "random-48-32-20": shares(0.48, 0.32),
    "random-60-20-20": shares(0.6, 0.2),
}
FINAL, ALL = "final", "all"
FINAL_PROTOCOLS: dict[str, Sizes] = {
    FINAL: lambda size: (max(1, round(0.9 * size)), size),
    ALL: lambda size: (size, 0),
}
"""Protocols without test nodes, for a model that will be used: `final` keeps a tenth of each class for validation, and
`all` trains on every labelled node, in a single split."""
PROTOCOLS = RANDOM_PROTOCOLS | FINAL_PROTOCOLS


def random_masks(y: ArrayLike, protocol: str, seed: int = 0, num_splits: int = 10) -> Masks:
    """Return masks [N, S] of a protocol. Split k depends on labels, seed and k, but not on `num_splits`.

    `all` has one split, whatever `num_splits`.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("random split protocol", protocol, PROTOCOLS)
    check_at_least(0, seed=seed)
    check_at_least(1, num_splits=num_splits)
    splits = [deal(y, PROTOCOLS[protocol], (seed, k)) for k in range(1 if protocol == ALL else num_splits)]
    return Masks.stack(splits)


def add_splits(data: Data, protocol: str = "random-60-20-20", seed: int = 0, num_splits: int = 10) -> Data:
    """Return a copy of `data` whose masks [N, S] are replaced by those of a random protocol."""
    split = data.clone()
    set_masks(split, random_masks(data.y.cpu(), protocol, seed, num_splits))
    split.protocol = protocol
    return split


def check_masks(data: Data) -> None:
    """Raise a `DataError` if a split of `data` cannot be used for training, validation and testing.

    The masks are bool [N] or [N, S]; those of validation and test may be empty or missing. Each class to be predicted
    needs a training node. The published splits of texas have classes without one: benchmarks are not checked.
    """
    data = with_all_masks(data)
    masks = [data[name] for name in MASKS]
    for name, mask in zip(MASKS, masks, strict=True):
        if mask.dtype != torch.bool or mask.dim() not in (1, 2) or len(mask) != len(data.y):
            wanted = f"[{len(data.y)}] or [{len(data.y)}, S]"
            raise DataError(f"{name} must be bool of shape {wanted}, not {mask.dtype} {list(mask.shape)}")
        if mask.shape != masks[0].shape:
            raise DataError(f"{name} has the shape {list(mask.shape)}, but train_mask has {list(masks[0].shape)}")
    columns = [by_split(mask.cpu()).unbind(1) for mask in masks]
    for k, (train, val, test) in enumerate(zip(*columns, strict=True)):
        _check_split(data, f"split {k}" if masks[0].dim() == 2 else "the split", train, val, test)


def by_split(mask: Tensor) -> Tensor:
    """A mask, or other values of the nodes, with a column for each split: [N] or [N, S] → [N, S]."""
    return mask[:, None] if mask.dim() == 1 else mask


def with_all_masks(data: Data) -> Data:
    """Return `data`, or a copy with empty masks in place of a missing `val_mask` or `test_mask`."""
    if data.get("train_mask") is None:
        raise DataError("this graph has no train_mask: give it train_mask, val_mask and test_mask, or a split protocol")
    missing = [name for name in MASKS if data.get(name) is None]
    return copy.copy(data).update({name: torch.zeros_like(data.train_mask) for name in missing}) if missing else data


def _check_split(data: Data, split: str, train: Tensor, val: Tensor, test: Tensor) -> None:
    y = data.y.cpu()
    overlap = int((train.int() + val.int() + test.int() > 1).sum())
    if overlap:
        raise DataError(
            f"{overlap} nodes are in more than one of the training, validation and test masks of {split}: use each once"
        )
    if not train.any():
        raise DataError(f"the training mask of {split} is empty: add nodes to it")
    unlabelled = ((train | val | test) & (y < 0)).nonzero().flatten()
    if len(unlabelled):
        raise DataError(
            f"{node_name(data, int(unlabelled[0]))} is in a mask of {split} but has no label{among(len(unlabelled))}:"
            " take it out of the mask"
        )
    absent = sorted(set(y[val | test].tolist()) - set(y[train].tolist()))
    if absent:
        name = class_name(data, absent[0])
        raise DataError(f"class {name} is to be predicted in {split} but has no training node there: add one")
    only = int(y[train][0])
    if (y[train] == only).all() and (y[y >= 0] != only).any():
        name = class_name(data, only)
        raise DataError(f"all training nodes of {split} are of class {name}: add nodes of another class")


def node_name(data: Data, node: int) -> str:
    """Return what messages call a node: its number, with its id if it has one."""
    ids = data.get("node_ids")
    return f"node {node}" if ids is None else f"node {node} ({ids[node]!r})"


def class_name(data: Data, number: int) -> str:
    """Return the number of a class, with its name if it has one."""
    names = data.get("class_names")
    return f"{number} ({names[number]!r})" if names else str(number)


def among(count: int) -> str:
    """Continue an error message about the first of `count` nodes with their number; nothing if it is the only one."""
    return f", the first of {count} such nodes" if count > 1 else ""
