"""Shares the replicas of one setting between processes, so that no replica is trained twice.

Replicas are trained in groups, which have one checkpoint; results do not depend on the group. Groups are planned once
and stored as files `group-<key>.json` next to the folders of the runs, until all their records exist. Whichever process
trains a group, and however often it is interrupted, the group has the same replicas in the same order. A process that
trains a group holds the lock of its file, which is released when the process ends. Plans are read and changed by one
process at a time, which holds `.lock`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import write_atomically
from gumbel_mpnn.util.locks import FileLock, alone, is_held


class BusyError(UserError):
    """Other processes are training all missing runs, or computing what is asked for, and `wait` is False."""


def even_groups(replicas: Sequence[Replica], size: int) -> list[list[Replica]]:
    """Split the replicas into the fewest groups of at most `size`, of about equal size."""
    count = -(-len(replicas) // size)
    bounds = [len(replicas) * k // count for k in range(count + 1)] if count else []
    return [list(replicas[low:high]) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class Plan:
    """Free groups of missing replicas, and files of the groups that other processes hold."""

    free: list[list[Replica]]
    held: list[Path]


class WorkQueue:
    """Unfinished groups of one setting."""

    def __init__(self, folder: SettingFolder) -> None:
        self.folder = folder
        self.lock = folder.path / ".lock"

    def plan(self, wanted: Sequence[Replica], size: int) -> Plan:
        """Assign missing replicas that are in no group to groups of at most `size`.

        Raises a `DivergedError` if training of one of them diverged in another process, as do `next` and `wait`.
        """
        with self.alone():
            return self._plan(wanted, size)

    def all_held(self, wanted: Sequence[Replica]) -> bool:
        """Whether other processes are training all missing replicas of `wanted`."""
        with self.alone():
            taken = {replica for group in self._known() if self._is_held(group) for replica in group}
            missing = {replica for replica in wanted if not self.folder.is_finished(replica)}
            return bool(missing) and missing <= taken

    def begun(self, wanted: Sequence[Replica]) -> list[list[Replica]]:
        """Groups of missing replicas of `wanted` that have a checkpoint and that no process trains."""
        with self.alone():
            missing, begun = {replica for replica in wanted if not self.folder.is_finished(replica)}, []
            for group in self._known():
                rest = {replica for replica in group if not self.folder.is_finished(replica)}
                if rest and rest <= missing and self.folder.checkpoint(group).exists() and not self._is_held(group):
                    begun.append(group)
                    missing -= rest
            return begun

    def next(self, wanted: Sequence[Replica], size: int) -> Claim | None:
        """Claim a group for this process to train; returns None if other processes hold all missing replicas.

        In this case, call `wait` and try again while replicas are missing.
        """
        with self.alone():
            plan = self._plan(wanted, size)
            if not plan.free:
                return None
            lock = FileLock(self.folder.group_file(plan.free[0]))
            if lock.take(wait=False):
                return Claim(self, plan.free[0], lock)
            lock.release()  # a process that waited for the group holds it for a moment
            return None

    def wait(self, wanted: Sequence[Replica], size: int) -> None:
        """Wait until a group that another process holds is finished or released."""
        with self.alone():
            locks = [FileLock(path) for path in self._plan(wanted, size).held[:1]]
        for lock in locks:
            try:
                lock.take(wait=True)
            finally:
                lock.release()

    def tidy(self) -> None:
        """Remove what killed processes left: files of finished groups, and files that were being written."""
        if not any(entry.name.startswith((".", "group-")) for entry in self.folder.path.iterdir()):
            return
        with suppress(OSError), self.alone():  # the folder may be read-only
            for group in self._known():
                if all(map(self.folder.is_finished, group)) and not self._is_held(group):
                    self.forget(group)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of the folder."""
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
        """Planned groups, those with a checkpoint first; invalid files are removed."""
        groups = []
        for path in self.folder.path.glob("group-*.json"):
            try:
                group = [Replica.parse(name) for name in json.loads(path.read_bytes())]
                whole = bool(group) and path == self.folder.group_file(group)
            except (ValueError, TypeError, AttributeError, RecursionError):
                whole = False
            if whole:
                groups.append(group)
            else:
                path.unlink(missing_ok=True)
        return sorted(groups, key=lambda group: (not self.folder.checkpoint(group).exists(), group))

    def _is_held(self, group: Sequence[Replica]) -> bool:
        return is_held(self.folder.group_file(group))

    def forget(self, group: Sequence[Replica]) -> None:
        """Remove the files of a group, including those that a killed process has not finished."""
        path, checkpoint = self.folder.group_file(group), self.folder.checkpoint(group)
        for name in (path.name, checkpoint.name):
            for file in self.folder.path.glob(f".{name}.*"):
                file.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
        path.unlink(missing_ok=True)


class Claim:
    """A group that only this process may train, until the `with` block ends."""

    def __init__(self, queue: WorkQueue, group: list[Replica], lock: FileLock) -> None:
        self.group = group
        self._queue, self._lock = queue, lock

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def close(self) -> None:
        """Remove the group, because it is finished or its replicas should be grouped again."""
        with self._queue.alone():
            self._queue.forget(self.group)

    def give_up(self, diverged: Iterable[str]) -> None:
        """Remove the group because some of its runs diverged, and record these, so that they are not tried again."""
        with self._queue.alone():
            self._queue.folder.remember_diverged(diverged)
            self._queue.forget(self.group)
