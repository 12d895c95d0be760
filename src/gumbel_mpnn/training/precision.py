"""Floating-point precision of a run, which is the same in training, evaluation and later predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from gumbel_mpnn.config import Settings
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.training.inputs import seen_by
from gumbel_mpnn.training.processes import ALONE, Processes
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


def class_scores(model: TrainableModel, task: Task, settings: Settings, processes: Processes = ALONE) -> Tensor:
    """Class scores of every node of the task, [R, N, C], part by part if it has parts."""
    if not task.parts:
        return task.class_scores(_logits(model, task, settings))
    found = (
        (part.nodes[part.own], _logits(model, part.task.to(task.device), settings).cpu()[:, part.own])
        for part in processes.share_of(task.parts)
    )
    return task.class_scores(_joined(found, len(task.y), processes))


def pair_probability(
    model: TrainableModel, task: Task, settings: Settings, processes: Processes = ALONE
) -> Tensor | None:
    """Probability of every pair to be an edge, [R, P]; None if the model does not learn a graph."""
    if not task.parts:
        return _probability(model, task, settings)
    found = []
    for part in processes.share_of(task.parts):
        learned = _probability(model, part.task.to(task.device), settings)
        if learned is None:
            return None
        found.append((part.pairs[part.own_pairs], learned.cpu()[:, part.own_pairs]))
    return _joined(found, task.graph.num_pairs, processes)


def _joined(found: Iterable[tuple[Tensor, Tensor]], size: int, processes: Processes) -> Tensor:
    """Values of all places, [R, size, ...], from places [n] and their values [R, n, ...]."""
    whole = None
    for places, values in found:
        if whole is None:
            whole = values.new_zeros(len(values), size, *values.shape[2:])
        whole[:, places] = values
    assert whole is not None
    processes.add_up(whole)
    return whole


def _logits(model: TrainableModel, task: Task, settings: Settings) -> Tensor:
    task = seen_by(model, task)
    with matmul_precision(settings), activation_precision(settings, task.features.device):
        logits: Tensor = model(task.features, task.graph)
    return logits.to(task.features.dtype)


def _probability(model: TrainableModel, task: Task, settings: Settings) -> Tensor | None:
    task = seen_by(model, task)
    with matmul_precision(settings), activation_precision(settings, task.features.device):
        return model.pair_probability(task.features, task.graph)
