"""Progress of tasks: each reports to a board, an actor of the cluster, which the calling process reads."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import RayError

if TYPE_CHECKING:
    from gumbel_mpnn.runs.fitting import Monitor
    from gumbel_mpnn.settings import Settings

REPORT_SECONDS = 1.0
"""Least time between two reports of a task."""
READ_SECONDS = 5.0
"""Time that the board has to answer; without an answer, progress is shown when a task ends."""

Progress = tuple[float, float]
"""Share of the epochs that are done, and mean best validation value."""


class Board:
    """An actor that remembers the latest report of each task, by setting."""

    def __init__(self) -> None:
        self.reports: dict[str, dict[int, Progress]] = {}

    def write(self, setting: str, task: int, progress: Progress) -> None:
        """Replace the report of a task."""
        self.reports.setdefault(setting, {})[task] = progress

    def read(self, setting: str) -> dict[int, Progress]:
        """Latest report of each task of a setting."""
        return self.reports.get(setting, {})

    def wipe(self, setting: str) -> None:
        """Forget a setting."""
        self.reports.pop(setting, None)


class Reporter:
    """The monitor of a task, which writes to the board."""

    def __init__(self, board: Any, setting: str, task: int) -> None:
        self.board, self.setting, self.task = board, setting, task
        self.groups, self.begun, self.epochs, self.reported = 1, 0, 1, 0.0

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Remember the number of groups into which the memory of the machine divides the task."""
        self.groups = max(1, groups)

    def group(self, replicas: int, epochs: int) -> None:
        """Count the groups."""
        self.begun, self.epochs = self.begun + 1, epochs

    def progress(self, epoch: int, best: float) -> None:
        """Report the share that is done; nobody waits for it."""
        if time.monotonic() - self.reported >= REPORT_SECONDS:
            self.reported = time.monotonic()
            share = min(1.0, (self.begun - 1 + epoch / self.epochs) / self.groups)
            self.board.write.remote(self.setting, self.task, (share, best))

    def _ignore(self, *_: Any, **__: Any) -> None:
        """The calling process follows rungs and ends by itself, and nothing else is reported."""

    prepare = resume = rung = wait = end = _ignore


class Follower:
    """Tells a monitor of the calling process how far all tasks of a setting are, as if they were one group."""

    def __init__(self, monitor: Monitor, board: Any, epochs: int, tasks: int, replicas: int) -> None:
        self.monitor, self.board, self.epochs, self.tasks = monitor, board, epochs, max(1, tasks)
        self.setting, self.known, self.shown = uuid.uuid4().hex, dict[int, Progress](), 0.0
        monitor.group(replicas, epochs * self.tasks)

    def reporter(self, task: int) -> Reporter:
        """Monitor for a task."""
        return Reporter(self.board, self.setting, task)

    def __call__(self) -> None:
        """Read the board."""
        with suppress(RayError):
            reports = ray.get(self.board.read.remote(self.setting), timeout=READ_SECONDS)
            ended = {task: progress for task, progress in self.known.items() if progress[0] == 1}
            self._show(reports | ended)

    def ended(self, task: int, best: float) -> None:
        """A task has ended."""
        self._show(self.known | {task: (1.0, best)})

    def close(self) -> None:
        """Let the board forget the setting."""
        with suppress(RayError):
            self.board.wipe.remote(self.setting)

    def _show(self, known: dict[int, Progress]) -> None:
        self.known = known
        done = sum(share for share, _ in known.values())
        if done > self.shown:  # a task that is tried again may be behind
            self.shown = done
            values = [best for _, best in known.values()]
            self.monitor.progress(round(min(done, self.tasks) * self.epochs), sum(values) / len(values))
