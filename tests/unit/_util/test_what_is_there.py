"""Writing follows what is there: links, pipes, descriptors, modes and owners; and nothing stays behind."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gumbel_mpnn._util.files import is_stream, sweep, write_atomically
from gumbel_mpnn._util.scratch import ScratchFolder

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_a_link_leads_to_its_target(tmp_path):
    target, link = tmp_path / "elsewhere" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("made.csv")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "made.csv").read_bytes() == b"new"


def test_a_device_behind_a_link_is_written_to(tmp_path):
    link = tmp_path / "nothing"
    link.symlink_to("/dev/null")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert stat.S_ISCHR(link.stat().st_mode)


def test_a_pipe_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"new" * 50_000)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(10)
    assert read == [b"new" * 50_000]


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output(tmp_path, name, capfdbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically(Path(name), b"\x00 binary")
    assert capfdbinary.readouterr().out == b"\x00 binary"
    assert list(tmp_path.iterdir()) == []


def test_a_descriptor_of_a_file_is_written_where_it_stands(tmp_path):
    path = tmp_path / "log"
    with path.open("wb", buffering=0) as file:
        file.write(b"before ")
        write_atomically(Path(f"/dev/fd/{file.fileno()}"), b"new")
        file.write(b" after")
    assert path.read_bytes() == b"before new after"


def test_which_paths_are_streams(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    assert [is_stream(Path(name)) for name in ("-", "/dev/null", "/dev/fd/63")] == [True] * 3
    assert [is_stream(tmp_path / name) for name in ("pipe", "file", "missing", ".")] == [True, False, False, False]


def test_the_mode_of_a_file_is_kept(tmp_path):
    path = tmp_path / "private.csv"
    path.touch()
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"new"


@as_root
def test_the_owner_of_a_file_is_kept(tmp_path):
    path = tmp_path / "theirs.csv"
    path.touch(mode=0o640)
    os.chown(path, 1234, 4321)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)
    assert path.read_bytes() == b"new"


def test_an_owner_that_cannot_be_kept(tmp_path, monkeypatch):
    """The file is overwritten in place, so that it stays theirs."""

    def refuse(*_):
        raise PermissionError

    path = tmp_path / "theirs.csv"
    path.write_bytes(b"a longer content than the new one")
    number = path.stat().st_ino
    monkeypatch.setattr(os, "fchown", refuse)
    fstat = os.fstat

    def of_others(handle):
        found = list(fstat(handle))
        found[stat.ST_UID] += 1
        return os.stat_result(found)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", of_others)
        write_atomically(path, b"new")
    assert (path.stat().st_ino, path.read_bytes()) == (number, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "read-only.csv"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # for root, every file may be written
    with pytest.raises(PermissionError, match=r"read-only\.csv"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


KILLED = """
import os, signal, sys
from pathlib import Path
from gumbel_mpnn._util.files import write_atomically
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path(sys.argv[1]), b"never finished")
"""


def killed_while_writing(path):
    """What a process that was killed while it wrote `path` leaves."""
    before = set(path.parent.iterdir())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = set(path.parent.iterdir()) - before
    return left


def test_what_a_killed_process_left_is_swept_by_the_next_writer(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    left, of_other = killed_while_writing(path), killed_while_writing(other)
    write_atomically(path, b"new")
    assert not left.exists()
    assert of_other.exists()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_being_written_and_what_is_not_ours_stays(tmp_path, monkeypatch):
    path, fsync, mine = tmp_path / "a.csv", os.fsync, tmp_path / ".a.csv.swp"
    mine.touch()

    def meanwhile(handle):
        sweep(tmp_path)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", meanwhile)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [mine, path]


def test_temporary_folders_of_killed_processes_are_swept(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from gumbel_mpnn._util.scratch import ScratchFolder\n"
        "scratch = ScratchFolder(folder=Path(sys.argv[1])); (scratch.path / 'file').touch()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=False)
    (left,) = tmp_path.iterdir()
    one, two = ScratchFolder(folder=tmp_path), ScratchFolder(folder=tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([one.path, two.path])
    assert not left.exists()
    one.cleanup()
    del two
    assert list(tmp_path.iterdir()) == []
