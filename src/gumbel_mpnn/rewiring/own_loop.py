"""For training loops of the user's own: labels of the data, and warnings about parts that get no gradient."""

from __future__ import annotations

import sys
import warnings
from itertools import count
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.graph import tensor_of
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from gumbel_mpnn.util.tensors import TensorCache

PROBES = 2
"""Gradients of 0 are judged at the second training call: a layer that starts with zeros has none before it."""


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


def can_look() -> bool:
    """Whether this call may be looked at: not while it is compiled or captured, nor if gradients are off."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    return not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())


def warn(message: str) -> None:
    """Warn with the line of the user's code that called the model, after frames of torch and of this package."""
    own = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    level = next(level for level in count(1) if not sys._getframe(level).f_code.co_filename.startswith(own))
    warnings.warn(message, DataWarning, stacklevel=level + 1)


class ReactionCheck:
    """Warns once if the output of a wrapped model does not depend on the weights of the edges."""

    def __init__(self) -> None:
        self.probes_left = PROBES

    def __call__(self, out: Tensor, weight: Tensor, model: nn.Module) -> None:
        """Compute the gradient of `out` to `weight` in the first training calls. No random number is drawn."""
        if not self.probes_left or not can_look() or not weight.requires_grad or not len(weight):
            return
        gradient: Tensor | None = None
        if out.requires_grad:
            # Every entry has another factor, because plain sums of normalized outputs are constant.
            factors = torch.linspace(1, 2, out.numel(), dtype=out.dtype, device=out.device).view(out.shape)
            try:
                (gradient,) = torch.autograd.grad(out, weight, factors, retain_graph=True, allow_unused=True)
            except RuntimeError:  # compiled models and checkpoints may allow one backward pass only
                self.probes_left = 0
                return
        if gradient is not None and gradient.any():
            self.probes_left = 0
            return
        self.probes_left = 0 if gradient is None else self.probes_left - 1
        if not self.probes_left:
            warn(
                f"the output of {type(model).__name__} does not react to edge_weight, so no edge can be learned: pass"
                " edge_weight on to every layer, and use layers that weigh edges, such as PyG's GCNConv or GraphConv"
                " (its SAGEConv, GINConv and GATConv ignore or refuse edge_weight), or use"
                ' gm.GumbelMPNN(backbone="sage")'
            )


class BeliefCheck:
    """Warns once if scores are trained but the head that predicts the class beliefs behind them is not."""

    def __init__(self) -> None:
        self.decided = self.scores_were_trained = False

    def __call__(self, theta: Tensor, head: nn.Module | None, scorer: str) -> None:
        """Look at the training calls until it is clear whether the head is trained."""
        if self.decided or not can_look():
            return
        learned = [] if head is None else [parameter for parameter in head.parameters() if parameter.requires_grad]
        if not learned or any(parameter.grad is not None for parameter in learned):
            self.decided = True
        elif self.scores_were_trained:
            self.decided = True
            warn(
                f"the scorer {scorer!r} compares class beliefs, but nothing trains the head that predicts them: add"
                ' model.auxiliary_loss(data) to your loss, or use scorer="bilinear"'
            )
        elif theta.requires_grad:
            theta.register_hook(self._score_was_trained)

    def trained(self) -> None:
        """Note that the head is trained: `auxiliary_loss` was called."""
        if not torch.compiler.is_compiling():
            self.decided = True

    def _score_was_trained(self, _: Tensor) -> None:
        self.scores_were_trained = True
