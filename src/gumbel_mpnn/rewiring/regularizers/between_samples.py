"""Agreement between the predictions on several sampled graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.nn.each_replica import total


def agreement(outputs: Sequence[Tensor], *, temperature: float = 0.5) -> Tensor:
    """Mean over samples s and all nodes of ‖softmax(z_s) − t‖², where t is the sharpened mean prediction.

    The target t ∝ (mean over s of softmax(z_s))^(1/T) receives no gradient. The squared distance is at most 2 per node,
    so a node that one graph misleads does not outweigh the others, as it would with the unbounded KL divergence. Unlike
    a `Regularizer`, agreement compares several outputs and acts on the classifier:
    `loss = loss + 0.5 * agreement([model(data), model(data)])`.

    Args:
        outputs: Logits z_s of two or more calls of the model, each [N, C] or [R, N, C].
        temperature: T, above 0; below 1 the target is sharper than the mean prediction, at 1 it is the mean prediction.

    Returns:
        One value per replica, [R]; a scalar if the outputs have no replica axis. It is 0 if all outputs agree.
    """
    if not temperature > 0:
        raise UserError(f"the temperature of the agreement must be above 0, but is {temperature}")
    if isinstance(outputs, Tensor):  # its first axis may be the replica axis, and replicas need not agree
        raise UserError(f"agreement takes a list of two or more outputs, not a tensor of shape {list(outputs.shape)}")
    shapes = {tuple(output.shape) for output in outputs}
    if len(outputs) < 2 or len(shapes) > 1 or any(len(shape) not in (2, 3) for shape in shapes):
        given = ", ".join(str(list(output.shape)) for output in outputs) or "none"
        raise UserError(f"agreement takes two or more outputs, all [N, C] or all [R, N, C], but was given {given}")
    logits = torch.stack(list(outputs))
    log_predicted = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    mean = log_predicted.detach().logsumexp(0) - math.log(len(outputs))
    target = (mean / temperature).softmax(-1)
    apart = (log_predicted.exp() - target).square().sum(-1)
    return total(total(apart).movedim(0, -1)) / len(outputs) / apart.shape[-1]
