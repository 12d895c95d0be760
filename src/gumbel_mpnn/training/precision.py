"""The number formats of a run: the same in training, in evaluation and in whatever is asked of a model later."""

from __future__ import annotations

import torch
from torch import Tensor

from gumbel_mpnn.config import Settings
from gumbel_mpnn.training.models import Model
from gumbel_mpnn.training.task import Task


def precision(settings: Settings, device: torch.device) -> torch.autocast:
    """Where activations are kept in 16 bits, if the settings say so."""
    wanted = settings.train.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted, cache_enabled=False)


def class_scores(model: Model, task: Task, settings: Settings) -> Tensor:
    """Scores of the classes for every node of the task, [R, N, C]."""
    with precision(settings, task.y.device):
        logits = model(task.features, task.graph)
    return task.class_scores(logits.to(task.features.dtype))
