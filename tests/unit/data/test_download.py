import errno
import hashlib
import io
import itertools
import tempfile
import time
import urllib.request
import zipfile

import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import download as module
from gumbel_mpnn.data import specs
from gumbel_mpnn.data.download import download
from gumbel_mpnn.data.spec import DatasetSpec, File

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
    file = File("a/b.npz", "https://x/b.npz", hashlib.sha256(CONTENT).hexdigest())
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
    download([File("b.npz", original.as_uri(), hashlib.sha256(CONTENT).hexdigest())], tmp_path / "root")
    assert (tmp_path / "root/b.npz").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(tmp_path, serve):
    serve(CONTENT)
    with pytest.raises(DataError, match=r"https://x/b\.npz did not return the published a/b\.npz"):
        download([File("a/b.npz", "https://x/b.npz", "0" * 64)], tmp_path)
    assert left_in(tmp_path) == []


def test_a_connection_that_breaks_off_leaves_nothing(tmp_path, serve):
    serve(CONTENT[:-1], len(CONTENT))
    with pytest.raises(OSError, match="broke off after 2999999 of 3000000 bytes"):
        download([File("b.npz", "https://x/b.npz")], tmp_path)
    assert left_in(tmp_path) == []


def test_a_cache_that_may_not_be_written_to_names_no_temporary_file(tmp_path, serve, monkeypatch):
    def refuse(suffix, prefix, dir):
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/{prefix}x")

    serve(CONTENT)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(PermissionError) as caught:
        download([File("b.npz", "https://x/b.npz")], tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_a_file_that_cannot_be_put_in_place_is_named(tmp_path, serve):
    serve(CONTENT)
    (tmp_path / "b.npz" / "of_others").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as caught:
        download([File("b.npz", "https://x/b.npz")], tmp_path)
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "b.npz"), None)
    assert left_in(tmp_path) == []


def test_an_interrupted_download_leaves_nothing(tmp_path, serve):
    serve(CONTENT)

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download([File("b.npz", "https://x/b.npz")], tmp_path, interrupt)
    assert left_in(tmp_path) == []


def test_no_network_makes_no_folder(tmp_path):
    with pytest.raises(OSError, match="no network in tests"):
        download([File("b.npz", "https://x/b.npz")], tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_an_earlier_file_survives_a_failed_download(tmp_path, serve):
    (tmp_path / "b.npz").write_bytes(b"earlier")
    serve(CONTENT)
    with pytest.raises(DataError, match="its sha256 differs"):
        download([File("b.npz", "https://x/b.npz", "0" * 64)], tmp_path)
    assert (tmp_path / "b.npz").read_bytes() == b"earlier"


MEMBERS = [
    File("arxiv/raw/edge", "https://x/a.zip", member="a/raw/edge"),
    File("arxiv/raw/feat", "https://x/a.zip", hashlib.sha256(b"feat").hexdigest(), "a/raw/feat"),
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


class TestSafety:
    def test_every_file_has_a_checksum_or_comes_by_https(self):
        found = [
            file
            for spec in specs.values()
            if isinstance(spec, DatasetSpec)
            for form in spec.forms
            for file in (*form.files, *spec.split_files)
            if file.url
        ]
        assert found
        assert [file.path for file in found if not (file.sha256 or file.url.startswith("https://"))] == []

    @pytest.mark.parametrize("url", ["http://x/b.npz", "ftp://x/b.npz", "file:///b.npz"])
    def test_a_file_without_a_checksum_is_not_downloaded_openly(self, tmp_path, serve, url):
        serve(CONTENT)
        with pytest.raises(DataError, match=rf"b\.npz has no known checksum, .*{url}, which is not https"):
            download([File("b.npz", url)], tmp_path)
        download([File("b.npz", url, hashlib.sha256(CONTENT).hexdigest())], tmp_path)
        assert left_in(tmp_path) == ["b.npz"]

    def test_nor_after_a_redirection(self, tmp_path, serve):
        serve(CONTENT, url="http://elsewhere/b.npz")
        with pytest.raises(DataError, match=r"http://elsewhere/b\.npz, which is not https"):
            download([File("b.npz", "https://x/b.npz")], tmp_path)

    @pytest.mark.parametrize("promised", [True, False])
    def test_a_size_that_cannot_be(self, tmp_path, serve, monkeypatch, promised):
        monkeypatch.setattr(module, "MOST_BYTES", 10**6)
        serve(CONTENT, len(CONTENT) if promised else None)
        with pytest.raises(DataError, match=r"https://x/b\.npz .* 1000000"):
            download([File("b.npz", "https://x/b.npz")], tmp_path)
        assert left_in(tmp_path) == []

    def test_a_server_that_trickles(self, tmp_path, serve, monkeypatch):
        """Each read is in time, but not all of them together."""
        clock = itertools.count(0, 20)
        monkeypatch.setattr(time, "monotonic", lambda: next(clock))
        monkeypatch.setattr(module, "MOST_SECONDS", 50)
        serve(CONTENT * 2)
        with pytest.raises(OSError, match=r"https://x/b\.npz took longer than 50 seconds"):
            download([File("b.npz", "https://x/b.npz")], tmp_path)
        assert left_in(tmp_path) == []

    @pytest.mark.parametrize("length", ["abc", "-5", "1e3", "9" * 5000, "٣"])
    def test_an_odd_length(self, tmp_path, serve, length):
        serve(CONTENT, length)
        with pytest.raises(DataError, match=r"odd Content-Length"):
            download([File("b.npz", "https://x/b.npz")], tmp_path)

    def test_an_odd_encoding(self, tmp_path, serve):
        serve(CONTENT, encoding="gzip")
        with pytest.raises(DataError, match="unknown encoding 'gzip'"):
            download([File("b.npz", "https://x/b.npz")], tmp_path)

    def test_a_zip_bomb(self, tmp_path, serve, monkeypatch):
        monkeypatch.setattr(module, "MOST_BYTES", 10**5)
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/raw/edge", bytes(10**6))
        serve(bomb.getvalue())
        with pytest.raises(DataError, match=r"a/raw/edge in https://x/a\.zip is larger than 100000 bytes"):
            download(MEMBERS[:1], tmp_path)
        assert left_in(tmp_path) == []

    @pytest.mark.parametrize(("place", "value"), [(6, 1), (8, 97)], ids=["encrypted", "compression"])
    def test_an_odd_zip(self, tmp_path, serve, place, value):
        content = bytearray(zipped(a__raw__edge=b"edge"))
        content[place] = content[content.index(b"PK\x01\x02") + place + 2] = value
        serve(bytes(content))
        with pytest.raises(DataError, match="did not return the expected zip archive"):
            download(MEMBERS[:1], tmp_path)
        assert left_in(tmp_path) == []

    def test_what_a_killed_download_left_is_swept(self, tmp_path, serve):
        (tmp_path / ".download-old").write_bytes(CONTENT)
        (tmp_path / ".download-killed").mkdir()
        (tmp_path / ".download-killed" / "download").write_bytes(CONTENT)
        serve(CONTENT)
        download([File("b.npz", "https://x/b.npz")], tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["b.npz"]
