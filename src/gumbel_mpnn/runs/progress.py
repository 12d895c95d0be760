"""Progress of training on standard error: a live line on a terminal and in a notebook, otherwise plain lines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from gumbel_mpnn.runs.fitting import Step
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.util.errors import counted
from gumbel_mpnn.util.live_line import LiveLine, StepLine, duration, plain_console, size

if TYPE_CHECKING:
    from gumbel_mpnn.runs.trials import Search, Standing


LOOK_SECONDS = 2.0
"""Time between two looks at what other processes have done."""


class ProgressMonitor:
    """Shows epochs done, the best validation result and the time left while `fit` trains.

    `preface` and `warning` are shown before the first setting, the warning even if `quiet`.
    """

    def __init__(self, show_test: bool = True, preface: str = "", warning: str = "", quiet: bool = False) -> None:
        self.show_test, self.preface, self.warning, self.quiet = show_test, preface, warning, quiet
        self.console = plain_console()
        self.line: LiveLine | None = None
        self.done_epochs = self.total_epochs = self.group_epochs = 0
        self.title, self.waited = "", False
        self.step: Step | None = None
        """The step of `auto`, if it trains the runs."""
        self.auto_started = 0.0
        self.resumed_epochs = 0
        """Epochs of this setting that an earlier process did; they took no time in this one."""
        self.found_share = self.found_before = 0.0
        """Share of this step, and of all steps of `auto` before it, that was found finished."""
        self.seen_runs: dict[str, int] = {}
        """Number of runs that each rung of `auto` has had so far."""
        self.part_of = ""
        """What the runs are a part of, such as a search, which then says what is done in place of each setting."""

    def rung(self, step: Step) -> None:
        """Remember which step of `auto` begins."""
        if step.before == 0:
            self.auto_started, self.found_before, self.seen_runs = time.monotonic(), 0.0, {}
        self.step = step

    def prepare(self, done: int, total: int) -> None:
        """Show the progress of SDRF."""
        if self.quiet:
            return
        if not isinstance(self.line, StepLine):
            self.line = StepLine("SDRF", self.console)
        self.line(done, total)

    def begin(self, settings: Settings, replicas: int, finished: int, groups: int, bytes_needed: int) -> None:
        """Show how many runs of a setting are trained and how many were found finished."""
        self.close()
        what = settings.model if self.step is None else _in_words(self.step)
        self.title, self.waited = self.part_of or f"{what} on {settings.dataset}", False
        if self.preface:
            self.say(self.preface)
            self.preface = ""
        if self.warning:
            self.console.print(f"warning: {self.warning}", soft_wrap=True)
            self.warning = ""
        missing = replicas - finished
        self._count_found(replicas, missing)
        self.done_epochs = self.group_epochs = self.resumed_epochs = 0
        if not missing:
            found = f"all {replicas} runs were" if replicas > 1 else "the run was"
            by_others = self.step is not None and self.step.processes > 1
            if not self.part_of and not by_others:
                self.say(f"{self.title}: {found} already finished")
            return
        parts = [f"{self.title}: {counted(missing, 'run')}"]
        if finished:
            parts.append(f"{finished} more already finished")
        if groups:
            parts.append(counted(groups, "group"))
        if bytes_needed:
            parts.append(f"about {size(bytes_needed)} of memory")
        if self.step is None and not self.part_of:
            self.say(", ".join(parts))
        self.total_epochs = groups * settings.train.epochs
        self.started = time.monotonic()
        if self.quiet:
            return
        self.line = LiveLine(
            self.console,
            self.title,
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} epochs  best val {task.fields[best]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            total=self.total_epochs,
            best="–",
            left="",
        )

    def group(self, replicas: int, epochs: int) -> None:
        """Start the next group of replicas."""
        self.done_epochs += self.group_epochs
        self.group_epochs = epochs
        # A group that another process held when this setting began, and then gave up, was not counted there.
        self.total_epochs = max(self.total_epochs, self.done_epochs + epochs)

    def resume(self, epoch: int) -> None:
        """Say that an earlier process did the first epochs of the current group, and remember it."""
        self.resumed_epochs += epoch
        if epoch < self.group_epochs:
            self.say(f"{self.title}: continuing at epoch {epoch + 1}")

    def progress(self, epoch: int, best: float) -> None:
        """Show the progress of the current group."""
        if self.line is None:
            return
        done, total = self.done_epochs + epoch, self.total_epochs
        best_val = f"{100 * best:.2f}" if math.isfinite(best) else "–"  # no validation nodes, or no epoch that counts
        seconds = self._seconds_left(done / total, self.resumed_epochs / total)
        left = "" if seconds is None else f"about {seconds:.0f} s left"
        plain = f"{self.title}: {done}/{total} epochs, best val {best_val}" + f", {left}" * bool(left)
        self.line.show(done, total, plain, description=self.title, best=best_val, left=left)

    def _seconds_left(self, share: float, found: float) -> float | None:
        """Time left when a share of the epochs of this setting is done; with `auto`, that of all rungs.

        What an earlier process did (`found`, a share of the same epochs) took no time here: the speed is that of the
        rest. None if nothing was done yet by which to judge.
        """
        start = self.started
        if self.step is not None:
            new, start = 1 - self.found_share, self.auto_started
            found = self.found_before + self.step.share * (self.found_share + new * found)
            share = self.step.before + self.step.share * (self.found_share + new * share)
        if share <= found:
            return None
        seconds = time.monotonic() - start
        if self.step is not None and self.step.processes > 1:  # the others have done as much in this time
            return seconds * max(0.0, 1 / (self.step.processes * (share - found)) - 1)
        return seconds * (1 - share) / (share - found)

    def _count_found(self, replicas: int, missing: int) -> None:
        """Note which share of a step of `auto` was finished by an earlier process, and not in an earlier round."""
        if self.step is None:
            return
        expected = replicas - self.seen_runs.get(self.step.rung, 0)
        self.seen_runs[self.step.rung] = replicas
        self.found_share = max(0.0, 1 - missing / expected) if expected > 0 else 0.0

    def wait(self) -> None:
        """Report, once, that another process trains the remaining runs."""
        if not self.waited:
            self.say(f"{self.title}: waiting for another process that trains the remaining runs")
            self.waited = True

    def end(self, run: Run) -> None:
        """Show the results of a setting."""
        self.close()
        if self.step is not None:
            resumed = self.resumed_epochs / self.total_epochs if self.total_epochs else 0.0
            self.found_before += self.step.share * (self.found_share + (1 - self.found_share) * resumed)
        test = f"test {run.test}, " if self.show_test and self.step is None and run.test.n else ""
        val = f"val {100 * run.val.mean:.2f}, " if run.val.n else ""
        if not self.part_of:
            self.say(f"{self.title}: {test}{val}{run.seconds:.1f} s of training")
        self.step = None

    def close(self) -> None:
        """Remove the live line."""
        if self.line is not None:
            self.line.close()
            self.line = None

    def say(self, message: str) -> None:
        """Print a message, above the live line if there is one."""
        if self.quiet:
            return
        if self.line is not None:
            self.line.clear()
        self.console.print(message, soft_wrap=True)


class StudyMonitor(ProgressMonitor):
    """Shows the number of trials done, the best validation value so far and the time left while `tune` searches."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(show_test=False, quiet=quiet)
        self.search: Search | None = None
        self.begun = 0.0
        self.found: int | None = None
        """Number of trials that were done before this process began."""
        self.now: Standing | None = None
        self.look: Callable[[], Standing] | None = None
        """Finds out how far other processes have come, and when this was done last."""
        self.looked = 0.0

    def begin_search(self, search: Search, look: Callable[[], Standing] | None = None) -> None:
        """Say how much is searched for, with which budget; `look` tells what other processes do."""
        settings = search.spec.settings
        self.search, self.begun, self.found, self.now = search, time.monotonic(), None, None
        self.look = look
        self.part_of = f"{settings.model} on {settings.dataset}, trial 1 of {search.wanted}"
        limit = "" if search.until is None else f", {duration(search.until - time.time())} at most"
        self.say(
            f"{settings.model} on {settings.dataset}: {counted(search.wanted, 'trial')} of"
            f" {counted(search.runs_of_each, 'run')} each{limit},"
            f" {counted(len(search.space.dimensions), 'setting')} searched"
        )

    def standing(self, now: Standing) -> None:
        """Show how far the search is."""
        self.close()
        self._update(now)
        if self.found is None:
            self.found = now.done - (now.latest is not None)
            if self.found:
                self.say(f"{self.found} of {counted(now.total, 'trial')} were done before")
        if (trial := now.latest) is not None:
            result = trial.state if trial.val is None else f"val {100 * trial.val:.2f}"
            seconds = self._seconds_left(0.0, 0.0)
            left = "" if seconds is None or now.done == now.total else f"about {duration(seconds)} left"
            parts = [f"trial {trial.number}: {result}", f"{now.done} of {now.total} done", _best(now), left]
            self.say(", ".join(filter(None, parts)))

    def progress(self, epoch: int, best: float) -> None:
        """Show the progress of the current trial, and how far other processes have come."""
        if self.look is not None and time.monotonic() - self.looked > LOOK_SECONDS:
            self._update(self.look())
            self.title, self.looked = self.part_of, time.monotonic()
        super().progress(epoch, best)

    def _update(self, now: Standing) -> None:
        assert self.search is not None
        self.now, settings = now, self.search.spec.settings
        parts = [f"{settings.model} on {settings.dataset}", f"{now.done} of {now.total} trials done", _best(now)]
        self.part_of = ", ".join(filter(None, parts))

    def _seconds_left(self, share: float, found: float) -> float | None:
        """Time left of the search, by the time that its trials have taken so far, or by its time limit."""
        if self.search is None or self.now is None or self.found is None:
            return None
        done, left = self.now.done - self.found, None
        if done:
            left = (time.monotonic() - self.begun) / done * (self.now.total - self.now.done)
        if self.search.until is not None:
            limit = self.search.until - time.time()
            left = limit if left is None else min(left, limit)
        return None if left is None or left < 0 else left  # beyond the limit, the last trials are finished


def _best(now: Standing) -> str:
    best = now.best
    return "" if best is None or best.val is None else f"best val {100 * best.val:.2f} (trial {best.number})"


def _in_words(step: Step) -> str:
    round = "" if step.round == 1 else f"round {step.round}, "
    return f"{round}rung {step.place} of {step.rungs}, {step.rung}"
