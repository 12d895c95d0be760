import hashlib
from pathlib import Path

import pytest
from graph_files import tiny_spec, write_npz

from gumbel_mpnn._util.errors import DataError, MissingDataError
from gumbel_mpnn.data import locate
from gumbel_mpnn.data.files import cache_root, find, obtain, search_roots
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.data.spec import File, Form

FILE = File("a/b.npz", "http://x/b.npz", hashlib.sha256(b"content").hexdigest())


def put(root, content=b"content", file=FILE):
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_order_of_the_roots(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("GUMBEL_MPNN_DATA", str(tmp_path / "variable"))
    (tmp_path / "given").mkdir()
    assert search_roots(tmp_path / "given") == [tmp_path / "given", tmp_path / "variable", cache]
    in_cache = put(cache)
    assert find(FILE, tmp_path / "given") == in_cache
    in_variable = put(tmp_path / "variable")
    assert find(FILE, tmp_path / "given") == in_variable
    in_given = put(tmp_path / "given")
    assert find(FILE, tmp_path / "given") == in_given
    assert find(FILE) == in_variable


def test_the_cache_without_xdg_is_in_the_home_folder(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_root() == Path("/home/someone/.cache/gumbel-mpnn")


def test_a_missing_file_is_downloaded_into_the_cache(tmp_path, serve, cache):
    serve(b"content")
    assert obtain("tiny", [FILE], tmp_path) == [cache / "a/b.npz"]
    assert (cache / "a/b.npz").read_bytes() == b"content"


def test_offline_one_sentence_names_the_files_and_the_folder(tmp_path, cache):
    other = File("c.npz", "https://x/c.npz")
    put(cache)
    (tmp_path / "given").mkdir()
    with pytest.raises(MissingDataError) as caught:
        obtain("tiny", [FILE, other, File("d.npz", "https://x/d.npz")], tmp_path / "given")
    message = str(caught.value)
    assert message.startswith("data set 'tiny' lacks c.npz, d.npz, found under none of")
    assert "could not be downloaded" in message
    assert "no network in tests" in message
    assert message.endswith(f"put them in {tmp_path / 'given'} under those names")
    assert "a/b.npz" not in message


def test_without_a_root_the_cache_is_the_folder(cache):
    with pytest.raises(MissingDataError, match=f"put it in {cache} under that name"):
        obtain("tiny", [FILE])


def test_a_file_without_public_original_starts_no_download(serve, cache):
    serve(b"content")
    with pytest.raises(MissingDataError, match=r"lacks a/b\.npz, own\.npz, found under none of .*: put them in"):
        obtain("tiny", [FILE, File("own.npz")])
    assert not cache.exists()


@pytest.mark.parametrize("content", [b"conten", b"c0ntent"])
def test_a_truncated_or_altered_file_is_named(tmp_path, content):
    path = put(tmp_path, content)
    with pytest.raises(DataError, match=f"{path} is not the published file .*: delete it"):
        obtain("tiny", [FILE], tmp_path)


def test_locate_tells_what_is_where(tmp_path, cache):
    structure = Form((File("incomplete/tiny.npz"),), read_graph, features=False)
    split = File("splits/0.npz", "http://x/0.npz")
    plain = tiny_spec()
    spec = tiny_spec(forms=(*plain.forms, structure), protocols=("geom-gcn",), split_files=(split,))

    presence = locate(spec, tmp_path)
    assert (presence.found, presence.folder, presence.complete) == ({}, tmp_path, False)
    assert [file.path for file in presence.missing] == ["tiny/tiny.npz", "splits/0.npz"]
    assert not presence.downloadable
    assert not presence.without_features

    path = write_npz(tmp_path / "tiny/tiny.npz")
    write_npz(cache / "incomplete/tiny.npz")
    presence = locate(spec, tmp_path)
    assert presence.found == {"tiny/tiny.npz": path}
    assert presence.missing == (split,)
    assert presence.downloadable
    assert presence.without_features

    put(tmp_path, file=split)
    assert locate(spec, tmp_path).complete
