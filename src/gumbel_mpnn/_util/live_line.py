"""A progress line on standard error: live on a terminal and in a notebook, otherwise a plain line every ten seconds."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from gumbel_mpnn._util.launch import in_notebook, on_terminal

PLAIN_LINE_SECONDS = 10.0


def plain_console() -> Console:
    """Console on standard error that prints text as it is, in a notebook as well."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, force_jupyter=False)


class LiveLine:
    """Progress line that is shown until it is closed; `fields` are further values for its columns."""

    def __init__(
        self, console: Console, title: str, *columns: ProgressColumn, total: int | None = None, **fields: Any
    ) -> None:
        self.console = console
        self.printed = time.monotonic()
        self.live: Progress | None = None
        # Rich would need ipywidgets for a live line in a notebook, while every notebook obeys a carriage return.
        self.rewrites, self.width = in_notebook() and not on_terminal(), 0
        if on_terminal():
            self.live = Progress(*columns, console=console, transient=True)
            self.task = self.live.add_task(title, total=total, **fields)
            self.live.start()

    def show(self, done: int, total: int, plain: str, **fields: Any) -> None:
        """Show that `done` of `total` steps are done; without a terminal, print the line `plain`."""
        if self.live is not None:
            self.live.update(self.task, completed=done, total=total, **fields)
        elif self.rewrites:
            self.console.file.write(f"\r{plain.ljust(self.width)}")
            self.console.file.flush()
            self.width = len(plain)
        elif time.monotonic() - self.printed > PLAIN_LINE_SECONDS:
            self.printed = time.monotonic()
            self.console.print(plain, soft_wrap=True)

    def clear(self) -> None:
        """Erase the line of a notebook, so that a message can take its place."""
        if self.width:
            self.console.file.write(f"\r{' ' * self.width}\r")
            self.width = 0

    def close(self) -> None:
        """Remove the live line."""
        self.clear()
        if self.live is not None:
            self.live.stop()
            self.live = None


class StepLine(LiveLine):
    """Progress line that is called with the number of steps done and the total number of steps."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        text = TextColumn("{task.description} {task.completed}/{task.total} steps")
        super().__init__(console or plain_console(), title, text, BarColumn(), TimeRemainingColumn())
        self.title = title
        self.first: tuple[float, int] | None = None
        """Time and number of steps of the first call; earlier time may have been spent on compilation."""

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps are done."""
        now = time.monotonic()
        if self.first is None and done:
            self.first = now, done
        start, before = self.first or (now, done)
        left = f", about {(now - start) * (total - done) / (done - before):.0f} s left" if done > before else ""
        self.show(done, total, f"{self.title}: {done}/{total} steps{left}")
