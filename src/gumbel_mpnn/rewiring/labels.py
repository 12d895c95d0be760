"""Labels that losses and regularizers are computed from: those of training nodes, and soft labels of all nodes.

The soft label ỹ of a training node is its one-hot label. That of any other node is the softmax prediction of the model,
or, as in the paper, the one-hot vector of the predicted class, which has no gradient. Predictions are detached by
default, so that a penalty acts on the edges only; else it could be minimized by predicting one class for all nodes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.graph import tensor_of
from gumbel_mpnn.graph.pair_graph import NO_WEIGHT
from gumbel_mpnn.nn.replica import total
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.util.errors import DataError, UserError
from gumbel_mpnn.util.tensors import TensorCache


def labels_of(data: Data, logits: Tensor, *, needed: bool = False) -> tuple[Tensor, Tensor]:
    """Labels int64 [N] and training mask [R, N] of `data`; nodes without a label (y below 0) are not in the mask.

    If labels are `needed`, a replica without any raises a `DataError`. Results are cached as long as the tensors are
    unchanged, since checking their values waits for the GPU.
    """
    replicas, nodes, classes = logits.shape
    for name in ("y", "train_mask"):
        value = tensor_of(data, name)
        if value is None:
            raise DataError(f"this loss uses the labels of training nodes, which this graph lacks: give it data.{name}")
        if value.shape[0] != nodes:
            raise DataError(f"data.{name} has {value.shape[0]} nodes, but the output has {nodes}: they must match")
    y, train_mask = data.y, data.train_mask
    labels, mask, some = _label_cache.get(
        train_mask, [train_mask, y], lambda: _labels(y, train_mask, replicas, nodes, classes), replicas, classes
    )
    if needed and not some:
        raise DataError("this loss needs training nodes with a label (data.y of 0 or more): data.train_mask has none")
    return labels, mask


def _labels(y: Tensor, train_mask: Tensor, replicas: int, nodes: int, classes: int) -> tuple[Tensor, Tensor, bool]:
    """Labels [N], mask [R, N], and whether every replica has a label."""
    if y.numel() != nodes or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise DataError(f"data.y must be whole numbers of shape [{nodes}], not {y.dtype} {list(y.shape)}")
    mask = by_split(train_mask.bool()).T
    if mask.shape[0] not in (1, replicas):
        raise UserError(
            f"data.train_mask has {mask.shape[0]} splits, but the output has {replicas} replicas: "
            "choose one split, train_mask[:, k], or one split per replica"
        )
    labels = y.reshape(nodes).long()
    mask = mask & (labels >= 0)
    if bool((mask & (labels >= classes)).any()):
        raise DataError(f"a training node has the label {int(labels.max())}, but the output has {classes} classes")
    return labels, mask.expand(replicas, nodes), bool(mask.any(-1).all())


_label_cache: TensorCache[tuple[Tensor, Tensor, bool]] = TensorCache()


def soft_labels(
    logits: Tensor,
    y: Tensor,
    train_mask: Tensor,
    dtype: torch.dtype,
    *,
    detach: bool = True,
    one_hot: bool = False,
) -> Tensor:
    """Soft labels ỹ, [R, N, C]: labels of training nodes and predictions of all other nodes."""
    logits = logits.detach() if detach else logits
    classes = torch.arange(logits.shape[-1], device=y.device)
    labels = y[:, None] == classes  # one_hot does not accept the -1 of unlabelled nodes
    predicted = (logits.argmax(-1, keepdim=True) == classes).to(dtype) if one_hot else logits.softmax(-1, dtype=dtype)
    return torch.where(train_mask[..., None], labels.to(dtype), predicted)


def confidence(logits: Tensor, train_mask: Tensor, dtype: torch.dtype, *, detach: bool = True) -> Tensor:
    """Confidence 1 − H(ỹ) / log C, [R, N]: 1 for training nodes, 0 if all classes are equally likely."""
    logits = logits.detach() if detach else logits
    log_predicted = logits.log_softmax(-1, dtype=dtype)
    entropy = -(log_predicted.exp() * log_predicted).sum(-1)  # a probability may underflow to 0, its logarithm does not
    share = entropy / math.log(max(logits.shape[-1], 2))
    return (1 - share).masked_fill(train_mask, 1.0)


def neighborhood_labels(labels: Tensor, graph: RewiredGraph) -> Tensor:
    """p̃, [R, N, C]: weighted mean of the soft labels of a node's neighbors and itself."""
    neighbors = graph.graph.propagate(labels, graph.weight)
    return (labels + neighbors) / (1 + weighted_degree(graph))[..., None]


def weighted_degree(graph: RewiredGraph) -> Tensor:
    """Sum of the weights of a node's (incoming) edges, as in the layers of a backbone, [R, N]."""
    degree = graph.graph.degree(graph.weight, graph.weight.dtype)
    return degree.expand(graph.weight.shape[0], -1)  # a graph without pairs has one row for all replicas


def disagreement(labels: Tensor, graph: RewiredGraph) -> Tensor:
    """Weighted mean of 1 − y_i · y_j over edges, [R], for soft labels [R, N, C]; 0 if there are no edges."""
    weight = graph.edge_weight
    apart = 1 - graph.graph.pair_scores(labels, labels)
    return total(weight * apart) / nonzero(total(weight))


def nonzero(summed: Tensor) -> Tensor:
    """Replace sums of weights that are 0 by 1, to divide by them."""
    return summed.masked_fill(~is_positive(summed), 1.0)


def is_positive(summed: Tensor) -> Tensor:
    """Whether a sum of weights is above 0, up to rounding."""
    return summed > NO_WEIGHT
