"""The number formats of a run: the same in training, in evaluation and in whatever is asked of a model later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from gumbel_mpnn.config import Settings
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.training.task import Task


@contextmanager
def matmul_precision(settings: Settings) -> Iterator[None]:
    """Where matrices of float32 are multiplied on a GPU's tensor cores (TF32), if the settings say so."""
    switch = torch.backends.cuda.matmul
    before = switch.fp32_precision
    try:
        older = switch.allow_tf32
    except RuntimeError:  # torch refuses to say once its newer switch was used
        older = None
    switch.allow_tf32 = settings.train.tf32
    try:
        yield
    finally:
        if older is not None:
            switch.allow_tf32 = older
        switch.fp32_precision = before


def activation_precision(settings: Settings, device: torch.device) -> torch.autocast:
    """Where activations are kept in 16 bits, if the settings say so."""
    wanted = settings.train.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted, cache_enabled=False)


def class_scores(model: TrainableModel, task: Task, settings: Settings) -> Tensor:
    """Scores of the classes for every node of the task, [R, N, C]."""
    with matmul_precision(settings), activation_precision(settings, task.y.device):
        logits = model(task.features, task.graph)
    return task.class_scores(logits.to(task.features.dtype))


def pair_probability(model: TrainableModel, task: Task, settings: Settings) -> Tensor | None:
    """How likely every pair is to be an edge, [R, P]; None where the model learns no graph."""
    with matmul_precision(settings), activation_precision(settings, task.y.device):
        return model.pair_probability(task.features, task.graph)
