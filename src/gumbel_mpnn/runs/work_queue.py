"""Who trains what: several processes share the replicas of one setting, and none is trained by two.

Replicas are trained in groups, and in the last digit a figure may depend on its group. So groups are planned once and
kept as files, `group-<key>.json`, beside the run folders, until all their records are there: whoever does a group, and
however often it was killed, it is the same replicas in the same order. To work on a group is to hold the lock of its
file, which ends with the process. Plans are looked at and changed by one process at a time, under `.lock`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import write_atomically
from gumbel_mpnn._util.locks import FileLock, alone
from gumbel_mpnn.config import Replica
from gumbel_mpnn.runs.store import SettingFolder


class BusyError(UserError):
    """What is missing is being trained by other processes, and nobody wanted to wait for them."""


def even_groups(replicas: Sequence[Replica], size: int) -> list[list[Replica]]:
    """The replicas in order, in the fewest groups of at most `size`, as even as can be."""
    count = -(-len(replicas) // size)
    bounds = [len(replicas) * k // count for k in range(count + 1)] if count else []
    return [list(replicas[low:high]) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class Plan:
    """Groups of the missing replicas that are free, and files of the groups that others hold."""

    free: list[list[Replica]]
    held: list[Path]


class WorkQueue:
    """The groups of one setting that are not finished."""

    def __init__(self, folder: SettingFolder) -> None:
        self.folder = folder
        self.lock = folder.path / ".lock"

    def plan(self, wanted: Sequence[Replica], size: int) -> Plan:
        """Put what is missing of `wanted` and in no group yet into groups of at most `size`.

        A `DivergedError`, here and below, if another process has found meanwhile that one of them diverges.
        """
        with self._alone():
            return self._plan(wanted, size)

    def all_held(self, wanted: Sequence[Replica]) -> bool:
        """Whether others are training all that is missing of `wanted`."""
        with self._alone():
            taken = {replica for group in self._known() if self._is_held(group) for replica in group}
            missing = {replica for replica in wanted if not self.folder.is_finished(replica)}
            return bool(missing) and missing <= taken

    def next(self, wanted: Sequence[Replica], size: int) -> Claim | None:
        """A group of the `wanted` replicas for this process to train; None when others hold all that is missing.

        Call `wait` then, and ask again, as long as something is missing.
        """
        with self._alone():
            plan = self._plan(wanted, size)
            if not plan.free:
                return None
            lock = FileLock(self.folder.group_file(plan.free[0]))
            if lock.take(wait=False):
                return Claim(self, plan.free[0], lock)
            lock.release()  # another one that waited for it has it for a moment
            return None

    def wait(self, wanted: Sequence[Replica], size: int) -> None:
        """Until one of the groups that others hold is finished or given up."""
        with self._alone():
            locks = [FileLock(path) for path in self._plan(wanted, size).held[:1]]
        for lock in locks:
            try:
                lock.take(wait=True)
            finally:
                lock.release()

    def tidy(self) -> None:
        """Take away what is left of groups whose last record was written just before their process was killed."""
        if not any(entry.name.startswith((".", "group-")) for entry in self.folder.path.iterdir()):
            return
        with suppress(OSError), self._alone():  # a store that cannot be written to stays as it is
            for group in self._known():
                if all(map(self.folder.is_finished, group)) and not self._is_held(group):
                    self.forget(group)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.path.mkdir(parents=True, exist_ok=True)
        with alone(self.lock):
            yield

    def _plan(self, wanted: Sequence[Replica], size: int) -> Plan:
        missing = [replica for replica in wanted if not self.folder.is_finished(replica)]
        self.folder.check_diverged(missing)
        groups = self._known()
        held = [group for group in groups if self._is_held(group)]
        taken = {replica for group in held for replica in group}
        open_ = dict.fromkeys(replica for replica in missing if replica not in taken)
        free = []
        for group in groups:
            if group in held:
                continue
            rest = [replica for replica in group if not self.folder.is_finished(replica)]
            if rest and open_.keys() >= set(rest):
                free.append(group)
                for replica in rest:
                    del open_[replica]
            elif not rest or not self.folder.checkpoint(group).exists():
                self.forget(group)
        for group in even_groups(list(open_), size):
            write_atomically(self.folder.group_file(group), json.dumps([str(replica) for replica in group]).encode())
            free.append(group)
        concern = [group for group in held if set(group) & set(missing)]
        return Plan(free, [self.folder.group_file(group) for group in concern])

    def _known(self) -> list[list[Replica]]:
        """The groups that were planned, those with a checkpoint first; a file that is none is taken away."""
        groups = []
        for path in self.folder.path.glob("group-*.json"):
            try:
                group = [Replica.parse(name) for name in json.loads(path.read_text(encoding="utf-8"))]
                whole = bool(group) and path == self.folder.group_file(group)
            except (ValueError, TypeError, AttributeError):
                whole = False
            if whole:
                groups.append(group)
            else:
                path.unlink(missing_ok=True)
        return sorted(groups, key=lambda group: (not self.folder.checkpoint(group).exists(), group))

    def _is_held(self, group: Sequence[Replica]) -> bool:
        lock = FileLock(self.folder.group_file(group))
        try:
            return not lock.take(wait=False)
        finally:
            lock.release()

    def forget(self, group: Sequence[Replica]) -> None:
        """Take away what is kept of a group, and what a process that was killed left half-written of it."""
        path, checkpoint = self.folder.group_file(group), self.folder.checkpoint(group)
        for name in (path.name, checkpoint.name):
            for file in self.folder.path.glob(f".{name}.*"):
                file.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
        path.unlink(missing_ok=True)


class Claim:
    """A group that this process alone may train, until the `with` block ends."""

    def __init__(self, queue: WorkQueue, group: list[Replica], lock: FileLock) -> None:
        self.group = group
        self._queue, self._lock = queue, lock

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def close(self) -> None:
        """The group is no more: it is finished, or its replicas are to be grouped anew."""
        with self._queue._alone():
            self._queue.forget(self.group)

    def give_up(self, diverged: Iterable[str]) -> None:
        """The group is no more, since some of it diverged: nobody is to train these again."""
        with self._queue._alone():
            self._queue.folder.remember_diverged(diverged)
            self._queue.forget(self.group)
