import gzip
import io
import os
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gumbel_mpnn as gm
from gumbel_mpnn.data import check, from_csv
from gumbel_mpnn.runs.run import read_again
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, DataWarning

NODES = """paper,year,class,length,note
p1,2001,yes,0.5,a
p2,2002,no,1.5,b
007,2003,,2.5,
NA,2004,yes,3.5,d
"""
EDGES = """from,to
p1,p2
p2,007

NA,p1
"""


@pytest.fixture
def read(tmp_path):
    def from_text(nodes=NODES, edges=EDGES, **options):
        for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
            (tmp_path / name).write_text(text)
        return from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", **{"label": "class"} | options)

    return from_text


class TestColumns:
    def test_text_ids_and_labels_are_mapped_and_kept(self, read):
        with pytest.warns(DataWarning, match="column 'note' of .* is not used"):
            data = read()
        assert data.node_ids == ["p1", "p2", "007", "NA"]
        assert data.class_names == ["no", "yes"]
        assert data.y.tolist() == [1, 0, -1, 1]
        assert data.edge_index.T.tolist() == [[0, 1], [0, 3], [1, 0], [1, 2], [2, 1], [3, 0]]
        assert data.x.tolist() == [[2001, 0.5], [2002, 1.5], [2003, 2.5], [2004, 3.5]]
        assert "train_mask" not in data
        assert "edge_weight" not in data
        assert (data.name, data.label_name, data.edges_listed) == ("nodes", "class", 3)
        assert check(data).num_unlabelled == 1

    def test_a_graph_to_measure_needs_no_labels_or_features(self, read):
        data = read(nodes="id\na\nb\nc\n", edges="from,to\na,b\n", label=None, features=False)
        assert (data.x, data.y, data.num_nodes, data.node_ids) == (None, None, 3, ["a", "b", "c"])
        assert data.edge_index.T.tolist() == [[0, 1], [1, 0]]
        assert read(label=None, features=False).edge_index.shape == (2, 6)

    def test_columns_by_name(self, read):
        nodes, edges = "class,size,id\nx,1,a\ny,2,b\n", "dst,src\na,b\n"
        data = read(nodes, edges, features=["size"], source="src", target="dst", undirected=False)
        assert data.node_ids == ["a", "b"]
        assert data.edge_index.tolist() == [[1], [0]]
        assert data.x.tolist() == [[1], [2]]
        assert data.undirected is False
        assert read(nodes, "s,t\nx,y\n", id="class", label="id").node_ids == ["x", "y"]

    def test_columns_called_source_and_target_win(self, read):
        nodes, listed = "id,class,f\n0,a,1\n1,b,2\n2,a,3\n", "weight,target,source\n1,1,2\n1,2,0\n"
        assert read(nodes, listed, undirected=False).edge_index.tolist() == [[0, 2], [2, 1]]

    @pytest.mark.parametrize(
        "written",
        [str.upper, str.title, "  {}  ".format, '" {} "'.format],
        ids=["upper", "title", "blanks", "blanks in quotes"],
    )
    def test_columns_are_found_whatever_their_case_and_the_blanks_around(self, read, written):
        def header(*names):
            return ",".join(map(written, names)) + "\n"

        nodes = header("F", "id", "class", "split") + "0,a,x,train\n1,b,y,Train\n2,c,x, test\n"
        edges = header("target", "weight", "probability", "given", "source")
        data = read(nodes, edges + "a,0.5,0.25,true,c\nb,2,0.75,false,a\n", undirected=False)
        assert (data.node_ids, data.class_names, data.x.tolist()) == (["a", "b", "c"], ["x", "y"], [[0], [1], [2]])
        assert data.train_mask.tolist() == [True, True, False]
        assert (data.val_mask.any(), data.test_mask.tolist()) == (False, [False, False, True])
        assert data.edge_index.tolist() == [[0, 2], [1, 0]]
        assert [data[key].tolist() for key in ("edge_weight", "edge_probability")] == [[2, 0.5], [0.75, 0.25]]
        assert data.edge_origin.tolist() == [False, True]

    def test_a_column_that_is_named_is_first_the_one_written_so(self, read):
        nodes = "id,Class,class,F,f\na,x,u,1,3\nb,y,v,2,4\n"
        data = read(nodes, "s,t\na,b\n", features=["f"])
        assert (data.class_names, data.x.tolist()) == (["u", "v"], [[3], [4]])
        data = read(nodes, "Source,FROM,to\n?,a,b\n", label="Class", features=["F"], source="from", target="TO")
        assert (data.class_names, data.x.tolist()) == (["x", "y"], [[1], [2]])

    @pytest.mark.parametrize(
        ("nodes", "edges", "options", "message"),
        [
            (NODES, "s,t,Weight,WEIGHT\n", {}, "edges.csv has the columns 'Weight' and 'WEIGHT', of which only one"),
            ("id,class,f,class\na,x,1,2\n", EDGES, {}, "nodes.csv has two columns 'class': rename one"),
            (NODES, EDGES, {"label": "clas"}, r"nodes\.csv has no column 'clas': did you mean 'class'"),
            (NODES, EDGES, {"features": ["lenght"]}, r"nodes\.csv has no column 'lenght': did you mean 'length'"),
            (NODES, EDGES, {"source": "form"}, r"edges\.csv has no column 'form': did you mean 'from'"),
            (NODES, EDGES, {"features": ["class"]}, "column 'class' of .* cannot be a feature"),
        ],
    )
    def test_columns_that_cannot_be_taken(self, read, nodes, edges, options, message):
        with pytest.raises(DataError, match=message) as caught:
            read(nodes, edges, **options)
        assert "\n" not in str(caught.value)


class TestNodes:
    def test_without_features(self, read):
        data = read("paper,class\np1,x\np2,y\n", edges="from,to\np1,p2\n")
        assert (data.x, data.num_nodes) == (None, 2)
        assert read(features=[]).x is None

    @pytest.mark.parametrize(
        ("nodes", "message"),
        [
            ("id,class,f\na,x,1\n\na,y,2\n", r"line 4 of .*nodes\.csv repeats the node 'a'"),
            ("id,class,f\na,x,1\n,y,2\n", r"line 3 of .*nodes\.csv has no node id"),
            ("id,class,f\n", r"nodes\.csv has no nodes"),
            ("", r"nodes\.csv has no nodes"),
            (
                "id,class,f,split\na,0,1,train\nb,0,2,dev\n",
                "line 3 of .* is in the split 'dev': write train",
            ),
            ("id,class,f\na,0,1,9\nb,0,2,9\n", "more cells than its header"),
            ("id,class,f\na,0,1\nb,0,2,9\n", r"nodes\.csv is not a valid CSV file .*line 3"),
            ("id;class;f\na;x;1\n", r"cells of \S*nodes\.csv are separated by semicolons: use commas"),
        ],
    )
    def test_faults(self, read, nodes, message):
        with pytest.raises(DataError, match=message) as caught:
            read(nodes, "s,t\na,a\n")
        assert "\n" not in str(caught.value)

    def test_lines_without_any_cell_are_left_out(self, read):
        assert read("id,class,f\na,x,1\n,,\nb,y,2\n\n", "s,t\na,b\n,\n").edge_index.tolist() == [[0, 1], [1, 0]]

    @pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
    @pytest.mark.parametrize("file", ["nodes.csv", "edges.csv"])
    def test_another_encoding_is_named_as_such(self, read, tmp_path, file, encoding):
        read(features=False)
        path = tmp_path / file
        path.write_bytes(path.read_text().replace("p2", "pé").encode(encoding))
        with pytest.raises(DataError, match=rf"{file} is not encoded in UTF-8: save it as UTF-8$"):
            from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", label="class")


class TestEdges:
    def test_weights_of_both_directions_and_of_duplicates(self, read):
        data = read(edges="s,t,weight\np1,p2,0.5\nNA,p1,2\nNA,p1,4\n", features=False)
        assert data.edge_index.T.tolist() == [[0, 1], [0, 3], [1, 0], [3, 0]]
        assert data.edge_weight.tolist() == [0.5, 3, 0.5, 3]

    @pytest.mark.parametrize("edges", ["", "\n\n", "from,to\n", "s,t,weight,given\n"])
    def test_none(self, read, tmp_path, edges):
        data = read(edges=edges, features=False)
        assert data.edge_index.shape == (2, 0)
        assert check(data).num_edges == 0
        assert from_csv(tmp_path / "nodes.csv", label="class", features=False).edge_index.shape == (2, 0)

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ("from,to\np1,p2\n\np2,p9\n", r"line 4 of .* names the node 'p9', which .*nodes\.csv does not"),
            ("s,t\np1,\n", r"line 2 of .*edges\.csv names the node ''"),
            ("from\np1\n", r"edges\.csv needs two columns"),
            ("s t\np1 p2\n", r"edges\.csv needs two columns separated by commas"),
            ("s,t,weight\np1,p2,1\np1,p2,heavy\n", r"^line 3 of \S*edges\.csv has the weight heavy: weights must be"),
            ("s,t,weight\np1,p2,\n", r"^line 2 of \S*edges\.csv has no weight: weights must be finite and at least 0"),
            ("s,t,weight\np1,p2,1\n\np2,p1,-0.5\n", r"^line 4 of \S*edges\.csv has the weight -0\.5: weights must be"),
            (" p1 , p2 ,weight\np2,007,1\n", r"header of \S*edges\.csv names the nodes 'p1' and 'p2', so it seems"),
        ],
    )
    def test_faults(self, read, edges, message):
        with pytest.raises(DataError, match=message):
            read(edges=edges, features=False)

    def test_nodes_may_be_called_as_the_columns_of_edges_are(self, read):
        nodes = "id,class,f\nsource,x,1\ntarget,y,2\nfrom,x,3\n"
        assert read(nodes, "source,target\nsource,from\n", undirected=False).edge_index.tolist() == [[0], [2]]
        edges = "from,target\nsource,from\n"
        assert read(nodes, edges, source="from", target="target", undirected=False).edge_index.tolist() == [[0], [2]]

    def test_columns_that_are_not_used_are_told(self, read, tmp_path):
        with pytest.warns(DataWarning) as told:
            read(edges="from,to,Weight,kind,since\np1,p2,1,a,1\n", features=False)
        assert [str(each.message) for each in told] == [
            f"of the edges in {tmp_path / 'edges.csv'}, 'kind' and 'since' are not used: models use the column weight"
            " only"
        ]


class TestParquet:
    NODES = pd.DataFrame({"id": [10, 20, 30], "size": [0.5, 1.5, 2.5], "kind": ["a", "b", "a"]})
    EDGES = pd.DataFrame({"source": [10, 30], "target": [20, 20]})

    @pytest.fixture
    def files(self, tmp_path):
        """A function that writes two tables in both formats, and reads them in each."""
        pytest.importorskip("pyarrow")

        def read(nodes=self.NODES, edges=self.EDGES, label="kind"):
            for name, table in (("nodes", nodes), ("edges", edges)):
                table.to_csv(tmp_path / f"{name}.csv", index=False)
                table.to_parquet(tmp_path / f"{name}.parquet")
            return [
                gm.from_parquet(tmp_path / f"nodes.{kind}", tmp_path / f"edges.{kind}", label)
                for kind in ("csv", "parquet")
            ]

        return read

    @pytest.mark.parametrize(
        ("nodes", "edges"),
        [
            ({}, {}),
            ({"id": ["x", "y", "z"]}, {"source": ["x", "z"], "target": ["z", "x"]}),
            ({"id": ["10", "20", "030"]}, {"source": ["10", "030"], "target": [20, 20]}),
            ({}, {"weight": [1, 2], "given": [True, False], "probability": [0.5, 1]}),
            ({"kind": ["a", None, "b"]}, {}),
            ({"kind": [0, 1, 0]}, {}),
            ({"kind": pd.Categorical(["a", "b", "a"])}, {}),
            ({"flag": [True, False, True], "wild": ["yes", "no", "no"]}, {}),
            ({"size": pd.array([1, 2, 3], dtype="Int64")}, {}),
        ],
        ids=str,
    )
    def test_as_the_same_csv_files(self, files, nodes, edges):
        one, other = files(self.NODES.assign(**nodes), self.EDGES.assign(**edges))
        assert data_hash(one) == data_hash(other)
        assert sorted(one.keys()) == sorted(other.keys())
        assert (other.node_ids, other.edges_listed) == (one.node_ids, 2)

    def test_other_types(self, tmp_path):
        pytest.importorskip("pyarrow")
        path = tmp_path / "nodes.parquet"
        times = pd.date_range("2020-01-01", periods=3)
        self.NODES.assign(born=times, parts=[[1], [2], [3]]).set_index("id").to_parquet(path)
        with pytest.warns(DataWarning, match="column 'born' and 'parts' of .* is not used"):
            data = from_csv(path, label="kind")
        assert (data.node_ids, data.x.tolist()) == (["10", "20", "30"], [[0.5], [1.5], [2.5]])
        self.NODES.assign(kind=[0, 1, None]).to_parquet(path)  # stored as decimals, since a label is missing
        data = from_csv(path, label="kind")
        assert (data.class_names, data.y.tolist()) == (["0", "1"], [0, 1, -1])

    def test_faults(self, tmp_path):
        pytest.importorskip("pyarrow")
        path = tmp_path / "nodes.parquet"
        self.NODES.assign(id=[10, 20, 20]).to_parquet(path)
        with pytest.raises(DataError, match=r"row 3 of .*nodes\.parquet repeats the node '20'"):
            from_csv(path, label="kind")
        self.NODES.assign(size=[1, None, 2]).to_parquet(path)
        with pytest.raises(DataError, match=r"row 2 of .*nodes\.parquet has no finite number as feature 'size'"):
            from_csv(path, label="kind")
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DataError, match=r"nodes\.parquet is not a valid Parquet file \(.+\)"):
            from_csv(path)


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nodes.csv", content)
    return out.getvalue()


PACKERS = {".gz": gzip.compress, ".zip": zipped}


class TestFiles:
    @pytest.mark.parametrize("suffix", PACKERS)
    def test_compressed_or_truncated(self, tmp_path, suffix):
        rows = "".join(f"n{k},{k / 7},{'xy'[k % 2]}\n" for k in range(40))
        packed = PACKERS[suffix](f"id,a,kind\n{rows}".encode())
        path = tmp_path / f"nodes.csv{suffix}"
        path.write_bytes(packed)
        assert from_csv(path, label="kind").num_nodes == 40
        for keep in (9, len(packed) // 2):
            path.write_bytes(packed[:keep])
            with pytest.raises(DataError, match=rf"{path} is not a valid CSV file \(.+\)"):
                from_csv(path)

    def test_what_is_no_file(self, tmp_path):
        for read in (from_csv, gm.from_npz, gm.from_graphml):
            with pytest.raises(DataError, match=f"there is no file {tmp_path / 'none'}: check the path"):
                read(tmp_path / "none")
            with pytest.raises(DataError, match=f"{tmp_path} is a folder: give the path of a file"):
                read(tmp_path)

    def test_a_graph_is_never_called_like_a_data_set(self, tmp_path):
        (tmp_path / "cora.csv").write_text("id,class\na,x\nb,y\n")
        assert from_csv(tmp_path / "cora.csv", label="class").name == "own-cora"

    def test_pipes(self):
        """As `<(...)` of a shell, which can be read once."""

        def pipe(text):
            read, write = os.pipe()
            threading.Thread(target=lambda: os.fdopen(write, "w").write(text), daemon=True).start()
            return read

        handles = [pipe("id,a,kind\nx,1,u\ny,2,v\n"), pipe("s,t\nx,y\n")]
        nodes, edges = (Path(f"/dev/fd/{handle}") for handle in handles)
        data = from_csv(nodes, edges, label="kind")
        assert (data.num_nodes, data.num_edges, data.name, "source_files" in data) == (2, 2, "own", False)
        for handle in handles:
            os.close(handle)

    @pytest.mark.parametrize("how", [{}, {"features": ["size"]}, {"features": False}, {"undirected": False}], ids=str)
    @pytest.mark.parametrize("with_edges", [True, False])
    def test_they_are_read_again_as_they_were_read_first(self, tmp_path, monkeypatch, how, with_edges):
        rows = "".join(f"n{k},{'ab'[k % 2]},{k},{['red', 'blue'][k % 2]}\n" for k in range(12))
        (tmp_path / "nodes.csv").write_text(f"key,kind,size,color\n{rows}")
        (tmp_path / "edges.csv").write_text("to,from\n" + "".join(f"n{k},n{k + 1}\n" for k in range(11)))
        monkeypatch.chdir(tmp_path)
        edges = "edges.csv" if with_edges else None
        data = from_csv("nodes.csv", edges, "kind", id="key", **how)
        monkeypatch.chdir("/")
        again = read_again(data.source_files)
        assert data_hash(again) == data_hash(data)
        assert (again.get("undirected"), again.name) == (data.get("undirected"), data.name)
        other = from_csv(tmp_path / "nodes.csv", None, "kind", data.feature_columns, id="key")
        assert np.array_equal(read_again(other.source_files).x, other.x) if other.x is not None else True

    def test_columns_that_are_not_asked_for_are_not_remarked_on(self, read):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(features=False)
            read(NODES.replace("2.5", "long"), features=["year"])
