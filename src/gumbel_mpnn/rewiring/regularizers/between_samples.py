"""Agreement: the predictions on several sampled graphs are the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError


def agreement(outputs: Sequence[Tensor], *, temperature: float = 0.5) -> Tensor:
    """Mean over samples s and all nodes of ‖softmax(z_s) − t‖², t the sharpened mean prediction; 0 where all agree.

    t ∝ (mean over s of softmax(z_s))^(1/T) is a target: no gradient flows into it. The squared distance is at most 2
    for each node, so that a node on which one graph misleads the model does not outweigh the rest, as it would with
    KL, which grows without bound. Unlike a `Regularizer` it looks at no graph but at several outputs side by side, and
    it is meant to move the classifier: `loss = loss + 0.5 * agreement([model(data), model(data)])`.

    Args:
        outputs: What the model gives (logits z_s) on two or more graphs, drawn one after the other, each [N, C] or,
            with an axis of replicas, [R, N, C].
        temperature: T, above 0; below 1 the target is sharper than the mean prediction, at 1 it is the mean.

    Returns:
        One value for each replica, [R]; a scalar where the outputs have no axis of replicas.
    """
    if not temperature > 0:
        raise UserError(f"the temperature of the agreement must be above 0, but is {temperature}")
    if isinstance(outputs, Tensor):  # its first axis may be that of the replicas, which are not to agree
        raise UserError(f"agreement takes a list of two or more outputs, not a tensor of shape {list(outputs.shape)}")
    shapes = {tuple(output.shape) for output in outputs}
    if len(outputs) < 2 or len(shapes) > 1 or any(len(shape) not in (2, 3) for shape in shapes):
        given = ", ".join(str(list(output.shape)) for output in outputs) or "none"
        raise UserError(f"agreement takes two or more outputs, all [N, C] or all [R, N, C], but was given {given}")
    logits = torch.stack(list(outputs))
    log_predicted = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    mean = log_predicted.detach().logsumexp(0) - math.log(len(outputs))
    target = (mean / temperature).softmax(-1)
    return (log_predicted.exp() - target).square().sum(-1).mean((0, -1))
