"""Faults at the n-th file operation under a folder: the process is killed, or the operation fails as on a bad disk.

They are armed in a forked child, for the rest of its life. Operations are seen by Python's audit hooks, which run
before them, and by wrappers of `open` and `os.fsync` for what has no audit event: writing and syncing.
"""

import builtins
import errno
import io
import os
import resource
import signal
import sys

NEVER = sys.maxsize
KILL, EIO, ENOSPC, TOO_LARGE = "kill", "EIO", "ENOSPC", "EFBIG"
FAULTS = (KILL, EIO, ENOSPC, TOO_LARGE)
"""EFBIG is a limit of the kernel on the size of files (`at` bytes), which other libraries meet as well."""
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.truncate", "os.chmod", "os.link")
_LOOKS = ("os.listdir", "os.scandir")
_FREES = ("os.remove", "os.rmdir")
"""What a full disk still allows."""
_real_open, _real_fsync = io.open, os.fsync


class FileFaults:
    """Counts the operations under `folder`, and makes number `at` (from 1) and what follows from it a fault.

    A disk that is full stays full, whereas EIO happens once. A write that fails has written its first half.
    """

    def __init__(self, folder, kind=KILL, at=NEVER):
        self.folder, self.kind, self.at = str(folder), kind, at
        self.count, self.writes = 0, list[int]()

    def arm(self):
        if self.kind == TOO_LARGE:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.at, self.at))
        sys.addaudithook(self._heard)
        io.open = builtins.open = self._open
        os.fsync = self._fsync
        return self

    def _heard(self, event, arguments):
        if event == "open":
            path, _, flags = arguments
            if self._is_ours(path):
                self._step(self._fail, writes=bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)), path=path)
        elif event in _CHANGES or event in _LOOKS:
            if self._is_ours(arguments[0]):
                changes = event not in _LOOKS and event not in _FREES
                self._step(self._fail, writes=changes, path=arguments[0])
        elif event == "fcntl.flock" and self.kind == KILL:
            self._step(self._fail, writes=False)

    def _open(self, file, mode="r", *arguments, **options):
        opened = _real_open(file, mode, *arguments, **options)
        return Written(opened, self) if set(mode) & set("wax+") and self._is_ours(file) else opened

    def _fsync(self, handle):
        self._step(self._fail, writes=True)
        _real_fsync(handle)

    def _is_ours(self, path):
        if path is None or isinstance(path, int):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self.folder)  # noqa: PTH100

    def _step(self, fail, writes, **details):
        """One operation, which is counted, and which fails if its turn has come."""
        self.count += 1
        if writes:
            self.writes.append(self.count)
        if self.count == self.at and self.kind == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == EIO and self.count == self.at:
            fail(errno.EIO, **details)
        if self.kind == ENOSPC and self.count >= self.at and writes:
            fail(errno.ENOSPC, **details)

    def _fail(self, number, path=None):
        raise OSError(number, os.strerror(number), *([] if path is None else [os.fsdecode(path)]))

    def write(self, file, content):
        """Write to a file that is open: half of the content if this is the fault."""
        half = content[: len(content) // 2]
        if self.kind == KILL and self.count + 1 == self.at:
            file.write(half)
            file.flush()

        def fail(number):
            file.write(half)
            self._fail(number)

        self._step(fail, writes=True)
        return file.write(content)


class Written:
    """A file open for writing, which counts its writes."""

    def __init__(self, file, faults):
        self._file, self._faults = file, faults

    def write(self, content):
        return self._faults.write(self._file, content)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __iter__(self):
        return iter(self._file)

    def __getattr__(self, name):
        return getattr(self._file, name)
