"""Progress of training on standard error: live on a terminal and in a notebook, otherwise a plain line now and then."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gumbel_mpnn.util.errors import counted

if TYPE_CHECKING:
    from gumbel_mpnn.runs.run import Run

PLAIN_LINE_SECONDS = 10.0


@dataclass(frozen=True)
class Stage:
    """What is trained side by side: one setting, or the rungs of a round of `auto`."""

    name: str = ""
    """Such as `round 1 of 3`; empty for a single setting."""
    titles: Sequence[str] = ()
    """Names of the settings; those of model and data set by default."""
    costs: Sequence[float] = ()
    """Time of a run of each setting, compared with the others; the same for all by default."""
    ahead: float = 0.0
    """Cost of the stages that follow, at most."""


class Monitor:
    """Told of training as it goes on; this one does nothing."""

    def begin(self, stage: Stage, missing: Sequence[int], finished: Sequence[int]) -> None:
        """A stage begins, with numbers of runs of every setting; those that are finished need no training."""

    def prepare(self, done: int, total: int) -> None:
        """So many steps of SDRF are done."""

    def memory(self, size: int) -> None:
        """Training of a group begins, which needs at most so many bytes."""

    def resume(self, setting: int, group: str, epoch: int, runs: float) -> None:
        """A group continues from a checkpoint at an epoch, which is as much work as so many runs."""

    def progress(self, setting: int, group: str, runs: float, best: float) -> None:
        """A group of a setting of the stage has done as much as so many runs; `best` is its best validation value."""

    def wait(self) -> None:
        """Other processes train all missing runs, and this one waits for them."""

    def end(self, setting: int, run: Run) -> None:
        """All runs of a setting of the stage are finished."""

    def close(self) -> None:
        """Nothing more will be told."""


class ProgressMonitor(Monitor):
    """Shows what is done, the best validation value and the time left, and a line for every setting that is finished.

    `preface` and `warning` come first, the warning even if `quiet`. With a `label`, such as that of a trial, this takes
    the place of all lines but the live one.
    """

    def __init__(self, show_test: bool = True, preface: str = "", warning: str = "", quiet: bool = False) -> None:
        self.show_test, self.quiet, self.label = show_test, quiet, ""
        self.preface, self.warning = preface, warning
        # In a notebook too, text is printed as it is.
        self.console = Console(stderr=True, highlight=False, markup=False, emoji=False, force_jupyter=False)
        self.stage, self.missing, self.titles, self.costs = Stage(), list[int](), list[str](), list[float]()
        self.done: dict[tuple[int, str], float] = {}
        """Work of each group of this stage, in runs."""
        self.started, self.before, self.found = time.monotonic(), 0.0, 0.0
        """When the first stage began, the cost of the stages before this one, and of what was found in checkpoints."""
        self.live: Progress | None = None
        self.width, self.printed, self.waited = 0, time.monotonic(), False

    def begin(self, stage: Stage, missing: Sequence[int], finished: Sequence[int]) -> None:
        """Say how many runs are trained, and how many were found finished."""
        self.before = self.before + self._cost() if self.stage.ahead else 0.0
        if not self.before:
            self.started, self.found = time.monotonic(), 0.0
        self.stage, self.missing, self.titles = stage, list(missing), list(stage.titles)
        self.costs = list(stage.costs) or [1.0] * len(missing)
        self.done, self.waited, self.printed = {}, False, time.monotonic()
        if self.preface:
            self.say(self.preface)
        if self.warning:
            self.console.print(f"warning: {self.warning}", soft_wrap=True)
        self.preface = self.warning = ""
        title, total = stage.name or self.titles[0], sum(missing)
        also = f", {sum(finished)} more already finished" if any(finished) and not self.before else ""
        if self.label:
            return
        if not total:
            count = sum(finished)
            self.say(f"{title}: {f'all {count} runs were' if count > 1 else 'the run was'} already finished")
            return
        rungs = f"{counted(len(missing), 'rung')}, " * bool(stage.name)
        self.say(f"{title}: {rungs}{counted(total, 'run')}{also}")

    def prepare(self, done: int, total: int) -> None:
        """Show the progress of SDRF."""
        self._show(f"SDRF: {done}/{total} steps", done / max(total, 1))

    def memory(self, size: int) -> None:
        """Say how much memory a group needs, in a stage of one setting."""
        if not (self.stage.name or self.label or self.done):
            self.say(f"{self.titles[0]}: at most {in_bytes(size)} of memory")

    def resume(self, setting: int, group: str, epoch: int, runs: float) -> None:
        """Say that an earlier process did the first epochs of a group, and do not count its time."""
        self.found += self.costs[setting] * runs
        self.done[setting, group] = runs
        self.say(f"{self.titles[setting]}: continuing at epoch {epoch + 1}")

    def progress(self, setting: int, group: str, runs: float, best: float) -> None:
        """Show how far the whole work is, and the time that is left."""
        self.done[setting, group] = runs
        title = self.label or self.stage.name or self.titles[0]
        of_stage = sum(self.costs[k] * part for (k, _), part in self.done.items())
        done, left = self.before + of_stage, self.stage.ahead + self._cost() - of_stage
        val = f"best val {100 * best:.2f}" if math.isfinite(best) else "no val"  # no nodes, or no epoch that counts yet
        seconds = (time.monotonic() - self.started) * left / (done - self.found) if done > self.found else math.inf
        ends = f", about {in_time(seconds)} left" if math.isfinite(seconds) else ""
        self._show(f"{title}: {val}{ends}", done / (done + left) if done + left else 1.0)

    def wait(self) -> None:
        """Say, once, that another process trains the remaining runs."""
        if not self.waited:
            self.say(f"{self.stage.name or self.titles[0]}: waiting for another process that trains the remaining runs")
            self.waited = True

    def end(self, setting: int, run: Run) -> None:
        """Show the results of a setting."""
        self.close()
        test = f"test {run.test}, " if self.show_test and not self.stage.name and run.test.n else ""
        val = f"val {100 * run.val.mean:.2f}, " if run.val.n else ""
        if not self.label and (self.missing[setting] or not self.stage.name):
            self.say(f"{self.titles[setting]}: {test}{val}{run.seconds:.1f} s of training")

    def say(self, message: str) -> None:
        """Print a message, above the live line if there is one."""
        if not self.quiet:
            self._clear()
            self.console.print(message, soft_wrap=True)

    def close(self) -> None:
        """Remove the live line."""
        self._clear()
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _cost(self) -> float:
        """Cost of what this stage had to train."""
        return sum(cost * runs for cost, runs in zip(self.costs, self.missing, strict=True))

    def _show(self, text: str, share: float) -> None:
        """Show a live line: with a bar on a terminal, rewritten in a notebook, else a plain one now and then."""
        if self.quiet:
            return
        if on_terminal():
            if self.live is None:
                columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
                self.live = Progress(*columns, console=self.console, transient=True)
                self.live.add_task("", total=1.0)
                self.live.start()
            self.live.update(self.live.task_ids[0], completed=share, description=text)
            return
        line = f"{text} ({100 * share:.0f} % done)"
        if in_notebook():  # Rich would need ipywidgets, while every notebook obeys a carriage return
            self.console.file.write(f"\r{line.ljust(self.width)}")
            self.console.file.flush()
            self.width = len(line)
        elif time.monotonic() - self.printed > PLAIN_LINE_SECONDS:
            self.printed = time.monotonic()
            self.console.print(line, soft_wrap=True)

    def _clear(self) -> None:
        """Erase the line of a notebook, so that a message can take its place."""
        if self.width:
            self.console.file.write(f"\r{' ' * self.width}\r")
            self.width = 0


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, such as Jupyter's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None and not on_terminal()


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def in_time(seconds: float) -> str:
    """A time in words, such as 90 s or 12 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def in_bytes(count: float) -> str:
    """A number of bytes in words, such as 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if count < 1024 or unit == "PiB":
            break
        count /= 1024
    return f"{count:,.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
