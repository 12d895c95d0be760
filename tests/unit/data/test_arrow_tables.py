"""Parquet files, and CSV files that pyarrow reads."""

import gzip

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import arrow_tables
from gumbel_mpnn.data.arrow_tables import places_in, plain_csv_table
from gumbel_mpnn.data.csv_file import read_header, read_table
from gumbel_mpnn.data.input_file import InputFile

pa = pytest.importorskip("pyarrow")

NODES = pd.DataFrame({"id": [10, 20, 30], "size": [0.5, 1.5, 2.5], "kind": ["a", "b", "a"]})
EDGES = pd.DataFrame({"source": [10, 30], "target": [20, 20]})


@pytest.fixture
def files(tmp_path):
    """A function that writes two tables in both formats, and reads them with `from_csv` in each."""

    def read(nodes=NODES, edges=EDGES, label="kind", **options):
        for name, table in (("nodes", nodes), ("edges", edges)):
            table.to_csv(tmp_path / f"{name}.csv", index=False)
            table.to_parquet(tmp_path / f"{name}.parquet", index=False)
        return [
            gm.from_csv(tmp_path / f"nodes.{kind}", tmp_path / f"edges.{kind}", label, **options)
            for kind in ("csv", "parquet")
        ]

    return read


def same(one, other):
    about = ("source_files",)
    assert one.keys() == other.keys()
    for name in one.keys():  # noqa: SIM118
        if isinstance(one[name], torch.Tensor):
            assert one[name].dtype == other[name].dtype
            assert torch.equal(one[name], other[name]), name
        elif name not in about:
            assert one[name] == other[name], name


TABLES = {
    "plain": (NODES, EDGES),
    "text ids": (NODES.assign(id=["x", "y", "z"]), pd.DataFrame({"source": ["x"], "target": ["z"]})),
    "weights": (NODES, EDGES.assign(weight=[0.1, 2])),
    "whole weights": (NODES, EDGES.assign(weight=[1, 2])),
    "missing label": (NODES.assign(kind=["a", None, "b"]), EDGES),
    "labels are numbers": (NODES.assign(kind=[0, 1, 0]), EDGES),
    "categories": (NODES.assign(kind=pd.Categorical(["a", "b", "a"])), EDGES),
    "yes or no": (NODES.assign(flag=[True, False, True]), EDGES),
    "split": (NODES.assign(split=["train", "train", None]), EDGES),
    "no edges": (NODES, EDGES.iloc[:0]),
    "given": (NODES, EDGES.assign(given=[True, False], probability=[0.25, 0.5])),
    "far numbers": (NODES.assign(id=[10**12, 20, -30]), pd.DataFrame({"source": [10**12, 20], "target": [-30, -30]})),
    "numbers and text": (NODES.assign(id=["10", "020", "x"]), pd.DataFrame({"source": [10], "target": [10]})),
    "missing end is text": (NODES, EDGES.astype("Int64")),
    "narrow numbers": (NODES.astype({"size": "float32"}), EDGES.astype("int32")),
}


@pytest.mark.parametrize("name", TABLES)
def test_parquet_is_read_as_csv_is(name, files):
    same(*files(*TABLES[name]))


def test_one_of_both_may_be_parquet(files, tmp_path):
    files()
    same(gm.from_csv(tmp_path / "nodes.parquet", tmp_path / "edges.csv", "kind"), files()[0])


def test_from_parquet_is_another_name():
    assert gm.from_parquet is gm.from_csv


MISTAKES = {
    "unknown node": (NODES, EDGES.assign(target=[20, 99])),
    "no id": (NODES.assign(id=["x", None, "z"]), EDGES),
    "repeated id": (NODES.assign(id=[10, 20, 10]), EDGES),
    "negative weight": (NODES, EDGES.assign(weight=[1.0, -1.0])),
    "no such label": (NODES.drop(columns="kind"), EDGES),
    "missing feature": (NODES.assign(size=[0.5, np.nan, 1.0]), EDGES),
    "no nodes": (NODES[:0], EDGES),
    "dates": (NODES.assign(day=["2020-01-01", "2020-01-02", "2020-01-03"]), EDGES),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_as_those_of_csv(name, files, tmp_path):
    """Lines of a CSV file count from its header, rows of a Parquet file from 1."""
    messages = []
    with pytest.raises(DataError) as told:
        files(*MISTAKES[name])
    messages.append(str(told.value))
    with pytest.raises(DataError) as told:
        gm.from_csv(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", "kind")
    messages.append(str(told.value).replace(".parquet", ".csv"))
    line = next((word for word in messages[0].split() if word.isdecimal()), "0")
    assert messages[0] in (messages[1], messages[1].replace(f"row {int(line) - 1} ", f"line {line} "))
    assert "line" not in messages[1]


def test_columns_that_are_named_as_nodes(files, tmp_path):
    files(NODES, EDGES)
    EDGES[["source", "target"]].set_axis(["10", "20"], axis=1).to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(DataError, match="seems to be an edge: name the columns source and target"):
        gm.from_csv(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", "kind")


def test_what_a_csv_file_cannot_hold_is_told(tmp_path):
    path = tmp_path / "nodes.parquet"

    def told(table):
        table.to_parquet(path)
        with pytest.raises(DataError) as error:
            gm.from_csv(path, label="kind")
        return str(error.value)

    assert "column 'id' of" in told(NODES.assign(id=[1.0, 2.0, 3.0]))
    assert "holds decimals: store ids and labels as text or whole numbers" in told(NODES.assign(kind=[0.5, 1, 0.5]))
    assert "column 'more' of" in told(NODES.assign(more=[[1.0], [2.0], [3.0]]))


def test_a_damaged_file_is_told(tmp_path):
    path = tmp_path / "nodes.parquet"
    NODES.to_parquet(path)
    whole = path.read_bytes()
    for content in (whole[:60], whole[:4], whole[:30] + bytes(40) + whole[70:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"nodes.parquet (is not a complete Parquet file|has no column|names)"):
            gm.from_csv(path, label="kind")


def test_two_columns_of_one_name_are_told(tmp_path):
    import pyarrow.parquet

    table = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])
    pyarrow.parquet.write_table(table, tmp_path / "nodes.parquet")
    with pytest.raises(DataError, match="has two columns 'id': rename one"):
        gm.from_csv(tmp_path / "nodes.parquet")


def test_without_pyarrow(files, tmp_path, monkeypatch):
    expected = files()[0]
    monkeypatch.setattr(arrow_tables, "find_spec", lambda name: None)
    with pytest.raises(
        DataError, match=r"is a Parquet file, which needs pyarrow: pip install 'gumbel-mpnn\[parquet\]'"
    ):
        gm.from_csv(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", "kind")
    monkeypatch.setattr(arrow_tables, "LARGE", 0)
    same(gm.from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", "kind"), expected)


def outcome(path, large, monkeypatch):
    """The table of a file, or what is said of it."""
    monkeypatch.setattr(arrow_tables, "LARGE", 0 if large else 2**60)
    try:
        file = InputFile(path)
        header = read_header(file)
        return read_table(file, header, list(header)[:2])
    except DataError as error:
        return str(error)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from('ab1.,,\n\n" \r\té-'), max_size=40), columns=st.sampled_from(["s,t", "s,t,weight"]))
@example(text="a,b\n1,2", columns="s,t")
@example(text="a,b,0.1\n1,2,3e-1\n", columns="s,t,weight")
@example(text="a,b,\n", columns="s,t,weight")
@example(text="a,\n", columns="s,t")
@example(text="a,b,c\n", columns="s,t")
@example(text="a,b\n\nc,d\n", columns="s,t")
@example(text="a,b\n\n", columns="s,t")
@example(text="a,b\n,\n", columns="s,t")
@example(text="a,b,NA\nb,c,x\n", columns="s,t,weight")
def test_pyarrow_and_pandas_read_alike(text, columns, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_bytes(f"{columns}\n{text}".encode())
    one, other = (outcome(path, large, monkeypatch) for large in (False, True))
    if isinstance(one, str) or isinstance(other, str):
        assert isinstance(one, str) and one == other  # noqa: PT018
    else:
        pd.testing.assert_frame_equal(one, other, check_index_type=False, check_exact=True)


def test_pyarrow_reads_what_is_plain(tmp_path, monkeypatch):
    """So that the test above compares two readers."""
    monkeypatch.setattr(arrow_tables, "LARGE", 0)

    def read(text):
        path = tmp_path / "edges.csv"
        path.write_bytes(text)
        file = InputFile(path)
        return plain_csv_table(file, read_header(file), ["s", "t"], lambda rest: pd.read_csv(path, usecols=rest))

    assert read(b"s,t\na,b\nc,d\n").index.tolist() == [2, 3]
    assert read(b"s,t,weight\na,b,1\nc,d,2\n").weight.tolist() == [1, 2]
    for unusual in (b"s,t\na,\n", b's,t\na,"b"\n', b"s,t\na, b\n", b"s,t\r\na,b\r\n", b"s,t\na\n", b"s,t\na,b\n\n"):
        assert read(unusual) is None


def test_a_small_file_is_read_by_pandas(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(b"s,t\na,b\n")
    assert plain_csv_table(InputFile(path), {"s": "s", "t": "t"}, ["s", "t"], lambda rest: None) is None


@pytest.mark.parametrize("dtype", ["str", object])
def test_places_of_names(dtype):
    ids, names = (pd.Series(values, dtype=dtype) for values in (["b", "a", ""], ["a", "c", "b", "a"]))
    assert places_in(ids, names).tolist() == [1, -1, 0, 1]
    assert places_in(ids, names[:0]).tolist() == []


@pytest.mark.parametrize("spread", [1, 10**9])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_places_of_integers(spread, dtype):
    """Ids that are not written as numbers are have none: 07 is not 7."""
    ids = pd.Series(["3", "07", "0", "x", str(5 * spread), "-2", "99999999999999999999", "8.0"])
    numbers = pd.Series([0, 3, 7, 5, 2, 8, 3, 255], dtype=dtype)
    assert places_in(ids, numbers).tolist() == [2, 0, -1, 4 if spread == 1 else -1, -1, -1, 0, -1]
    if dtype != "uint8":
        assert places_in(ids, pd.Series([-2, -3], dtype=dtype)).tolist() == [5, -1]


def test_places_of_numbers_beyond_all_ids():
    numbers = pd.Series([2**64 - 1, 2**63, 0], dtype="uint64")
    assert places_in(pd.Series(["0", "1"]), numbers).tolist() == [-1, -1, 0]
    assert places_in(pd.Series(["a", "b"]), pd.Series([0, 1])).tolist() == [-1, -1]
    assert places_in(pd.Series(["-1", "1"]), pd.Series([2**63 - 1, -(2**63)])).tolist() == [-1, -1]


def test_a_compressed_parquet_file(files, tmp_path):
    """Compressed files and pipes are read into memory first."""
    expected = files()[1]
    (tmp_path / "nodes.parquet.gz").write_bytes(gzip.compress((tmp_path / "nodes.parquet").read_bytes()))
    found = gm.from_csv(tmp_path / "nodes.parquet.gz", tmp_path / "edges.parquet", "kind")
    assert torch.equal(found.x, expected.x)
    assert found.node_ids == expected.node_ids


def test_a_file_of_many_features_is_not_opened(tmp_path):
    header = {name: name for name in ("s", "t", "a", "b", "c")}
    assert plain_csv_table(InputFile(tmp_path / "missing.csv"), header, ["s", "t"], lambda rest: None) is None
