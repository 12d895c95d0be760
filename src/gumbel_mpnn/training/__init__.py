"""Training: tasks, metrics, the loop, checkpoints."""

from gumbel_mpnn.training.loop import Watcher, train
from gumbel_mpnn.training.metrics import accuracy, metrics, roc_auc
from gumbel_mpnn.training.task import Replica, Task, data_hash
from gumbel_mpnn.training.trainer import Outcome, build_model

__all__ = [
    "Outcome",
    "Replica",
    "Task",
    "Watcher",
    "accuracy",
    "build_model",
    "data_hash",
    "metrics",
    "roc_auc",
    "train",
]
