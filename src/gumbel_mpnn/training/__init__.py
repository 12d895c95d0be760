"""Training: tasks, metrics, the loop, checkpoints."""

from gumbel_mpnn.training.loop import Outcome, Watcher, build_model, train
from gumbel_mpnn.training.metrics import accuracy, metrics, roc_auc
from gumbel_mpnn.training.task import Replica, Task, data_hash

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
