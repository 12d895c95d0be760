"""A progress line on standard error: live on a terminal and in a notebook, otherwise a plain line every ten seconds."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

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


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, such as Jupyter's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def size(count: float) -> str:
    """Bytes in words, such as 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if count < 1024 or unit == "PiB":
            break
        count /= 1024
    return f"{count:,.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"


def duration(seconds: float) -> str:
    """Seconds in words, such as 12 ms or 3.5 h."""
    for unit, length in (("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= length * (2 if unit != "s" else 1):
            return f"{seconds / length:,.3g} {unit}" if seconds < 1000 * length else f"{seconds / length:,.0f} {unit}"
    return f"{1000 * seconds:.3g} ms"
