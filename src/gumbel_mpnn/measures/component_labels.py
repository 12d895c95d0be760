"""Training labels from the components of classes, found by an oracle or from training labels only."""

from __future__ import annotations

import copy
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.edges import class_count, labels_of
from gumbel_mpnn.measures.mixtures import Decomposition, decompose
from gumbel_mpnn.util.errors import DataError, unknown_name

Known = Literal["training", "all"]


def label_by_components(data: Data, known: Known = "training", **options: Any) -> Data:
    """Copy of `data` for training on the components of its classes; predictions are still evaluated on the classes `y`.

    Args:
        data: A graph with labels and `train_mask` [N] or [N, S].
        known: Which labels the decomposition may use. `training` decomposes each split separately, using only the
            labels of its training nodes. `all` is what the paper does; it is an oracle and not a method, because the
            component of a training node then reveals the labels of the test nodes around it.
        options: Options of `decompose`.

    Returns:
        A copy with `train_y` [N, S], the component of each training node (-1 if it has none), and `class_of` [Q], the
        class of each component. All splits share one numbering: a class has as many components as it has in the split
        with the most.
    """
    if known not in get_args(Known):
        raise unknown_name("set of known labels", known, get_args(Known))
    y = labels_of(data)
    masks = _train_masks(data, len(y))
    if known == "all":
        found = [decompose(data, **options)] * len(masks)
    else:
        _check_labelled(y, masks)
        found = [decompose(_with_labels(data, torch.where(training, y, -1)), **options) for training in masks]
    labelled = copy.copy(data)
    sizes = _largest_sizes(found, class_count(y))
    labels = torch.stack([_renumbered(one, y, sizes) for one in found])
    labelled.train_y = torch.where(masks, labels, -1).T.contiguous().to(data.y.device)
    labelled.class_of = torch.repeat_interleave(sizes).to(data.y.device)
    return labelled


def _train_masks(data: Data, num_nodes: int) -> Tensor:
    """Training nodes of each split, bool [S, N] on the CPU."""
    mask: Tensor | None = data.get("train_mask")
    if mask is None:
        raise DataError("this graph has no train_mask, which is needed to train on components")
    if mask.dtype != torch.bool or mask.dim() not in (1, 2) or len(mask) != num_nodes:
        form = f"{mask.dtype} {list(mask.shape)}"
        raise DataError(f"train_mask must be bool of shape [{num_nodes}] or [{num_nodes}, S], not {form}")
    return mask.cpu().reshape(num_nodes, -1).T


def _check_labelled(y: Tensor, masks: Tensor) -> None:
    """Raise a `DataError` that names the first split without labelled training nodes."""
    empty = ~(masks & (y >= 0)).any(1)
    if empty.any():
        raise DataError(
            f"split {int(empty.nonzero()[0])} of {len(masks)}, counted from 0, has no labelled training nodes:"
            " there is no class to decompose"
        )


def _with_labels(data: Data, y: Tensor) -> Data:
    masked = copy.copy(data)
    masked.y = y
    return masked


def _largest_sizes(found: list[Decomposition], num_classes: int) -> Tensor:
    """Maximum number of components of each class, [C]; 1 for a class without components."""
    sizes = torch.ones(num_classes, dtype=torch.int64)
    for one in found:
        counts = torch.tensor(one.num_components)
        sizes[: len(counts)] = torch.maximum(sizes[: len(counts)], counts)
    return sizes


def _renumbered(found: Decomposition, y: Tensor, sizes: Tensor) -> Tensor:
    """Pseudo labels [N] in the common numbering, where class c has `sizes[c]` labels."""
    own = torch.tensor(found.num_components)
    gap = (sizes.cumsum(0) - sizes)[: len(own)] - (own.cumsum(0) - own)
    known = found.pseudo_labels >= 0
    labels = found.pseudo_labels.clone()
    labels[known] += gap[y[known]]
    return labels
