"""Training: tasks, metrics, the training loop and checkpoints."""

from gumbel_mpnn.nn import models
from gumbel_mpnn.training.build import build_model, pick_device, prepare
from gumbel_mpnn.training.metrics import (
    accuracy,
    average_precision,
    balanced_accuracy,
    macro_f1,
    metrics,
    roc_auc,
)
from gumbel_mpnn.training.task import Task, data_hash
from gumbel_mpnn.training.trainer import Outcome, train

__all__ = [
    "Outcome",
    "Task",
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "build_model",
    "data_hash",
    "macro_f1",
    "metrics",
    "models",
    "pick_device",
    "prepare",
    "roc_auc",
    "train",
]
