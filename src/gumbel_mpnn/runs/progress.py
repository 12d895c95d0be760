"""Progress of training on standard error: a live line on a terminal, otherwise a plain line now and then."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gumbel_mpnn.util.errors import counted

if TYPE_CHECKING:
    from gumbel_mpnn.runs.run import Run

PLAIN_LINE_SECONDS = 10.0


class Monitor:
    """Shows what is done, the best validation value and the time left, and a line for every setting that is finished.

    With a `label`, such as that of a trial, this takes the place of all lines but the live one. If `quiet`, nothing is
    shown.
    """

    def __init__(self, quiet: bool = True, show_test: bool = True) -> None:
        self.quiet, self.show_test, self.label = quiet, show_test, ""
        # In a notebook, text is printed as it is.
        self.console = Console(stderr=True, highlight=False, markup=False, emoji=False, force_jupyter=False)
        self.title, self.round = "", ""
        self.titles, self.missing = list[str](), list[int]()
        self.done, self.found = dict[tuple[int, str], float](), 0.0
        """Work of each group, in runs, and how much of it was found in checkpoints."""
        self.started = self.printed = time.monotonic()
        self.live: Progress | None = None
        self.waited = False

    def begin(self, titles: Sequence[str], missing: Sequence[int], finished: Sequence[int], round: str = "") -> None:
        """One setting, or the rungs of a round of `auto`: say how many runs are trained, and how many were finished."""
        self.title, self.round = round or titles[0], round
        self.titles, self.missing = list(titles), list(missing)
        self.done, self.found, self.waited = {}, 0.0, False
        self.started = self.printed = time.monotonic()
        total, count = sum(missing), sum(finished)
        rungs = f"{counted(len(missing), 'rung')}, " * bool(round)
        also = f", {count} more already finished" if count and not round else ""
        if self.label:
            return
        if total:
            self.say(f"{self.title}: {rungs}{counted(total, 'run')}{also}")
        else:
            self.say(f"{self.title}: {f'all {count} runs were' if count > 1 else 'the run was'} already finished")

    def prepare(self, done: int, total: int) -> None:
        """So many steps of SDRF are done: show them."""
        self._show(f"SDRF: {done}/{total} steps", done / max(total, 1))

    def memory(self, size: int) -> None:
        """Training of a group begins: say how much memory it needs, if it is of a single setting."""
        if not (self.round or self.label or self.done):
            self.say(f"{self.title}: at most {decimal(size)} of memory")

    def resume(self, setting: int, group: str, epoch: int, runs: float) -> None:
        """A group continues at an epoch, which is as much work as so many runs: its time is not counted."""
        self.found += runs
        self.done[setting, group] = runs
        self.say(f"{self.titles[setting]}: continuing at epoch {epoch + 1}")

    def progress(self, setting: int, group: str, runs: float, best: float) -> None:
        """A group has done as much as so many runs: show how far all is, its best validation value, the time left."""
        self.done[setting, group] = runs
        done, total = sum(self.done.values()), sum(self.missing)
        val = f"best val {100 * best:.2f}" if math.isfinite(best) else "no val"  # no nodes, or no epoch that counts yet
        ends = ""
        if done > self.found:
            seconds = (time.monotonic() - self.started) * (total - done) / (done - self.found)
            ends = f", about {in_time(seconds)} left"
        self._show(f"{self.label or self.title}: {val}{ends}", done / total if total else 1.0)

    def wait(self) -> None:
        """Other processes train all missing runs: say so, once."""
        if not self.waited:
            self.say(f"{self.title}: waiting for another process that trains the remaining runs")
            self.waited = True

    def end(self, setting: int, run: Run) -> None:
        """All runs of a setting are finished: show the results."""
        self.close()
        test = f"test {run.test}, " if self.show_test and not self.round and run.test.n else ""
        val = f"val {100 * run.val.mean:.2f}, " if run.val.n else ""
        if not self.label and (self.missing[setting] or not self.round):
            self.say(f"{self.titles[setting]}: {test}{val}{run.seconds:.1f} s of training")

    def say(self, message: str) -> None:
        """Print a message, above the live line if there is one."""
        if not self.quiet:
            self.console.print(message, soft_wrap=True)

    def close(self) -> None:
        """Nothing more will be told: remove the live line."""
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _show(self, text: str, share: float) -> None:
        """Show a live line with a bar on a terminal, else a plain line now and then."""
        if not self.quiet and on_terminal():
            if self.live is None:
                columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
                self.live = Progress(*columns, console=self.console, transient=True)
                self.live.add_task("", total=1.0)
                self.live.start()
            self.live.update(self.live.task_ids[0], completed=share, description=text)
        elif time.monotonic() - self.printed > PLAIN_LINE_SECONDS:
            self.printed = time.monotonic()
            self.say(f"{text} ({100 * share:.0f} % done)")


def is_watched() -> bool:
    """Whether somebody reads standard error as it is written, on a terminal or in a notebook."""
    return on_terminal() or Console().is_jupyter


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def in_time(seconds: float) -> str:
    """A time in words, such as 90 s or 12 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
