"""A session trains the runs that are missing, in this process or in workers, and finds the others.

The runs of a setting are trained in groups, as many at once as fit into memory. Results do not depend on the group.
"""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.runs.progress import Monitor, Stage
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.spec import DataReader, Job, RunSpec
from gumbel_mpnn.runs.store import Claims, DataFacts, SettingFolder, TrainingData, record_of, write_facts
from gumbel_mpnn.runs.workers import LostError, Workers, tell
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Outcome, Task, pick_device, prepare, train
from gumbel_mpnn.training.device import available_bytes, plan_groups, too_large
from gumbel_mpnn.training.loop import Pruner
from gumbel_mpnn.training.metrics import check_metric, metric_of
from gumbel_mpnn.util.errors import DataWarning, DivergedError, StoppedError, UserError, is_out_of_memory

TRIES = 3
"""How often runs are handed out whose process dies again and again."""
POLL_SECONDS = 0.2


class BusyError(UserError):
    """Other processes are training the missing runs, and the session does not wait for them."""


@dataclass(frozen=True)
class Session:
    """Where runs are stored and how they are trained; none of this changes their results."""

    runs: str | Path
    """Folder of the runs."""
    experiment: str = "train"
    """Folder within `runs`."""
    device: str = "auto"
    """`cpu`, `cuda`, or `auto` for a GPU if there is one."""
    memory: int | None = None
    """Bytes that training may use; all free memory by default."""
    models: bool = False
    """Whether trained models are needed besides records; runs whose models were deleted are trained again."""
    monitor: Monitor = field(default_factory=Monitor)
    workers: Workers | None = None
    """Processes that train in place of this one."""
    wait: bool = True
    """Whether to wait for runs that another process is training; otherwise a `BusyError` is raised."""
    pruner: Pruner | None = None
    """Called at some epochs of training in this process; it may end it with a `StoppedError`."""
    reader: DataReader = field(default_factory=DataReader)

    def fit(self, spec: RunSpec) -> Run:
        """Train the runs of `spec` that are missing; returns all of them."""
        (run,) = self.fit_all([spec])
        if isinstance(run, DivergedError):
            raise run
        return run

    def fit_all(self, specs: Sequence[RunSpec], stage: Stage | None = None) -> list[Run | DivergedError]:
        """Train the runs of several settings that are missing, side by side if there are workers.

        The result has the error in place of the runs of a setting whose training diverged.
        """
        pick_device(self.device)  # an invalid name is reported before the data is read
        jobs = [spec.read(self.reader) for spec in specs]
        work = [_Work(number, job, self) for number, job in enumerate(jobs)]
        with ExitStack() as stack, _errors_in_sentences(Path(self.runs)):
            for one in work:
                one.check()
                stack.enter_context(one.claims)
            missing = [len(one.claims.missing) for one in work]
            finished = [len(one.job.replicas) - count for one, count in zip(work, missing, strict=True)]
            self.monitor.begin(stage or Stage(titles=[job.title for job in jobs]), missing, finished)
            if self.workers is None:
                _train_here(work)
            else:
                _hand_out(work, self.workers)
            return [one.end() for one in work]

    def find(self, spec: RunSpec) -> Run | None:
        """Find the runs of `spec` without training; returns None if some are missing."""
        work = _Work(0, spec.read(self.reader), self)
        return None if work.claims.missing else work.run()


class _Work:
    """The runs of one setting in a session."""

    def __init__(self, number: int, job: Job, session: Session) -> None:
        self.number, self.job, self.session = number, job, session
        self.folder = SettingFolder.of(Path(session.runs), session.experiment, job, session.models)
        self.claims = Claims(self.folder, job.replicas)
        self.diverged: DivergedError | None = None

    def check(self) -> None:
        """Raise an error for what cannot be trained, and warn of finished runs that are trained again."""
        if not (missing := self.claims.missing):
            return
        metric = metric_of(self.job.data, self.job.settings.data)
        check_metric(metric, self.job.data, sorted({replica.split for replica in missing}))
        if self.job.settings.train.partitions > (nodes := int(self.job.data.num_nodes or 0)):
            parts = self.job.settings.train.partitions
            raise UserError(f"train.partitions={parts}, but this graph has {nodes} nodes: make fewer parts")
        if again := sum(map(self.folder.is_recorded, missing)):
            warnings.warn(
                f"the trained model of {again} finished run{'s' * (again > 1)} of {self.job.title} is missing but"
                " needed: trained again, with a new record",
                DataWarning,
                stacklevel=4,
            )

    def take(self, most: int) -> list[Replica]:
        """Claim runs to train together; none if training of this setting diverged, here or in another process."""
        return self.claims.take(most) if self.is_free() else []

    def is_free(self) -> bool:
        """Whether there are runs that no process trains, and none that diverged."""
        try:
            return self.diverged is None and self.claims.is_free()
        except DivergedError as error:
            self.diverged = error
            return False

    @property
    def is_held(self) -> bool:
        """Whether runs are missing that other processes train."""
        return self.diverged is None and bool(self.claims.missing)

    def write(self, outcomes: Sequence[Outcome], graph: PairGraph, metric: str) -> None:
        """Store the results of a group."""
        write_facts(self.folder.path, DataFacts.of(self.job.data))
        device = pick_device(self.session.device)
        for outcome in outcomes:
            if not self.folder.is_finished(outcome.replica):
                record = record_of(outcome, self.job, metric, device)
                self.folder.write(outcome, record, graph, self.job.data.get("node_ids"))
        self.claims.forget([outcome.replica for outcome in outcomes])

    def give_up(self, group: Sequence[Replica], error: DivergedError) -> None:
        """Note that training of some runs of a group diverged."""
        self.folder.remember_diverged(error.runs)
        self.diverged = error
        self.claims.forget(group)

    def wait(self) -> None:
        """Wait for another process that trains missing runs."""
        if not self.session.wait:
            raise BusyError(f"another process is training {self.job.title}: wait until it has ended")
        self.session.monitor.wait()
        self.claims.wait()

    def run(self) -> Run:
        """Read the finished runs."""
        records = tuple(self.folder.record(replica) for replica in self.job.replicas)
        return Run(self.job.settings, records[0].metric, records, TrainingData(self.job.data), self.folder)

    def end(self) -> Run | DivergedError:
        """Report the end of this setting, and return its runs."""
        if self.diverged is not None:
            return self.diverged
        with suppress(OSError):  # the folder may be read-only
            write_facts(self.folder.path, DataFacts.of(self.job.data))
            self.claims.tidy()
        run = self.run()
        self.session.monitor.end(self.number, run)
        return run


def _train_here(work: list[_Work]) -> None:
    """Train in this process, one setting after another; those that other processes have come last."""
    while work:
        for one in work:
            session = one.session
            if not one.is_free():
                continue
            trained = _Training(one.job, session.device, session.memory, one.folder, session.monitor, session.pruner)
            for outcomes in trained.groups(one.number, one.take, one.claims.forget, one.give_up):
                one.write(outcomes, trained.task.graph, trained.task.metric)
        work = [one for one in work if one.is_held]
        if work and not any(one.is_free() for one in work):
            work[0].wait()


def _hand_out(work: list[_Work], workers: Workers) -> None:
    """Let workers train as many groups at once as there are workers, the last settings first, which take longest."""
    session, jobs = work[0].session, dict[int, Any]()
    parts = -(-workers.count // len(work))
    size = {one.number: -(-len(one.claims.missing) // parts) for one in work}
    memory = session.memory or available_bytes(pick_device(session.device))
    running, deaths = dict[Future[Any], tuple[_Work, list[Replica]]](), Counter[int]()
    while True:
        for one in reversed(work):
            while len(running) < workers.count and (group := one.take(size[one.number])):
                if one.number not in jobs:
                    jobs[one.number] = workers.share(one.job)
                where = (session.device, memory // workers.count, one.folder)
                future = workers.submit(_train_there, jobs[one.number], one.number, group, *where)
                running[future] = one, group
        if not running:
            if not (held := [one for one in work if one.is_held]):
                return
            held[0].wait()
            continue
        done, _ = wait(running, POLL_SECONDS, FIRST_COMPLETED)
        for report in workers.reports():
            session.monitor.progress(*report)
        for future in done:
            one, group = running.pop(future)
            try:
                outcomes, graph, metric = pickle.loads(workers.result(future))  # noqa: S301  # of our own worker
            except LostError as error:
                one.claims.release(group)
                deaths[one.number] += 1
                if deaths[one.number] == TRIES:
                    raise UserError(
                        f"{one.job.title} was tried {TRIES} times, and its worker died each time ({error}): does it"
                        " have enough memory? Finished runs are safe: repeat the command to continue"
                    ) from error
            except DivergedError as error:
                one.give_up(group, error)
            else:
                one.write(outcomes, graph, metric)
                session.monitor.progress(one.number, str(group[0]), len(group), outcomes[0].val or 0.0)


def _train_there(
    shared: bytes, number: int, group: list[Replica], device: str, memory: int, folder: SettingFolder
) -> bytes:
    """Train runs in a worker; returns their outcomes, with the graph that their probabilities belong to."""
    job, left, done = pickle.loads(shared), list(group), list[Outcome]()  # noqa: S301  # from the calling process

    def take(most: int) -> list[Replica]:
        taken = left[: -(-len(left) // -(-len(left) // most))] if left else []
        del left[: len(taken)]
        return taken

    training = _Training(job, device, memory, folder, _Teller(), None)
    for outcomes in training.groups(number, take, lambda again: left.__setitem__(slice(0, 0), again)):
        done += outcomes
    return pickle.dumps((done, training.task.graph, training.task.metric))


class _Teller(Monitor):
    """Tells the calling process how far a worker is."""

    def progress(self, setting: int, group: str, runs: float, best: float) -> None:
        """Report it."""
        tell(setting, group, runs, best)


class _Training:
    """Trains groups of runs of one setting, on data that is prepared once."""

    def __init__(
        self, job: Job, device: str, memory: int | None, folder: SettingFolder, monitor: Monitor, pruner: Pruner | None
    ) -> None:
        self.job, self.folder, self.monitor, self.pruner = job, folder, monitor, pruner
        prepared = prepare(job.data, job.settings, monitor.prepare)
        self.task = Task.for_model(prepared, job.settings, pick_device(device))
        self.size, self.each = plan_groups(job.settings, self.task, memory)

    def groups(
        self,
        number: int,
        take: Callable[[int], list[Replica]],
        give_back: Callable[[list[Replica]], None],
        give_up: Callable[[list[Replica], DivergedError], None] | None = None,
    ) -> Iterator[list[Outcome]]:
        """Outcomes of the groups that `take` hands out; if memory runs out, a group is given back and halved."""
        while group := take(self.size):
            self.monitor.memory(len(group) * self.each)
            try:
                outcomes = self._train(number, group)
            except StoppedError:
                give_back(group)
                raise
            except DivergedError as error:
                if give_up is None:
                    raise
                give_up(group, error)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if len(group) == 1:
                    raise too_large(self.job.settings, self.task.device) from None
                self.size = -(-len(group) // 2)
                give_back(group)
            else:
                yield outcomes

    def _train(self, number: int, group: list[Replica]) -> list[Outcome]:
        settings, name = self.job.settings, str(group[0])
        share = len(group) / settings.train.epochs
        outcomes = train(
            self.task,
            settings,
            group,
            checkpoint=self.folder.checkpoint(group),
            watch=lambda epoch, best: self.monitor.progress(number, name, epoch * share, best),
            resumed=lambda epoch: self.monitor.resume(number, name, epoch, epoch * share),
            pruner=self.pruner,
        )
        self.monitor.progress(number, name, len(group), outcomes[0].val or 0.0)
        return outcomes


@contextmanager
def _errors_in_sentences(folder: Path) -> Iterator[None]:
    """Raise errors of the disk as a `UserError`."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has ended, which is not an error of the disk
        raise
    except NotImplementedError as error:  # of filelock
        raise UserError(f"the disk of {folder} has no file locks: name a folder of runs on another one") from error
    except OSError as error:
        raise UserError(
            f"cannot write the runs in {error.filename or folder}: {error.strerror or error}; finished runs are safe:"
            " solve the problem and repeat the command to continue"
        ) from error
