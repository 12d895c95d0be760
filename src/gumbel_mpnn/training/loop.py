"""The training loop: full batch or part by part, Adam, many replicas at once, best epoch chosen on validation."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol

from gumbel_mpnn._util.errors import DamagedError, DataWarning
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.training.precision import matmul_precision
from gumbel_mpnn.training.processes import LostProcessError, Processes
from gumbel_mpnn.training.task import Task
from gumbel_mpnn.training.trainer import Outcome, Trainer

REPORT_SECONDS = 0.2
CHECKPOINT_SECONDS = 30.0
"""Least time between two checkpoints and before the first one, since checkpoints of many replicas are large."""
CHECKPOINT_SHARE = 0.02
"""Largest share of the time that is spent on writing checkpoints."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Watcher(Protocol):
    """Called from time to time while a group of replicas is trained."""

    def __call__(self, epoch: int, best: float) -> None:
        """Report the number of epochs done and the mean of the replicas' best validation values."""


class Judge(Protocol):
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
    judge: Judge | None = None,
) -> list[Outcome]:
    """Train all `replicas` of a setting together, continuing from `checkpoint` if the file exists.

    `resumed` is then called with the number of epochs that were done before. Ctrl-C and SIGTERM take effect at the end
    of an epoch, when the checkpoint is written. A damaged checkpoint is renamed, and training begins anew. A `judge`
    stops training by an error; after a resumption, it is first called for the epochs that were done before.
    """
    processes = Processes.of(settings)
    with matmul_precision(settings):
        trainer, spent = _begin(task, settings, replicas, checkpoint, processes)
        checkpoint = checkpoint if processes.is_first else None  # the others read it only
        clock = _Clock(spent)
        if resumed is not None and trainer.epoch:
            resumed(trainer.epoch)
        interrupted = False
        judged = [] if judge is None else list(judge.epochs)
        with HeldBack() as signals:
            while trainer.epoch < settings.train.epochs and not trainer.stopped:
                while judge is not None and judged and judged[0] <= trainer.epoch:
                    judge(judged[0], trainer.best_values(judged.pop(0)))
                trainer.step()
                if trainer.epoch % settings.train.eval_every == 0 or trainer.epoch == settings.train.epochs:
                    trainer.evaluate()
                if watch is not None and clock.report_due():
                    watch(trainer.epoch, trainer.mean_best())
                interrupted = processes.any(signals.received is not None)
                if checkpoint is not None and (clock.checkpoint_due() or interrupted):
                    trainer.save(checkpoint, clock.seconds())
                    clock.checkpoint_written()
                if interrupted:
                    break
        if interrupted:  # this process was not: its signal would have taken effect at the end of the block
            raise LostProcessError("another process of this job was interrupted: repeat the command to continue")
        if checkpoint is not None and checkpoint.exists():
            # Long training is not lost if the program is killed before the caller has stored the outcome.
            trainer.save(checkpoint, clock.seconds())
        return trainer.outcomes(clock.seconds())


def _begin(
    task: Task, settings: Settings, replicas: Sequence[Replica], checkpoint: Path | None, processes: Processes
) -> tuple[Trainer, float]:
    """Return a trainer, which continues from the checkpoint if there is one, and the seconds spent until then.

    The first process decides; the others follow it.
    """
    if processes.is_first:
        trainer, spent = _continued(task, settings, replicas, checkpoint)
        processes.any(trainer.epoch > 0)
        return trainer, spent
    trainer = Trainer(task, settings, replicas)
    continued = processes.any(False)
    return trainer, trainer.load(checkpoint) if continued and checkpoint is not None else 0.0


def _continued(
    task: Task, settings: Settings, replicas: Sequence[Replica], checkpoint: Path | None
) -> tuple[Trainer, float]:
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


class HeldBack:
    """Holds back the first Ctrl-C or SIGTERM within the block, and sends it again at the end of the block.

    A second signal takes effect at once. Only the main thread can do this; in other threads, and for signals that the
    program ignores or handles in a way of its own, nothing is changed.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._former: dict[int, Any] = {}

    def __enter__(self) -> HeldBack:
        """Begin to hold back signals."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send a signal that was held back again."""
        self._restore()
        if self.received is not None and error is None:
            signal.raise_signal(self.received)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.received = number

    def _restore(self) -> None:
        while self._former:
            signal.signal(*self._former.popitem())
