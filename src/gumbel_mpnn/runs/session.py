"""A session trains the runs that are missing, in this process or in workers, and finds the others.

The runs of a job are trained in groups, as many at once as fit into memory. Results do not depend on the group. A
process holds the lock of every run that it trains, so that several processes, also on several machines with one disk,
share the work. Locks are released when their process ends, for whatever reason.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.runs.predict import DataFacts, TrainingData
from gumbel_mpnn.runs.progress import Monitor
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.spec import DataReader, Job, RunSpec
from gumbel_mpnn.runs.store import LOCK, Record, SettingFolder
from gumbel_mpnn.runs.workers import LOCAL, LostError, Workers, tell, workers
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Outcome, Task, pick_device, prepare, train
from gumbel_mpnn.training.build import available_bytes, plan_groups, too_large
from gumbel_mpnn.training.metrics import check_metric, metric_of
from gumbel_mpnn.util.errors import DivergedError, StoppedError, UserError, is_out_of_memory

TRIES = 3
"""How often runs are handed out whose process dies again and again."""
POLL_SECONDS = 0.2


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
    monitor: Monitor = field(default_factory=Monitor)
    workers: Workers | None = None
    """Processes that train in place of this one."""
    prune: Callable[[int, Mapping[Replica, float]], None] | None = None
    """Called after the epochs `prune_after` of training in this process; it may end it with a `StoppedError`."""
    prune_after: Sequence[int] = ()
    reader: DataReader = field(default_factory=DataReader)

    def fit(self, spec: RunSpec) -> Run:
        """Train the runs of `spec` that are missing; returns all of them."""
        (run,) = self.fit_all([spec])
        if isinstance(run, DivergedError):
            raise run
        return run

    def fit_all(
        self, specs: Sequence[RunSpec], titles: Sequence[str] = (), round: str = ""
    ) -> list[Run | DivergedError]:
        """Train the runs of several settings that are missing, side by side if there are workers.

        The result has the error in place of the runs of a setting whose training diverged. The monitor shows the
        titles of the settings and that of the round of `auto`.
        """
        pick_device(self.device)  # an invalid name is reported before the data is read
        jobs = [OpenJob(number, spec.read(self.reader), self) for number, spec in enumerate(specs)]
        with ExitStack() as stack, _errors_in_sentences(Path(self.runs)):
            for job in jobs:
                job.check()
                stack.enter_context(job)
            missing = [len(job.missing) for job in jobs]
            finished = [len(job.replicas) - count for job, count in zip(jobs, missing, strict=True)]
            self.monitor.begin(titles or [job.title for job in jobs], missing, finished, round)
            if self.workers is None:
                _train_here(jobs)
            else:
                _hand_out(jobs, self.workers)
            return [job.end() for job in jobs]

    def find(self, spec: RunSpec) -> Run | None:
        """Find the runs of `spec` without training; returns None if some are missing."""
        job = OpenJob(0, spec.read(self.reader), self)
        return None if job.missing else job.run()


class OpenJob:
    """A job in a session, and the locks of those of its runs that this process trains, until the `with` block ends."""

    def __init__(self, number: int, job: Job, session: Session) -> None:
        self.number, self.job, self.session = number, job, session
        self.replicas, self.title = job.replicas, job.title
        self.folder = SettingFolder.of(Path(session.runs), session.experiment, job)
        self.locks = dict[Replica, FileLock]()
        self.diverged: DivergedError | None = None
        """The error if training of some run diverged; then no more are trained."""

    def __enter__(self) -> OpenJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.release(list(self.locks))

    @property
    def missing(self) -> list[Replica]:
        """Runs that are not finished."""
        return [replica for replica in self.replicas if not self.folder.is_finished(replica)]

    @property
    def is_held(self) -> bool:
        """Whether runs are missing that other processes train."""
        return self.diverged is None and bool(self.missing)

    def check(self) -> None:
        """Raise an error for what cannot be trained."""
        if not (missing := self.missing):
            return
        data, settings = self.job.data, self.job.settings
        check_metric(metric_of(data, settings.data), data, sorted({replica.split for replica in missing}))
        if (parts := settings.train.partitions) > (nodes := int(data.num_nodes or 0)):
            raise UserError(f"train.partitions={parts}, but this graph has {nodes} nodes: make fewer parts")

    def free(self) -> list[Replica]:
        """Missing runs that this process does not train yet; none if training of some diverged."""
        return [] if self.diverged else [replica for replica in self.missing if replica not in self.locks]

    def is_free(self) -> bool:
        """Whether there is a missing run that no process trains; nothing is written."""
        for replica in self.free():
            if not (self.folder.folder(replica) / LOCK).exists():
                return True
            with suppress(Timeout), self._lock_of(replica).acquire(timeout=0):
                return True
        return False

    def take(self, most: int) -> list[Replica]:
        """Lock runs to train together: at most so many, or those of a checkpoint; none if other processes have all."""
        free = self.free()
        for group in self.folder.begun():
            rest = [replica for replica in group if not self.folder.is_finished(replica)]
            if rest and set(rest) <= set(free):
                if all(map(self._lock, rest)):
                    return group
                self.release([replica for replica in rest if replica in self.locks])
        taken, size = list[Replica](), even_share(len(free), most)
        for replica in free:
            if len(taken) < size and self._lock(replica):
                taken.append(replica)
        return taken

    def _lock_of(self, replica: Replica) -> FileLock:
        path = self.folder.folder(replica) / LOCK
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path)

    def _lock(self, replica: Replica) -> bool:
        """Lock a run, unless another process has locked or just finished it."""
        lock = self._lock_of(replica)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        self.locks[replica] = lock
        if self.folder.is_finished(replica):
            self.release([replica])
        return replica in self.locks

    def wait(self) -> None:
        """Wait until another process has finished a run that is missing, or ends."""
        self.session.monitor.wait()
        for replica in self.missing[:1]:
            self.locks[replica] = lock = self._lock_of(replica)
            lock.acquire()
            self.release([replica])

    def release(self, replicas: Iterable[Replica]) -> None:
        """Give runs up; the locks of those that are finished are deleted."""
        for replica in replicas:
            lock = self.locks.pop(replica)
            if self.folder.is_finished(replica):  # which a waiting process finds
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()

    def forget(self, group: Sequence[Replica]) -> None:
        """Remove the checkpoint of a group, and release the group."""
        self.folder.remove_checkpoint(group)
        self.release([replica for replica in group if replica in self.locks])

    def write(self, outcomes: Sequence[Outcome], graph: PairGraph, metric: str) -> None:
        """Store the results of a group."""
        self.folder.write_facts(DataFacts.of(self.job.data).to_dict())
        device = pick_device(self.session.device)
        for outcome in outcomes:
            if not self.folder.is_finished(outcome.replica):
                record = Record.of(outcome, self.job, metric, device)
                self.folder.write(outcome, record, graph, self.job.data.get("node_ids"))
        self.forget([outcome.replica for outcome in outcomes])

    def run(self) -> Run:
        """Read the finished runs."""
        records = tuple(self.folder.record(replica) for replica in self.replicas)
        return Run(self.job.settings, records[0].metric, records, TrainingData(self.job.data), self.folder)

    def end(self) -> Run | DivergedError:
        """Tidy up and return the runs."""
        if self.diverged is not None:
            return self.diverged
        with suppress(OSError):  # the folder may be read-only
            self.folder.write_facts(DataFacts.of(self.job.data).to_dict())
            self.folder.tidy(self.replicas)
        run = self.run()
        self.session.monitor.end(self.number, run)
        return run


def open_workers(count: int, on: str, device: str) -> AbstractContextManager[Workers | None]:
    """Processes that train in place of this one if several are asked for; the arguments are those of `workers`."""
    return nullcontext() if count == 1 and on == LOCAL else workers(count, on, device)


def even_share(count: int, most: int) -> int:
    """Size of the first of few groups of even size, each of at most so many."""
    return -(-count // -(-count // most)) if count else 0


def _train_here(jobs: list[OpenJob]) -> None:
    """Train in this process, one job after another; those that other processes have come last."""
    while jobs:
        for job in jobs:
            if not job.is_free():
                continue
            training = _Training(job.job, job.folder, job.session)
            while group := job.take(training.size):
                try:
                    outcomes = training.train(job.number, group)
                except StoppedError:
                    job.forget(group)
                    raise
                except DivergedError as error:
                    job.diverged = error
                    job.forget(group)
                else:
                    if outcomes is None:
                        job.forget(group)
                    else:
                        job.write(outcomes, training.task.graph, training.task.metric)
        jobs = [job for job in jobs if job.is_held]
        if jobs and not any(job.is_free() for job in jobs):
            jobs[0].wait()


def _hand_out(jobs: list[OpenJob], workers: Workers) -> None:
    """Let workers train as many groups at once as there are workers, the last jobs first, which take longest."""
    session, shared = jobs[0].session, dict[int, Any]()
    parts = -(-workers.count // len(jobs))
    size = {job.number: max(1, -(-len(job.missing) // parts)) for job in jobs}
    memory = (session.memory or available_bytes(pick_device(session.device))) // workers.count
    running, deaths = dict[Future[Any], tuple[OpenJob, list[Replica]]](), Counter[tuple[int, Replica]]()
    while True:
        for job in reversed(jobs):
            while len(running) < workers.count and (group := job.take(size[job.number])):
                if job.number not in shared:
                    shared[job.number] = workers.share(job.job)
                where = (job.folder, session.device, memory)
                running[workers.submit(_train_there, shared[job.number], job.number, group, *where)] = job, group
        if not running:
            if not (held := [job for job in jobs if job.is_held]):
                return
            held[0].wait()
            continue
        done, _ = wait(running, POLL_SECONDS, FIRST_COMPLETED)
        for report in workers.reports():
            session.monitor.progress(*report)
        for future in done:
            job, group = running.pop(future)
            try:
                outcomes, graph, metric = pickle.loads(workers.result(future))  # noqa: S301  # of our own worker
            except LostError as error:
                job.release(group)
                deaths[job.number, group[0]] += 1  # one dead process takes the groups of all others with it
                if deaths[job.number, group[0]] == TRIES:
                    raise UserError(
                        f"{job.title} was tried {TRIES} times, and its worker died each time ({error}): does it"
                        " have enough memory? Finished runs are safe: repeat the command to continue"
                    ) from error
            except DivergedError as error:
                job.diverged = error
                job.forget(group)
            else:
                job.write(outcomes, graph, metric)
                session.monitor.progress(job.number, str(group[0]), len(group), outcomes[0].val or 0.0)


def _train_there(
    shared: bytes, number: int, replicas: list[Replica], folder: SettingFolder, device: str, memory: int
) -> bytes:
    """Train runs in a worker; returns their outcomes, with the graph that their probabilities belong to."""
    session = Session(folder.path, device=device, memory=memory, monitor=_Reports())
    training = _Training(pickle.loads(shared), folder, session)  # noqa: S301  # from the calling process
    found, left = list[Outcome](), list(replicas)
    while left:
        group = left[: even_share(len(left), training.size)]
        if (outcomes := training.train(number, group)) is not None:
            found += outcomes
            left = left[len(group) :]
    return pickle.dumps((found, training.task.graph, training.task.metric))


class _Reports(Monitor):
    """Tells the calling process how far a worker is."""

    def progress(self, setting: int, group: str, runs: float, best: float) -> None:
        """Tell it."""
        tell(setting, group, runs, best)


class _Training:
    """Trains groups of runs of one job, on data that is prepared once."""

    def __init__(self, job: Job, folder: SettingFolder, session: Session) -> None:
        self.settings, self.folder, self.session = job.settings, folder, session
        prepared = prepare(job.data, job.settings, session.monitor.prepare)
        self.task = Task.of(prepared, job.settings, pick_device(session.device))
        self.size, self.each = plan_groups(job.settings, self.task, session.memory)
        """Number of runs to train at once, and upper bound of the memory of each."""

    def train(self, number: int, group: list[Replica]) -> list[Outcome] | None:
        """Train a group; None if memory ran out, after which groups are half as large."""
        name, share, monitor = str(group[0]), len(group) / self.settings.train.epochs, self.session.monitor
        monitor.memory(len(group) * self.each)
        try:
            outcomes = train(
                self.task,
                self.settings,
                group,
                checkpoint=self.folder.checkpoint(group),
                watch=lambda epoch, best: monitor.progress(number, name, epoch * share, best),
                resumed=lambda epoch: monitor.resume(number, name, epoch, epoch * share),
                prune=self.session.prune,
                prune_after=self.session.prune_after,
            )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(group) == 1:
                raise too_large(self.settings, self.task.device) from None
            self.size = -(-len(group) // 2)
            self.folder.remove_checkpoint(group)
            return None
        monitor.progress(number, name, len(group), outcomes[0].val or 0.0)
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
