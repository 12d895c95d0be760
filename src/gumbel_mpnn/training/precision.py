"""Floating-point precision of a run, which is the same in training, evaluation and later predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from gumbel_mpnn.config import Settings
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.training.inputs import seen_by
from gumbel_mpnn.training.task import Task


@contextmanager
def matmul_precision(settings: Settings) -> Iterator[None]:
    """Allow or forbid TF32 in matrix products on a GPU, depending on the settings."""
    switch = torch.backends.cuda.matmul
    before = switch.fp32_precision
    try:
        older = switch.allow_tf32
    except RuntimeError:  # torch raises this once its newer switch has been used
        older = None
    switch.allow_tf32 = settings.train.tf32
    try:
        yield
    finally:
        if older is not None:
            switch.allow_tf32 = older
        switch.fp32_precision = before


def activation_precision(settings: Settings, device: torch.device) -> torch.autocast:
    """Store activations in 16 bits, if the settings ask for it."""
    wanted = settings.train.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted, cache_enabled=False)


def class_scores(model: TrainableModel, task: Task, settings: Settings) -> Tensor:
    """Class scores of every node of the task, [R, N, C]."""
    task = seen_by(model, task)
    with matmul_precision(settings), activation_precision(settings, task.y.device):
        logits = model(task.features, task.graph)
    return task.class_scores(logits.to(task.features.dtype))


def pair_probability(model: TrainableModel, task: Task, settings: Settings) -> Tensor | None:
    """Probability of every pair to be an edge, [R, P]; None if the model does not learn a graph."""
    task = seen_by(model, task)
    with matmul_precision(settings), activation_precision(settings, task.y.device):
        return model.pair_probability(task.features, task.graph)
