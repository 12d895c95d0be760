"""How long work is shown: one live line on a terminal, plain lines elsewhere, always on standard error."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gumbel_mpnn.config import Settings
from gumbel_mpnn.runs import Run

PLAIN_LINE_SECONDS = 10.0


class ProgressMonitor:
    """Shows what is done, the best validation value and the time left while `fit` works."""

    def __init__(self, show_test: bool = True, preface: str = "") -> None:
        self.show_test, self.preface = show_test, preface
        self.console = Console(stderr=True, highlight=False)
        self.live: Progress | None = None
        self.done_epochs = self.total_epochs = self.group_epochs = 0
        self.title, self.waited = "", False

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Training of one setting begins."""
        self.title, self.waited = f"{settings.model} on {settings.dataset}", False
        if self.preface:
            self._say(self.preface)
            self.preface = ""
        missing = replicas - finished
        if not missing:
            self._say(f"{self.title}: all {replicas} runs found finished")
            return
        parts = [f"{self.title}: {missing} runs"]
        if finished:
            parts.append(f"{finished} more found finished")
        if groups:
            parts.append(f"{groups} group{'s' if groups > 1 else ''}, about {_size(bytes_needed)} of memory")
        self._say(", ".join(parts))
        self.done_epochs = self.group_epochs = 0
        self.total_epochs = groups * settings.train.epochs
        self.started = self.printed = time.monotonic()
        if sys.stderr.isatty():
            self.live = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} epochs  best val {task.fields[best]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self.task = self.live.add_task(self.title, total=self.total_epochs, best="–")
            self.live.start()

    def group(self, replicas: int, epochs: int) -> None:
        """The next group of replicas begins."""
        self.done_epochs += self.group_epochs
        self.group_epochs = epochs

    def progress(self, epoch: int, best: float) -> None:
        """Show how far the group is."""
        done = self.done_epochs + epoch
        if self.live is not None:
            self.live.update(self.task, completed=done, best=f"{100 * best:.2f}")
        elif time.monotonic() - self.printed > PLAIN_LINE_SECONDS:
            self.printed = time.monotonic()
            left = (self.printed - self.started) * (self.total_epochs - done) / max(done, 1)
            self._say(
                f"{self.title}: {done}/{self.total_epochs} epochs, best val {100 * best:.2f}, about {left:.0f} s left"
            )

    def wait(self) -> None:
        """Say that another process is at work."""
        if not self.waited:
            self._say(f"{self.title}: another process trains the rest, waiting for it")
            self.waited = True

    def end(self, run: Run) -> None:
        """All replicas are done."""
        self.close()
        test = f"test {run.test}, " if self.show_test else ""
        self._say(f"{self.title}: {test}val {100 * run.val.mean:.2f}, {run.seconds:.1f} s of training")

    def close(self) -> None:
        """Take the live line away."""
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _say(self, message: str) -> None:
        self.console.print(message, soft_wrap=True)


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if unit == "GiB" else f"{count // size} {unit}"
    return f"{count} B"
