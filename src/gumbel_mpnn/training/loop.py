"""The training loop: full batch or part by part, Adam, many replicas at once, best epoch chosen on validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training.build import matmul_precision
from gumbel_mpnn.training.task import Task
from gumbel_mpnn.training.trainer import Outcome, Trainer
from gumbel_mpnn.util.errors import DamagedError, DataWarning

REPORT_SECONDS = 0.2
CHECKPOINT_SECONDS = 30.0
"""Least time between two checkpoints and before the first one, since checkpoints of many replicas are large."""
CHECKPOINT_SHARE = 0.02
"""Largest share of the time that is spent on writing checkpoints."""


class Watcher(Protocol):
    """Called from time to time while a group of replicas is trained."""

    def __call__(self, epoch: int, best: float) -> None:
        """Report the number of epochs done and the mean of the replicas' best validation values."""


class Pruner(Protocol):
    """Decides at some epochs whether training goes on."""

    @property
    def epochs(self) -> Sequence[int]:
        """Epochs at which it is called, in ascending order."""

    def __call__(self, epoch: int, values: Mapping[Replica, float]) -> None:
        """Take the best validation value of each replica up to an epoch; raise an error to stop training."""


def train(
    task: Task,
    settings: Settings,
    replicas: Sequence[Replica],
    *,
    checkpoint: Path | None = None,
    watch: Watcher | None = None,
    resumed: Callable[[int], None] | None = None,
    pruner: Pruner | None = None,
) -> list[Outcome]:
    """Train all `replicas` of a setting together, continuing from `checkpoint` if the file exists.

    `resumed` is then called with the number of epochs that were done before. A damaged checkpoint is renamed, and
    training begins anew. A `pruner` stops training by an error; after a resumption, it is first called for the epochs
    that were done before.
    """
    with matmul_precision():
        trainer, spent = _begin(task, settings, replicas, checkpoint)
        clock = _Clock(spent)
        if resumed is not None and trainer.epoch:
            resumed(trainer.epoch)
        checks = [] if pruner is None else list(pruner.epochs)
        while trainer.epoch < settings.train.epochs and not trainer.stopped:
            while pruner is not None and checks and checks[0] <= trainer.epoch:
                pruner(checks[0], trainer.best_values(checks.pop(0)))
            trainer.step()
            if trainer.epoch % settings.train.eval_every == 0 or trainer.epoch == settings.train.epochs:
                trainer.evaluate()
            if watch is not None and clock.report_due():
                watch(trainer.epoch, trainer.mean_best())
            if checkpoint is not None and clock.checkpoint_due():
                trainer.save(checkpoint, clock.seconds())
                clock.checkpoint_written()
        if checkpoint is not None and checkpoint.exists():
            # Long training is not lost if the program is killed before the caller has stored the outcome.
            trainer.save(checkpoint, clock.seconds())
        return trainer.outcomes(clock.seconds())


def _begin(
    task: Task, settings: Settings, replicas: Sequence[Replica], checkpoint: Path | None
) -> tuple[Trainer, float]:
    """A trainer, which continues from the checkpoint if there is one, and the seconds spent until then."""
    if checkpoint is not None and checkpoint.exists():
        trainer = Trainer(task, settings, replicas)
        try:
            return trainer, trainer.load(checkpoint)
        except DamagedError as error:
            del trainer  # two of them may not fit into memory
            aside = checkpoint.with_name(f"{checkpoint.name}.damaged")
            checkpoint.replace(aside)
            warnings.warn(f"{error}; it is now called {aside.name}", DataWarning, stacklevel=4)
    return Trainer(task, settings, replicas), 0.0


class _Clock:
    """Decides when to report and when to write a checkpoint."""

    def __init__(self, spent: float) -> None:
        self.reported = self.written = time.monotonic()
        self.start = self.written - spent
        self.pause = CHECKPOINT_SECONDS

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def report_due(self) -> bool:
        due = time.monotonic() - self.reported >= REPORT_SECONDS
        if due:
            self.reported = time.monotonic()
        return due

    def checkpoint_due(self) -> bool:
        self.asked = time.monotonic()
        return self.asked - self.written >= self.pause

    def checkpoint_written(self) -> None:
        self.written = time.monotonic()
        self.pause = max(CHECKPOINT_SECONDS, (self.written - self.asked) / CHECKPOINT_SHARE)
