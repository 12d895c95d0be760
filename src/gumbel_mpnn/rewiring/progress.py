"""One line on standard error that says how far a long rewiring is."""

from __future__ import annotations

import sys
import time

PLAIN_LINE_SECONDS = 10.0


class StepLine:
    """Called with steps done and all steps: a live line on a terminal, elsewhere a plain one every ten seconds."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.title = title
        self.console = Console(stderr=True, highlight=False)
        self.started = self.printed = time.monotonic()
        self.live: Progress | None = None
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description} {task.completed}/{task.total} steps"), BarColumn())
            self.live = Progress(*columns, TimeRemainingColumn(), console=self.console, transient=True)
            self.task = self.live.add_task(title, total=None)
            self.live.start()

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps are done."""
        if self.live is not None:
            self.live.update(self.task, completed=done, total=total)
        elif time.monotonic() - self.printed > PLAIN_LINE_SECONDS:
            self.printed = time.monotonic()
            left = (self.printed - self.started) * (total - done) / max(done, 1)
            self.console.print(f"{self.title}: {done}/{total} steps, about {left:.0f} s left", soft_wrap=True)

    def close(self) -> None:
        """Take the live line away."""
        if self.live is not None:
            self.live.stop()
            self.live = None
