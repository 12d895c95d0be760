import errno
import hashlib
import io
import tempfile
import urllib.request
import zipfile

import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.download import download
from gumbel_mpnn.data.spec import File

CONTENT = b"0123456789" * 300_000
URLOPEN = urllib.request.urlopen  # before any test takes it away


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


def left_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_whole_file_is_put_in_place_with_progress(tmp_path, serve):
    serve(CONTENT, len(CONTENT))
    seen = []
    file = File("a/b.npz", "http://x/b.npz", hashlib.sha256(CONTENT).hexdigest())
    download([file], tmp_path, lambda done, total: seen.append((done, total)))
    assert (tmp_path / "a/b.npz").read_bytes() == CONTENT
    assert left_in(tmp_path) == ["a/b.npz"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 1


def test_a_real_url_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", URLOPEN)
    original = tmp_path / "original"
    original.write_bytes(CONTENT)
    download([File("b.npz", original.as_uri())], tmp_path / "root")
    assert (tmp_path / "root/b.npz").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(tmp_path, serve):
    serve(CONTENT)
    with pytest.raises(DataError, match=r"http://x/b\.npz did not return the published a/b\.npz"):
        download([File("a/b.npz", "http://x/b.npz", "0" * 64)], tmp_path)
    assert left_in(tmp_path) == []


def test_a_connection_that_breaks_off_leaves_nothing(tmp_path, serve):
    serve(CONTENT[:-1], len(CONTENT))
    with pytest.raises(OSError, match="broke off after 2999999 of 3000000 bytes"):
        download([File("b.npz", "http://x/b.npz")], tmp_path)
    assert left_in(tmp_path) == []


def test_a_cache_that_may_not_be_written_to_names_no_temporary_file(tmp_path, serve, monkeypatch):
    def refuse(prefix, dir):
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/{prefix}x")

    serve(CONTENT)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(PermissionError) as caught:
        download([File("b.npz", "http://x/b.npz")], tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_a_file_that_cannot_be_put_in_place_is_named(tmp_path, serve):
    serve(CONTENT)
    (tmp_path / "b.npz" / "of_others").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as caught:
        download([File("b.npz", "http://x/b.npz")], tmp_path)
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "b.npz"), None)
    assert left_in(tmp_path) == []


def test_an_interrupted_download_leaves_nothing(tmp_path, serve):
    serve(CONTENT)

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download([File("b.npz", "http://x/b.npz")], tmp_path, interrupt)
    assert left_in(tmp_path) == []


def test_no_network_makes_no_folder(tmp_path):
    with pytest.raises(OSError, match="no network in tests"):
        download([File("b.npz", "http://x/b.npz")], tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_an_earlier_file_survives_a_failed_download(tmp_path, serve):
    (tmp_path / "b.npz").write_bytes(b"earlier")
    serve(CONTENT)
    with pytest.raises(DataError, match="its sha256 differs"):
        download([File("b.npz", "http://x/b.npz", "0" * 64)], tmp_path)
    assert (tmp_path / "b.npz").read_bytes() == b"earlier"


MEMBERS = [
    File("arxiv/raw/edge", "http://x/a.zip", member="a/raw/edge"),
    File("arxiv/raw/feat", "http://x/a.zip", hashlib.sha256(b"feat").hexdigest(), "a/raw/feat"),
]


def test_only_the_wanted_members_of_an_archive_are_unpacked(tmp_path, serve):
    serve(zipped(a__raw__edge=b"edge", a__raw__feat=b"feat", a__other=b"other", **{"..__escaped": b"bad"}))
    download(MEMBERS, tmp_path / "root")
    assert left_in(tmp_path) == ["root/arxiv/raw/edge", "root/arxiv/raw/feat"]
    assert (tmp_path / "root/arxiv/raw/edge").read_bytes() == b"edge"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped(a__raw__edge=b"edge"), "did not return the expected zip archive"),
        (zipped(a__raw__edge=b"edge", a__raw__feat=b"altered"), "did not return the published arxiv/raw/feat"),
        (zipped(a__raw__edge=b"edge", a__raw__feat=b"feat")[:-9], "did not return the expected zip archive"),
        (b"<html>moved</html>", "did not return the expected zip archive"),
    ],
)
def test_a_bad_archive_leaves_nothing(tmp_path, serve, content, message):
    serve(content)
    with pytest.raises(DataError, match=message):
        download(MEMBERS, tmp_path)
    assert left_in(tmp_path) == []
