"""The loss of classification, for every replica on its own nodes."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def cross_entropy(logits: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy over the nodes of each replica's mask: [R, N, C], [N], [R, N] → [R]."""
    labels = y.clamp(min=0).expand(logits.shape[:2])  # unlabelled nodes are in no mask
    each = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return (each * mask).sum(-1) / mask.sum(-1)
