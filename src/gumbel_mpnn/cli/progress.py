"""Progress of training: a live line on a terminal, otherwise plain lines, always on standard error."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gumbel_mpnn.cli.live_line import LiveLine, StepLine
from gumbel_mpnn.config import Settings
from gumbel_mpnn.runs import Run


class ProgressMonitor:
    """Shows epochs done, the best validation result and the time left while `fit` trains.

    Args:
        show_test: Whether to show test results.
        preface: Message shown before the first setting.
    """

    def __init__(self, show_test: bool = True, preface: str = "") -> None:
        self.show_test, self.preface = show_test, preface
        self.console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self.line: LiveLine | StepLine | None = None
        self.done_epochs = self.total_epochs = self.group_epochs = 0
        self.title, self.waited = "", False

    def prepare(self, done: int, total: int) -> None:
        """Show the progress of SDRF."""
        if not isinstance(self.line, StepLine):
            self.line = StepLine("SDRF", self.console)
        self.line(done, total)

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Show how many runs of a setting are trained and how many were found finished."""
        self.close()
        self.title, self.waited = f"{settings.model} on {settings.dataset}", False
        if self.preface:
            self.say(self.preface)
            self.preface = ""
        missing = replicas - finished
        if not missing:
            self.say(f"{self.title}: all {replicas} runs were already finished")
            return
        parts = [f"{self.title}: {missing} runs"]
        if finished:
            parts.append(f"{finished} more already finished")
        if groups:
            parts.append(f"{groups} group{'s' if groups > 1 else ''}, about {_size(bytes_needed)} of memory")
        self.say(", ".join(parts))
        self.done_epochs = self.group_epochs = 0
        self.total_epochs = groups * settings.train.epochs
        self.started = time.monotonic()
        self.line = LiveLine(
            self.console,
            self.title,
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} epochs  best val {task.fields[best]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            total=self.total_epochs,
            best="–",
        )

    def group(self, replicas: int, epochs: int) -> None:
        """Start the next group of replicas."""
        self.done_epochs += self.group_epochs
        self.group_epochs = epochs

    def progress(self, epoch: int, best: float) -> None:
        """Show the progress of the current group."""
        if not isinstance(self.line, LiveLine):
            return
        done, total, best_val = self.done_epochs + epoch, self.total_epochs, f"{100 * best:.2f}"
        left = (time.monotonic() - self.started) * (total - done) / max(done, 1)
        plain = f"{self.title}: {done}/{total} epochs, best val {best_val}, about {left:.0f} s left"
        self.line.show(done, total, plain, best=best_val)

    def wait(self) -> None:
        """Report, once, that another process trains the remaining runs."""
        if not self.waited:
            self.say(f"{self.title}: waiting for another process that trains the remaining runs")
            self.waited = True

    def end(self, run: Run) -> None:
        """Show the results of a setting."""
        self.close()
        test = f"test {run.test}, " if self.show_test else ""
        self.say(f"{self.title}: {test}val {100 * run.val.mean:.2f}, {run.seconds:.1f} s of training")

    def close(self) -> None:
        """Remove the live line."""
        if self.line is not None:
            self.line.close()
            self.line = None

    def say(self, message: str) -> None:
        """Print a message, above the live line if there is one."""
        self.console.print(message, soft_wrap=True)


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if unit == "GiB" else f"{count // size} {unit}"
    return f"{count} B"
