"""Files of the user: compressed, truncated, from pipes, from addresses, and of odd content."""

import bz2
import gzip
import io
import lzma
import os
import struct
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import networkx
import numpy as np
import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import from_csv, from_graphml, from_networkx, from_npz, save_graph
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.npz import read_npz
from gumbel_mpnn.runs.loading import read_again
from helpers import small_data

NODES = "id,a,kind\n" + "".join(f"n{k},{k / 7},{'xy'[k % 2]}\n" for k in range(40))
EDGES = "source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(39))


def tarred(content):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("folder/nodes.csv")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nodes.csv", content)
    return out.getvalue()


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": zipped,
    ".tar": tarred,
    ".tar.gz": lambda content: gzip.compress(tarred(content)),
    ".tar.xz": lambda content: lzma.compress(tarred(content)),
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_files_are_read(tmp_path, suffix):
    path = tmp_path / f"nodes.csv{suffix}"
    path.write_bytes(PACKERS[suffix](NODES.encode()))
    assert from_csv(path, label="kind").num_nodes == 40
    networkx.write_graphml(networkx.path_graph(4), tmp_path / "plain.graphml")
    path = tmp_path / f"graph.graphml{suffix}"
    path.write_bytes(PACKERS[suffix]((tmp_path / "plain.graphml").read_bytes()))
    assert from_graphml(path).num_nodes == 4


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("read", [lambda path: from_csv(path, label="kind"), from_graphml], ids=["csv", "graphml"])
def test_a_truncated_file_is_told(tmp_path, suffix, read):
    packed = PACKERS[suffix](NODES.encode())
    path = tmp_path / f"nodes.csv{suffix}"
    for keep in (1, 9, len(packed) // 20, len(packed) // 2, len(packed) - 1):
        if suffix == ".tar" and keep > 512 + len(NODES):  # only padding is missing
            continue
        path.write_bytes(packed[:keep])
        with pytest.raises(DataError, match=rf"cannot decompress {path} \(.+\): it is truncated or damaged"):
            read(path)


def test_zstd(tmp_path):
    path = tmp_path / "nodes.csv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    if "zstandard" not in sys.modules:
        try:
            import zstandard  # noqa: F401
        except ImportError:
            with pytest.raises(DataError, match="this needs the package zstandard: pip install zstandard"):
                from_csv(path)
            return
    with pytest.raises(DataError, match="cannot decompress"):
        from_csv(path)
    packed = sys.modules["zstandard"].compress(NODES.encode())
    path.write_bytes(packed)
    assert from_csv(path, label="kind").num_nodes == 40
    path.write_bytes(packed[:-5])
    with pytest.raises(DataError, match="cannot decompress"):
        from_csv(path)


@pytest.mark.parametrize("count", [0, 2])
def test_an_archive_of_other_than_one_file(tmp_path, count):
    with tarfile.open(tmp_path / "nodes.tar", "w") as tar, zipfile.ZipFile(tmp_path / "nodes.zip", "w") as zip:
        for k in range(count):
            (tmp_path / f"{k}.csv").write_text(NODES)
            tar.add(tmp_path / f"{k}.csv")
            zip.write(tmp_path / f"{k}.csv")
    for name in ("nodes.tar", "nodes.zip"):
        with pytest.raises(DataError, match=f"{name}: it holds {count} files: give an archive of one file"):
            from_csv(tmp_path / name)


@pytest.mark.parametrize("read", [from_csv, from_npz, from_graphml])
@pytest.mark.parametrize("address", ["http://x.org/nodes.csv", "https://x.org/a.npz", "s3://a/b", "file:///etc/passwd"])
def test_an_address_is_refused(read, address):
    with pytest.raises(DataError, match=f"{address} is an address, not a file: download it first"):
        read(address)


def test_what_is_no_file(tmp_path):
    for read in (from_csv, from_npz, from_graphml):
        with pytest.raises(DataError, match=r"'a\\x00b' is not the path of a file: it has a null character"):
            read("a\0b")
        with pytest.raises(DataError, match=f"there is no file {tmp_path / 'none'}: check the path"):
            read(tmp_path / "none")
        with pytest.raises(DataError, match=f"{tmp_path} is a folder: give the path of a file"):
            read(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DataError, match=r"cannot open .*loop: Too many levels of symbolic links; check"):
        from_csv(tmp_path / "loop")


class TestPipes:
    @pytest.fixture
    def pipe(self, tmp_path):
        """A function that makes a pipe from which a content can be read once, as `<(...)` of a shell."""

        def make(content):
            read, write = os.pipe()
            made.append(read)
            threading.Thread(target=self.write, args=(write, content), daemon=True).start()
            return Path(f"/dev/fd/{read}")

        made = []
        yield make
        for handle in made:
            os.close(handle)

    @staticmethod
    def write(handle, content):
        with os.fdopen(handle, "wb") as file:
            file.write(content)

    def test_csv(self, pipe):
        data = from_csv(pipe(NODES.encode() * 1), pipe(EDGES.encode()), label="kind")
        assert (data.num_nodes, data.num_edges, data.name) == (40, 78, "own")
        assert data.source_files == {}

    def test_npz_and_graphml(self, pipe, tmp_path):
        save_graph(small_data(), tmp_path / "graph.npz")
        assert from_npz(pipe((tmp_path / "graph.npz").read_bytes())).num_nodes == 24
        save_graph(small_data(), tmp_path / "graph.graphml")
        data = from_graphml(pipe((tmp_path / "graph.graphml").read_bytes()))
        assert (data.num_nodes, data.name, data.source_files) == (24, "own", {})

    def test_a_file_is_opened_anew_and_a_pipe_is_read_once(self, pipe, tmp_path):
        (tmp_path / "file").write_bytes(b"content")
        for file in (InputFile(tmp_path / "file"), InputFile(pipe(b"content"))):
            for _ in range(2):
                with file.open() as content:
                    assert content.read() == b"content"

    def test_files_with_names_can_be_read_again(self, tmp_path):
        (tmp_path / "nodes.csv").write_text(NODES)
        assert read_again(from_csv(tmp_path / "nodes.csv", label="kind").source_files).num_nodes == 40


def npz(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(header, content=b""):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


class TestNpz:
    @pytest.mark.parametrize(
        ("member", "message"),
        [
            (b"not an array", "contains 'edges.npy', which is not an array: write it with np.savez"),
            (b"", "contains 'edges.npy', which is not an array"),
            (npy("{'descr': '<i8', 'fortran_order': False, 'shape': (10**12, 2), }"), "is not a complete npz file"),
            (npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000, 2), }"), "which is not its size"),
            (npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-1, 2), }", bytes(16)), "which is not its size"),
            (npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", bytes(17)), "which is not its size"),
            (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)), "holds Python objects"),
            (npy("{'descr': '<q9', 'fortran_order': False, 'shape': (1,), }", bytes(8)), "is not a complete npz file"),
            (npy("{'descr': '<i8'"), "is not a complete npz file"),
            (b"\x93NUMPY\x09\x00" + bytes(100), "has an unknown version or type"),
            (b"\x93NUMPY\x01\x00", "is not a complete npz file"),
        ],
        ids=range(11),
    )
    def test_odd_members(self, tmp_path, member, message):
        path = tmp_path / "graph.npz"
        npz(path, {"edges.npy": member})
        with pytest.raises(DataError, match=message) as caught:
            from_npz(path)
        assert str(path) in str(caught.value)

    def test_members_that_are_no_arrays(self, tmp_path):
        save_graph(small_data(), tmp_path / "graph.npz")
        with zipfile.ZipFile(tmp_path / "graph.npz", "a") as archive:
            archive.writestr("readme.txt", "hello")
        with pytest.raises(DataError, match=r"contains 'readme.txt', which is not an array"):
            from_npz(tmp_path / "graph.npz")

    def test_an_encrypted_member(self, tmp_path):
        path = tmp_path / "graph.npz"
        np.savez(path, edges=np.zeros((1, 2), dtype=int))
        content = bytearray(path.read_bytes())
        for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(signature) + flags] |= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"is not a complete npz file \(.*encrypted"):
            from_npz(path)

    def test_an_unknown_compression(self, tmp_path):
        path = tmp_path / "graph.npz"
        np.savez(path, edges=np.zeros((1, 2), dtype=int))
        content = bytearray(path.read_bytes())
        for signature, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            content[content.index(signature) + method] = 97
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not a complete npz file"):
            from_npz(path)

    def test_what_numpy_writes_is_read(self, tmp_path):
        arrays = {
            "text": np.array(["a", "bcd"]),
            "number": np.int64(3),
            "none": np.empty((0, 2)),
            "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            "swapped": np.arange(3, dtype=">i4"),
        }
        np.savez_compressed(tmp_path / "all.npz", **arrays)
        read = read_npz(tmp_path / "all.npz")
        assert read.keys() == arrays.keys()
        assert all(np.array_equal(read[name], value) for name, value in arrays.items())


@pytest.mark.parametrize("encoding", ["nonsense", "utf-7", "cp037", "rot13", "hex", "idna"])
def test_graphml_of_unknown_encodings(tmp_path, encoding):
    path = tmp_path / "graph.graphml"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?><graphml><graph edgedefault="directed"/></graphml>')
    with pytest.raises(DataError, match=f"{path} is not a valid GraphML file"):
        from_graphml(path)


@pytest.mark.parametrize("content", ["<graphml/>", "<a>" * 5000, "", "\0"])
def test_graphml_of_odd_content(tmp_path, content):
    path = tmp_path / "graph.graphml"
    path.write_text(content)
    with pytest.raises(DataError, match=f"{path} is not a valid GraphML file"):
        from_graphml(path)


CONTROLS = ["\x01", "\x0b", "\x7f", "\x85", "\ufffe"]


class TestControlCharacters:
    @pytest.mark.parametrize("character", CONTROLS)
    def test_in_csv_files(self, tmp_path, character):
        (tmp_path / "nodes.csv").write_text(NODES.replace("n3,", f"n{character}3,"))
        with pytest.raises(DataError, match=r"the node id .* of .*nodes.csv contains the character .*: remove it"):
            from_csv(tmp_path / "nodes.csv", label="kind")
        (tmp_path / "nodes.csv").write_text(NODES.replace(",x", f",x{character}z"))
        with pytest.raises(DataError, match=r"the label .* of .*nodes.csv contains the character"):
            from_csv(tmp_path / "nodes.csv", label="kind")

    @pytest.mark.parametrize("character", CONTROLS)
    def test_in_networks(self, character):
        graph = networkx.path_graph(3)
        graph.add_node(f"a{character}b")
        with pytest.raises(DataError, match=r"the node id .* of the NetworkX graph contains the character"):
            from_networkx(graph)

    @pytest.mark.parametrize("what", ["node_ids", "class_names"])
    def test_in_npz_files_and_graphs(self, tmp_path, what):
        data = small_data()
        names = [f"name{k}" for k in range(24 if what == "node_ids" else 3)]
        data[what] = names
        save_graph(data, tmp_path / "graph.npz")
        arrays = {**read_npz(tmp_path / "graph.npz"), what: np.array(["a\x02", *names[1:]])}
        np.savez(tmp_path / "odd.npz", **arrays)
        with pytest.raises(DataError, match=r"odd.npz contains the character '\\x02'"):
            from_npz(tmp_path / "odd.npz")
        data[what] = ["a\x02", *names[1:]]
        with pytest.raises(DataError, match="of the graph contains the character"):
            save_graph(data, tmp_path / "out.graphml")
        assert not (tmp_path / "out.graphml").exists()
