"""Damaged and hostile files for every reader: each must end in a result or in a sentence, and soon.

Files begin as valid ones. Bits are flipped, parts cut, repeated, swapped for those of another file, and replaced by
words that readers stumble over.
"""

import bz2
import gzip
import io
import lzma
import signal
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import networkx
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from gumbel_mpnn.data import check, from_csv, from_graphml, from_npz
from gumbel_mpnn.runs import list_runs
from gumbel_mpnn.runs.fit import fit
from gumbel_mpnn.runs.predict import DataFacts
from gumbel_mpnn.runs.run import load_run
from gumbel_mpnn.runs.store import read_learned, read_record
from gumbel_mpnn.settings.files import merge, parse_overrides, read_settings_file
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import load_tensors
from helpers import small_data

SECONDS = 20
"""A reader that takes longer hangs."""
QUICK = {"model": {"hidden_channels": 4}, "train": {"epochs": 2}}
NUMBERS = [b"NaN", b"-1", b"1e999", b"9" * 400, b"9" * 5000, b"0.5", b"9223372036854775808", b"1_0", b"0x10", b"true"]
TEXT = [b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\n", b"\r", b"\r\n\r\n", b",", b";", b"\t", "é‮😀".encode()]
JSON = [b"[" * 3000, b'{"a":' * 3000, b"null", b"[]", b"{}", b'""', b"Infinity"]
XML = [
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"<?xml version='1.0' encoding='odd'?>",
    b"&b;",
    b"<node id='n0'/>",
    b"<edge source='x' target='n0'/>",
    b"<",
    b">",
    b"]]>",
    b"double",
    b"boolean",
    b"long",
    b"directed",
]
TOML = [b"[", b"]", b"=", b"[[a]]", b"[" * 3000, b"1979-05-27", b"inf", b"'''", b"a.b.c", b"train", b"lr"]


class Hangs(BaseException):
    """Not an `Exception`, so that no reader takes it for a damaged file."""


@dataclass(frozen=True)
class Reader:
    """A file and what reads it, which gets its path."""

    file: str
    read: Callable[[Path], object]
    words: tuple[bytes, ...] = ()


def _nodes(path: Path) -> object:
    return check(from_csv(path, path.with_name("edges.csv"), "kind"))


def _edges(path: Path) -> object:
    return check(from_csv(path.with_name("nodes.csv"), path, "kind"))


def _setting(path: Path) -> object:
    return load_run(path.parents[1], data=small_data()).predictions()


def _history(path: Path) -> object:
    return load_run(path.parents[1], data=small_data()).history


def _trained_again(path: Path) -> object:
    return fit(small_data(), "gcn", settings=QUICK, splits=[0], runs=path.parents[4], device="cpu").records


NUMERIC = (*NUMBERS, *TEXT)
READERS = {
    "CSV of nodes": Reader("nodes.csv", _nodes, NUMERIC),
    "CSV of edges": Reader("edges.csv", _edges, NUMERIC),
    "CSV, gzip": Reader("nodes.csv.gz", _nodes),
    "CSV, bzip2": Reader("nodes.csv.bz2", _nodes),
    "CSV, xz": Reader("nodes.csv.xz", _nodes),
    "CSV, tar": Reader("nodes.csv.tar", _nodes, (b"ustar", b"\x00" * 512)),
    "npz": Reader("graph.npz", lambda path: check(from_npz(path)), (b"<f8", b"|O", b"(9999999999999,)", b"True")),
    "GraphML": Reader("graph.graphml", lambda path: check(from_graphml(path, "kind")), (*XML, *NUMERIC)),
    "GraphML, gzip": Reader("graph.graphml.gz", lambda path: check(from_graphml(path, "kind"))),
    "TOML": Reader("space.toml", lambda path: merge(read_settings_file(path)), (*TOML, *NUMERIC)),
    "overrides": Reader(
        "overrides", lambda path: parse_overrides(path.read_text(errors="replace").split("\n")), (*TOML, *NUMERIC)
    ),
    "record": Reader("{run}/record.json", read_record, (*JSON, *NUMERIC)),
    "list of runs": Reader("{run}/record.json", lambda path: list_runs(path.parents[4]), (*JSON, *NUMERIC)),
    "facts of the data": Reader("{setting}/data.json", lambda path: DataFacts.read(path.parent), (*JSON, *NUMERIC)),
    "curves": Reader("{run}/history.jsonl", _history, (*JSON, *NUMERIC)),
    "model": Reader("{run}/model.safetensors", _setting, (b"F32", b"F64", b"[9999999999999]", *JSON)),
    "tensors": Reader("{run}/model.safetensors", load_tensors, (b"F32", b"F64", b"[9999999999999]", *JSON)),
    "learned graph": Reader("{run}/graph.safetensors", lambda path: read_learned([path]), (b"F32", b"[9999999999999]")),
}


class Corpus:
    """Valid files of every kind in a folder, in which they are damaged one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        data = small_data(nodes=18, features=3, classes=2)
        rows = [f"n{k},{x[0]:.3f},{x[1]:.3f},{'ab'[y]}" for k, (x, y) in enumerate(zip(data.x, data.y, strict=True))]
        nodes = "\n".join(["id,f,g,kind", *rows, '"n 18",1,2,""']) + "\n"
        (folder / "nodes.csv").write_text(nodes)
        ends = [f"n{a},n{b},0.5" for a, b in data.edge_index.T.tolist()]
        (folder / "edges.csv").write_text("\n".join(["source,target,weight", *ends]) + "\n")
        for suffix, compress in {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}.items():
            (folder / f"nodes.csv.{suffix}").write_bytes(compress(nodes.encode()))
        with tarfile.open(folder / "nodes.csv.tar", "w") as archive:
            member = tarfile.TarInfo("nodes.csv")
            member.size = len(nodes.encode())
            archive.addfile(member, io.BytesIO(nodes.encode()))
        arrays = {"edges": data.edge_index.T.numpy(), "node_labels": data.y.numpy(), "node_features": data.x.numpy()}
        np.savez(folder / "graph.npz", **arrays, class_names=np.array(["a", "b"]))
        graph = networkx.Graph([(f"n{a}", f"n{b}", {"weight": 0.5}) for a, b in data.edge_index.T.tolist()])
        for k, label in enumerate(data.y.tolist()):
            graph.add_node(f"n{k}", f=float(data.x[k, 0]), flag=k % 2 == 0, kind="ab"[label])
        networkx.write_graphml(graph, folder / "graph.graphml")
        (folder / "graph.graphml.gz").write_bytes(gzip.compress((folder / "graph.graphml").read_bytes()))
        (folder / "space.toml").write_text('[train]\nlr = [0.01, 0.02]\n[model]\nnorm = "batch"\nresidual = true\n')
        (folder / "overrides").write_text("train.lr=0.01\nmodel.norm=batch\nrewiring.regularizer.margin=[1, 2]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = fit(
                small_data(), "gumbel-mpnn", settings=QUICK, splits=[0], runs=folder / "runs", device="cpu", preset=None
            )
        self.setting, self.run = run.folder.path, Path(run.folders[0])
        self.whole = {name: self.path(reader).read_bytes() for name, reader in READERS.items()}

    def path(self, reader: Reader) -> Path:
        """File of a reader."""
        return self.folder / reader.file.format(run=self.run, setting=self.setting)

    def read(self, name: str, content: bytes) -> str:
        """Read a file with this content; returns how it ended."""
        reader = READERS[name]
        path = self.path(reader)
        path.write_bytes(content)
        try:
            with _in_time(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader.read(path)
        except UserError:
            return "sentence"
        finally:
            path.write_bytes(self.whole[name])
        return "result"

    def fuzz(self, name: str, examples: int, seed: int | None = None, errors: set[str] | None = None) -> Counter[str]:
        """Read so many damaged files; returns how they ended.

        The first error that is no sentence is raised, or all are added to `errors`.
        """
        ended: Counter[str] = Counter()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=seed is None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(damaged(self.whole[name], list(self.whole.values()), READERS[name].words))
        def read(content: bytes) -> None:
            try:
                ended[self.read(name, content)] += 1
            except (Exception, Hangs) as error:
                if errors is None:
                    raise
                errors.add(f"{type(error).__name__}: {error}"[:200])
                ended["error"] += 1

        (read if seed is None else seeded(seed)(read))()
        return ended


@contextmanager
def _in_time():
    def stop(*_):
        raise Hangs(f"it took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@st.composite
def damaged(draw, content: bytes, others: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """A valid file after one to four damages, or no more than a part of another file."""
    kinds = ["flip", "cut", "delete", "repeat", "insert", "splice", *["word"] * (3 if words else 0)]
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4)):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        length = draw(st.integers(1, 64))
        match kind:
            case "flip" if content:
                flipped = content[at] ^ (1 << draw(st.integers(0, 7)))
                content = content[:at] + bytes([flipped]) + content[at + 1 :]
            case "cut":
                content = content[:at]
            case "delete":
                content = content[:at] + content[at + length :]
            case "repeat":
                content = content[:at] + content[at : at + length] * draw(st.integers(2, 5)) + content[at + length :]
            case "insert":
                content = content[:at] + draw(st.binary(max_size=16)) + content[at:]
            case "splice":
                other = draw(st.sampled_from(others))
                content = content[:at] + other[draw(st.integers(0, len(other))) :]
            case "word":
                content = content[:at] + draw(st.sampled_from(words)) + content[at + draw(st.integers(0, 12)) :]
    return content
