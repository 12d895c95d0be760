"""Files are whole or not there, and damage in them is noticed."""

import errno
import json
import math
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gumbel_mpnn import UserError
from gumbel_mpnn.util import files
from gumbel_mpnn.util.files import is_stream, write_atomically


@pytest.fixture
def path(tmp_path):
    return tmp_path / "group" / "graph.npz"


class TestWriting:
    def test_folders_are_made_and_files_replaced(self, path):
        for content in (b"one", b"two"):
            write_atomically(path, content)
            assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]

    @pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["full", "interrupted"])
    @pytest.mark.parametrize("before", [b"old", None], ids=["replaces", "new"])
    @pytest.mark.parametrize("place", [(os, "fsync"), (Path, "replace")], ids=["writing", "moving"])
    def test_a_failed_write_leaves_what_was_there(self, path, monkeypatch, place, before, error):
        if before is not None:
            write_atomically(path, before)

        def fail(*args):
            raise error

        monkeypatch.setattr(*place, fail)
        with pytest.raises(type(error)):
            write_atomically(path, b"new")
        assert [file.read_bytes() for file in path.parent.iterdir()] == ([before] if before else [])

    def test_a_killed_write_leaves_what_was_there(self, path):
        write_atomically(path, b"old")
        code = (
            "import os, signal, sys; from pathlib import Path; from gumbel_mpnn.util.files import write_atomically\n"
            "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
            "write_atomically(Path(sys.argv[1]), b'never finished')"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert path.read_bytes() == b"old"

    @pytest.mark.parametrize("method", ["open", "replace"])
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
    def test_errors_name_the_file_that_was_wanted(self, path, monkeypatch, method, number):
        def refuse(self, target):
            raise OSError(number, os.strerror(number), str(self), None, str(target))

        path.parent.mkdir()
        monkeypatch.setattr(Path, method, refuse)
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            write_atomically(path, b"new")
        assert (caught.value.errno, caught.value.filename) == (number, str(path))

    def test_a_read_only_file_is_not_replaced(self, tmp_path, monkeypatch):
        path = tmp_path / "read-only.csv"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, "access", lambda *_: False)  # for root, every file may be written
        with pytest.raises(PermissionError, match=r"read-only\.csv"):
            write_atomically(path, b"new")
        assert path.read_bytes() == b"old"

    def test_modes(self, path):
        """A new file follows the umask; a file that is replaced keeps its mode."""
        write_atomically(path, b"")
        plain = path.with_name("plain")
        plain.write_bytes(b"")
        assert path.stat().st_mode == plain.stat().st_mode
        path.chmod(0o600)
        write_atomically(path, b"new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.parametrize("exists", [True, False])
    def test_a_link_leads_to_its_target(self, tmp_path, exists):
        target, link = tmp_path / "target.csv", tmp_path / "link.csv"
        if exists:
            target.write_bytes(b"old")
        link.symlink_to("target.csv")
        write_atomically(link, b"new")
        assert link.is_symlink()
        assert target.read_bytes() == b"new"

    def test_a_pipe_is_written_to(self, tmp_path):
        pipe, read = tmp_path / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
        reader.start()
        write_atomically(pipe, b"new" * 50_000)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        reader.join(10)
        assert read == [b"new" * 50_000]

    @pytest.mark.parametrize("name", ["-", "/dev/stdout"])
    def test_standard_output(self, tmp_path, name, capfdbinary, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write_atomically(Path(name), b"\x00 binary")
        assert capfdbinary.readouterr().out == b"\x00 binary"
        assert list(tmp_path.iterdir()) == []

    def test_which_paths_are_streams(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "file").touch()
        assert [is_stream(Path(name)) for name in ("-", "/dev/null", "/dev/stdout")] == [True] * 3
        assert [is_stream(tmp_path / name) for name in ("pipe", "file", "missing", ".")] == [True, False, False, False]

    def test_folders_that_cannot_be_written_to(self, tmp_path):
        (tmp_path / "file").touch()
        files.check_writable(tmp_path / "new" / "folder")
        with pytest.raises(UserError, match="file is a file"):
            files.check_writable(tmp_path / "file" / "folder")


def strict(text):
    """Read JSON as other programs do."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


class TestJson:
    def test_numbers_that_are_not_finite_are_null(self):
        value = {"a": [1.5, math.nan, (math.inf, {"b": -math.inf})], "c": "NaN", "d": None, "e": True}
        assert strict(files.to_json(value)) == {"a": [1.5, None, [None, {"b": None}]], "c": "NaN", "d": None, "e": True}

    VALUES: tuple = ({"a": 1.5, "b": ["ä", math.nan]}, [{"epoch": 0, "val": None}, {"epoch": 1, "val": 0.25}], [])

    @pytest.mark.parametrize("values", VALUES)
    def test_every_damaged_byte_is_noticed(self, values):
        one = isinstance(values, dict)
        write = files.json_with_checksum if one else files.lines_with_checksum
        read = files.read_json if one else files.read_lines
        content = write(values)
        assert read(content) == strict(files.to_json(values))
        for place in range(len(content)):
            changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
            try:
                assert read(changed) == strict(files.to_json(values))  # only a blank was changed
            except ValueError:
                continue
        for part in (content[: len(content) // 2], b"", b"[]", b"{}", b'{"a": 1.5}', b"[" * 100_000):
            with pytest.raises(ValueError, match=r"checksum|JSON|Expecting|Unterminated|brackets|char"):
                read(part)
