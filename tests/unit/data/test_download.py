import hashlib
import io
import urllib.request
import zipfile

import pytest

from gumbel_mpnn.data import File
from gumbel_mpnn.data.public_files import find, obtain, search_roots
from gumbel_mpnn.util.errors import DataError, MissingDataError, UserError

CONTENT = b"0123456789" * 300
FILE = File("a/b.npz", "https://x/b.npz", hashlib.sha256(CONTENT).hexdigest())
URLOPEN = urllib.request.urlopen  # before any test takes it away


def put(root, content=CONTENT, file=FILE):
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def left_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


def test_the_order_of_the_folders(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("GUMBEL_MPNN_DATA", str(tmp_path / "variable"))
    (tmp_path / "given").mkdir()
    assert search_roots(tmp_path / "given") == [tmp_path / "given", tmp_path / "variable", cache]
    for root in (cache, tmp_path / "variable", tmp_path / "given"):
        path = put(root)
        assert find(FILE, tmp_path / "given") == path
    with pytest.raises(UserError, match="there is no folder"):
        search_roots(tmp_path / "none")


def test_a_missing_file_is_downloaded_into_the_cache(tmp_path, monkeypatch, cache):
    monkeypatch.setattr(urllib.request, "urlopen", URLOPEN)
    original = put(tmp_path / "server")
    assert obtain("tiny", [File("b.npz", original.as_uri(), FILE.sha256)]) == [cache / "b.npz"]
    assert (cache / "b.npz").read_bytes() == CONTENT
    assert left_in(cache) == ["b.npz"]


def test_offline_one_sentence_names_the_files_and_the_folder(tmp_path, cache):
    put(cache)
    (tmp_path / "given").mkdir()
    with pytest.raises(MissingDataError) as caught:
        obtain("tiny", [FILE, File("c.npz", "https://x/c.npz"), File("d.npz", "https://x/d.npz")], tmp_path / "given")
    message = str(caught.value)
    assert message.startswith("data set 'tiny' lacks c.npz, d.npz, found under none of")
    assert "could not be downloaded (no network in tests" in message.replace("<urlopen error ", "")
    assert message.endswith(f"put the missing files in {tmp_path / 'given'} under these names")


def test_a_file_without_public_original_starts_no_download(serve, cache):
    serve(CONTENT)
    with pytest.raises(
        MissingDataError, match=r"lacks a/b\.npz, own\.npz, found under none of .*: put the missing files in"
    ):
        obtain("tiny", [FILE, File("own.npz")])
    assert not cache.exists()


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"0"])
def test_a_truncated_or_altered_file_is_named(tmp_path, content):
    path = put(tmp_path, content)
    with pytest.raises(DataError, match=f"{path} is not the published file .*: delete it"):
        obtain("tiny", [FILE], tmp_path)


def test_a_wrong_checksum_leaves_nothing(serve, cache):
    serve(CONTENT[:-1])
    with pytest.raises(DataError, match=r"https://x/b\.npz did not return the published a/b\.npz"):
        obtain("tiny", [FILE])
    assert left_in(cache) == []


MEMBERS = [
    File("arxiv/raw/edge", "https://x/a.zip", member="a/raw/edge"),
    File("arxiv/raw/feat", "https://x/a.zip", hashlib.sha256(b"feat").hexdigest(), "a/raw/feat"),
]


def test_only_the_wanted_members_of_an_archive_are_unpacked(serve, cache):
    serve(zipped(a__raw__edge=b"edge", a__raw__feat=b"feat", a__other=b"other", **{"..__escaped": b"bad"}))
    obtain("tiny", MEMBERS)
    assert left_in(cache.parent) == [f"{cache.name}/arxiv/raw/edge", f"{cache.name}/arxiv/raw/feat"]
    assert (cache / "arxiv/raw/edge").read_bytes() == b"edge"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped(a__raw__edge=b"edge"), "did not return the expected zip archive"),
        (zipped(a__raw__edge=b"edge", a__raw__feat=b"altered"), "did not return the published arxiv/raw/feat"),
        (zipped(a__raw__edge=b"edge", a__raw__feat=b"feat")[:-9], "did not return the expected zip archive"),
        (b"<html>moved</html>", "did not return the expected zip archive"),
    ],
)
def test_a_bad_archive_leaves_nothing(serve, cache, content, message):
    serve(content)
    with pytest.raises(DataError, match=message):
        obtain("tiny", MEMBERS)
    assert left_in(cache) == []
