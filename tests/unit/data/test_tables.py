import warnings

import pytest

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.data import arrow_tables, check, from_csv

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


@pytest.fixture(autouse=True, params=["small", "large"])
def size(request, monkeypatch):
    """A file is read alike whether it is small, or so large that pyarrow reads it."""
    if request.param == "large":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(arrow_tables, "LARGE", 0)


@pytest.fixture
def read(tmp_path):
    def from_text(nodes=NODES, edges=EDGES, **options):
        for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
            (tmp_path / name).write_text(text)
        return from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", **{"label": "class"} | options)

    return from_text


def test_text_ids_and_labels_are_mapped_and_kept(read):
    data = read()
    assert data.node_ids == ["p1", "p2", "007", "NA"]
    assert data.class_names == ["no", "yes"]
    assert data.y.tolist() == [1, 0, -1, 1]
    assert data.edge_index.T.tolist() == [[0, 1], [0, 3], [1, 0], [1, 2], [2, 1], [3, 0]]
    assert data.x.tolist() == [[2001, 0.5], [2002, 1.5], [2003, 2.5], [2004, 3.5]]
    assert "train_mask" not in data
    assert "edge_weight" not in data
    assert check(data).num_unlabelled == 1


def test_a_graph_to_measure_needs_no_labels_or_features(read):
    data = read(nodes="id\na\nb\nc\n", edges="from,to\na,b\nb,a\na,b\n", label=None, features=False, as_listed=True)
    assert (data.x, data.y, data.num_nodes, data.node_ids) == (None, None, 3, ["a", "b", "c"])
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert read(label=None, features=False).edge_index.tolist() == read().edge_index.tolist()


def test_columns_by_name(read):
    nodes = "class,size,id\nx,1,a\ny,2,b\n"
    edges = "kind,dst,src\nk,a,b\n"
    data = read(nodes, edges, features=["size"], source="src", target="dst", undirected=False)
    assert data.node_ids == ["a", "b"]
    assert data.edge_index.tolist() == [[1], [0]]
    assert data.x.tolist() == [[1], [2]]
    assert read(nodes, "s,t\nx,y\n", id="class", label="id").node_ids == ["x", "y"]


def test_columns_called_source_and_target_win(read):
    nodes, listed = "id,class,f\n0,a,1\n1,b,2\n2,a,3\n", ",target,source\n0,1,2\n1,2,0\n"
    assert read(nodes, listed, undirected=False).edge_index.tolist() == [[0, 2], [2, 1]]


def test_the_split_column_becomes_masks(read):
    nodes = "id,class,f,split\na,x,1,train\nb,y,2,Train\nc,x,3,val\nd,y,4, test\ne,,5,\n"
    data = read(nodes, "s,t\na,b\n")
    assert data.train_mask.tolist() == [True, True, False, False, False]
    assert data.val_mask.tolist() == [False, False, True, False, False]
    assert data.test_mask.tolist() == [False, False, False, True, False]
    assert data.num_features == 1


def test_the_weight_column_becomes_edge_weight(read):
    data = read(edges="s,t,weight\np1,p2,0.5\nNA,p1,2\n")
    assert data.edge_index.T.tolist() == [[0, 1], [0, 3], [1, 0], [3, 0]]
    assert data.edge_weight.tolist() == [0.5, 2, 0.5, 2]


@pytest.mark.parametrize(
    "written",
    [str.upper, str.title, "  {}  ".format, '" {} "'.format],
    ids=["upper", "title", "blanks", "blanks in quotes"],
)
def test_columns_are_found_whatever_their_case_and_the_blanks_around(read, written):
    def header(*names):
        return ",".join(map(written, names)) + "\n"

    nodes = header("F", "id", "class", "split") + "0,a,x,train\n1,b,y,train\n2,c,x,test\n"
    edges = header("kind", "target", "weight", "probability", "given", "source")
    data = read(nodes, edges + "1,a,0.5,0.25,true,c\n3,b,2,0.75,false,a\n", undirected=False)
    assert (data.node_ids, data.class_names, data.x.tolist()) == (["a", "b", "c"], ["x", "y"], [[0], [1], [2]])
    assert data.train_mask.tolist() == [True, True, False]
    assert data.edge_index.tolist() == [[0, 2], [1, 0]]
    assert [data[key].tolist() for key in ("edge_weight", "edge_probability")] == [[2, 0.5], [0.75, 0.25]]
    assert data.edge_origin.tolist() == [False, True]


def test_a_column_that_is_named_is_first_the_one_written_so(read):
    nodes = "id,Class,class,F,f\na,x,u,1,3\nb,y,v,2,4\n"
    data = read(nodes, "s,t\na,b\n", features=["f"])
    assert (data.class_names, data.x.tolist()) == (["u", "v"], [[3], [4]])
    edges = "Source,source,weight.1,FROM,to\n?,?,?,a,b\n"
    data = read(nodes, edges, label="Class", features=["F"], source="from", target="TO", undirected=False)
    assert (data.class_names, data.x.tolist(), data.edge_index.tolist()) == (["x", "y"], [[1], [2]], [[0], [1]])
    assert "edge_weight" not in data


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        (None, "s,t,weight,Weight\n", {}, "edges.csv has the columns 'weight' and 'Weight', of which only one"),
        (None, "s,t,weight,weight\n", {}, "edges.csv has the columns 'weight' and 'weight', of which only one"),
        (None, "s,t,Given,GIVEN,given \n", {}, "'Given' and 'GIVEN' and 'given ', of which only one"),
        (None, "Source,SOURCE,target\n", {}, "edges.csv has the columns 'Source' and 'SOURCE', of"),
        ("id,class,f,ID\na,x,1,b\n", None, {}, "nodes.csv has the columns 'id' and 'ID', of which only one"),
        ("id,class,f,split,Split\na,x,1,,\n", None, {}, "nodes.csv has the columns 'split' and 'Split', of"),
        ("id,class,f,class\na,x,1,2\n", None, {}, "nodes.csv has the columns 'class' and 'class', of which"),
        ("id,Class,f,class\na,x,1,2\n", None, {"label": "CLASS"}, "nodes.csv has the columns 'Class' and 'class', of"),
    ],
)
def test_two_columns_of_the_same_name_are_refused(read, nodes, edges, options, message):
    with pytest.raises(DataError, match=message) as caught:
        read(nodes or NODES, edges or EDGES, **options)
    assert "\n" not in str(caught.value)


def test_self_loops_and_isolated_nodes_are_counted_and_duplicates_are_one_edge(read):
    facts = check(read(edges="s,t\np1,p1\np1,p2\np1,p2\n"))
    assert (facts.num_self_loops, facts.num_duplicate_edges, facts.num_isolated, facts.num_edges) == (1, 0, 2, 1)


def test_an_edge_to_a_node_that_does_not_exist_is_told_by_line(read):
    with pytest.raises(
        DataError, match=r"line 4 of .*edges\.csv names the node 'p9', which .*nodes\.csv does not have"
    ):
        read(edges="from,to\np1,p2\n\np2,p9\n")


def test_a_feature_that_is_no_number_is_told_by_line_column_and_node(read):
    end = "as the feature 'length' of the node 'p2': give every node finite features"
    for cell in ("", "nan"):
        with pytest.raises(DataError, match=rf"^line 3 of \S*nodes\.csv has no number {end}"):
            read(NODES.replace("1.5", cell))
    with pytest.raises(DataError, match=rf"^line 4 of \S*nodes\.csv has an infinite number {end}"):
        read(NODES.replace("1.5", "inf").replace("p2", "\np2", 1))


def test_nodes_without_a_feature_are_counted(read):
    with pytest.raises(
        DataError, match=r"line 3 of .* of the node 'p2', the first of 2 such nodes: give every node .*, or name"
    ):
        read(NODES.replace("1.5", "").replace("2.5", ""))


def test_without_a_numeric_column_there_are_no_features(read):
    data = read("paper,class\np1,x\np2,y\n", edges="from,to\np1,p2\n")
    assert data.x is None
    assert data.num_nodes == 2
    assert read(features=[]).x is None


@pytest.mark.parametrize("edges", ["", "\n\n", "from,to\n"])
def test_a_file_without_edges(read, edges):
    data = read(edges=edges)
    assert data.edge_index.shape == (2, 0)
    assert check(data).num_edges == 0


def test_no_file_of_edges(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    data = from_csv(tmp_path / "nodes.csv", label="class")
    assert data.edge_index.shape == (2, 0)
    assert data.edges_listed == 0


def test_a_column_that_holds_numbers_and_other_things_is_remarked_on(read):
    nodes = NODES.replace("2.5", "long").replace("3.5", "short")
    with pytest.warns(DataWarning) as told:
        data = read(nodes)
    message, _ = (str(warning.message) for warning in told)
    assert message.startswith("the column 'length' of ")
    assert message.endswith(
        "nodes.csv is not used as a feature, since line 4 has 'long', which is not a number: write a number there, or"
        " words everywhere if the values are categories"
    )
    assert data.x.tolist() == [[2001], [2002], [2003], [2004]]


def test_several_such_columns_are_counted(read):
    nodes = "id,class,f,a,b,c\np,x,1,2,3,?\n\nq,y,2,?,?,?\nr,y,3,4,5,6\n"
    with pytest.warns(DataWarning, match=r"column 'a' of .* 2 more like it.* line 4 has '\?', which is not a number"):
        read(nodes, "s,t\np,q\n")


def test_columns_that_are_not_asked_for_are_not_remarked_on(read):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(features=False)
        read(NODES.replace("2.5", "long"), features=["year"])


def test_decimals_as_labels_are_remarked_on_and_ordered_as_numbers(read):
    nodes = "id,class,f\np,10.0,1\nq,2.0,2\nr,,3\n"
    with pytest.warns(DataWarning, match=r"labels of .*nodes\.csv are decimals like 2\.0: each .* a class, 2 in total"):
        data = read(nodes, "s,t\np,q\n")
    assert data.class_names == ["2.0", "10.0"]
    assert data.y.tolist() == [1, 0, -1]


@pytest.mark.parametrize("word", ["NA", "nan", "NULL"])
def test_a_word_for_missing_is_a_class_and_remarked_on(read, word):
    nodes = f"id,class,f\np,yes,1\nq,{word},2\nr,,3\ns,{word},4\n"
    with pytest.warns(DataWarning) as caught:
        data = read(nodes, "s,t\np,q\n")
    (warning,) = caught
    assert f"2 nodes have the label '{word}' in " in str(warning.message)
    assert str(warning.message).endswith(
        "nodes.csv, which is used as a class: if it means unlabelled, leave the label empty"
    )
    assert sorted(data.class_names) == sorted([word, "yes"])
    assert data.y[2] == -1


def test_a_quantity_is_no_label(read):
    rows = [f"n{k},{k / 7:.3f},{k}" for k in range(30)]
    with pytest.raises(DataError, match=r"labels are 30 different numbers from 0\.000 to 4\.143, a quantity: bin them"):
        read("\n".join(["id,class,f", *rows]), "s,t\nn1,n2\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "clas"}, r"nodes\.csv has no column 'clas': did you mean 'class'"),
        ({"features": ["lenght"]}, r"nodes\.csv has no column 'lenght': did you mean 'length'"),
        ({"id": "pap"}, r"nodes\.csv has no column 'pap'"),
        ({"source": "form"}, r"edges\.csv has no column 'form': did you mean 'from'"),
        ({"target": "too"}, r"edges\.csv has no column 'too'"),
        ({"features": ["year", "note"]}, r"feature column 'note' of .*nodes\.csv has values that are not numbers"),
        ({"features": ["class"]}, "column 'class' of .* cannot be a feature"),
    ],
)
def test_columns_that_cannot_be_taken(read, options, message):
    with pytest.raises(DataError, match=message):
        read(**options)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id,class,f\na,x,1\n\na,y,2\n", r"line 4 of .*nodes\.csv repeats the node 'a'"),
        ("id,class,f\na,x,1\n,y,2\n", r"line 3 of .*nodes\.csv has no node id"),
        ("id,class,f\n", r"nodes\.csv has no nodes"),
        ("id,class,f\na,,1\nb,,2\n", "no node of the graph has a label"),
        ("id,class,f\na,0,1\nb,-1,2\n", "node 'b' has the label -1"),
        ("id,class,f\na,0.0,1\nb,-1.0,2\n", r"node 'b' has the label -1\.0"),
        ("id,class,f\na,1,1\nb,1.0,2\n", "a label is written in two ways, 1 and 1.0: write each"),
        ("id,class,f\na,1,1\nb,2,2\nc,01,2\n", "a label is written in two ways, 01 and 1: write each class in one way"),
        ("id,class,f,split\na,0,1,train\nb,0,2,dev\n", "node 'b' is in the split 'dev': write train, val, test"),
        ("id,class,f,split\na,0,1,val\nb,0,2,test\n", "training mask of the split is empty"),
        ("id,class,f,split\na,0,1,train\nb,1,2,test\n", r"class 1 \('1'\) is to be predicted in the split"),
        ("id,class,f,split\na,0,1,train\nb,,2,test\n", r"node 1 \('b'\) is in a mask of the split but has no label"),
        ("id,class,f\na,0,1,9\nb,0,2,9\n", "more cells than its header"),
        ("id,class,f\na,0,1\nb,0,2,9\n", r"nodes\.csv is not a valid CSV file .*line 3"),
        ("", r"nodes\.csv is not a valid CSV file"),
        ("\nid,class,f\na,x,1\n", r"nodes\.csv is not a valid CSV file"),
        ("id;class;f\na;x;1\n", r"cells of \S*nodes\.csv are separated by semicolons: use commas"),
        ("id\tclass\tf\na\tx\t1\n", r"cells of \S*nodes\.csv are separated by tabs"),
        ("a,x,0.5\nb,y,1.5\n", r"no column 'class': known are .*; its first line looks like data, but it should be a"),
        ("a,x,1,1\nb,y,2,0\n", r"no column 'class': known are .*; its first line looks like data, but it should be a"),
        ("id,kind,0\na,x,1\n", r"no column 'class': known are 0, id, kind$"),
    ],
)
def test_faulty_nodes(read, nodes, message):
    with pytest.raises(DataError, match=message) as caught:
        read(nodes, "s,t\na,a\n")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("from\np1\n", r"edges\.csv needs two columns"),
        (
            "s,t,weight\np1,p2,1\np1,p2,heavy\n",
            r"^line 3 of \S*edges\.csv has the weight heavy: weights must be finite",
        ),
        ("s,t,weight\np1,p2,\n", r"^line 2 of \S*edges\.csv has no weight: weights must be finite and at least 0"),
        (
            "s,t,weight\np1,p2,1\n\np2,p1,-0.5\n",
            r"^line 4 of \S*edges\.csv has the weight -0\.5: weights must be finite",
        ),
        ("s,t,weight\np1,p2,inf\n", r"^line 2 of \S*edges\.csv has the weight inf: weights must be"),
        (
            "p1,p2\np2,007\n",
            r"header of \S*edges\.csv names the nodes 'p1' and 'p2', so it seems to be an edge: add the line",
        ),
        (" p1 , p2 ,weight\np2,007,1\n", "names the nodes 'p1' and 'p2'"),
        ("p1,p1\np2,007\n", "names the nodes 'p1' and 'p1'"),
        ("s t\np1 p2\n", r"edges\.csv needs two columns separated by commas"),
        ("s;t\np1;p2\n", r"cells of \S*edges\.csv are separated by semicolons: use commas"),
        ("s,t\np1,\n", r"line 2 of .*edges\.csv names the node ''"),
    ],
)
def test_faulty_edges(read, edges, message):
    with pytest.raises(DataError, match=message):
        read(edges=edges)


def test_a_first_node_that_is_taken_for_the_header_is_found_by_its_edges(read):
    with pytest.raises(
        DataError, match=r"^line 3 of \S*edges\.csv names the node 'a', which \S*nodes\.csv has in its header"
    ):
        read("a\nb\nc\n", "s,t\nb,c\nb,a\n", label=None, features=False)


def test_nodes_may_be_called_as_the_columns_of_edges_are(read):
    nodes = "id,class,f\nsource,x,1\ntarget,y,2\nfrom,x,3\n"
    assert read(nodes, "source,target\nsource,from\n", undirected=False).edge_index.tolist() == [[0], [2]]
    edges = "from,target\nsource,from\n"
    assert read(nodes, edges, source="from", target="target", undirected=False).edge_index.tolist() == [[0], [2]]
    with pytest.raises(DataError, match="'from' and 'target', so it seems to be an edge"):
        read(nodes, edges)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
@pytest.mark.parametrize("file", ["nodes.csv", "edges.csv"])
def test_another_encoding_is_named_as_such(read, tmp_path, file, encoding):
    read()
    path = tmp_path / file
    path.write_bytes(path.read_text().replace("p2", "pé").encode(encoding))
    with pytest.raises(DataError, match=rf"{file} is not encoded in UTF-8: save it as UTF-8$"):
        from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", label="class")


def test_no_file(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*nodes\.csv"):
        from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", label="class")


def test_a_graph_may_have_no_edges(read):
    assert read(edges="s,t\n").edge_index.shape == (2, 0)
    data = read(edges="s,t,weight,given\n")
    assert (data.edge_index.shape, data.edge_weight.shape) == ((2, 0), (0,))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("kind", "'kind' is not used"),
        ("Weight,kind,since", "'kind' and 'since' are not used"),
        ("a,b,c,d,e", "'a' and 'b' and 'c' and 2 more are not used"),
    ],
)
def test_columns_of_edges_that_are_not_used_are_told(read, tmp_path, columns, told):
    rows = ["from,to,", "p1,p2,", "p2,007,"]
    ends = [columns, *[",".join("1" * (columns.count(",") + 1))] * 2]
    with pytest.warns(DataWarning) as found:
        read(edges="\n".join(map("".join, zip(rows, ends, strict=True))) + "\n")
    messages = [str(each.message) for each in found if "of the edges" in str(each.message)]
    assert messages == [f"of the edges in {tmp_path / 'edges.csv'}, {told}: models use a column called weight only"]


def test_columns_of_a_learned_graph_are_all_known(read):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        read(nodes="id,a,class\nx,1,u\ny,2,v\n", edges="source,target,weight,probability,given\nx,y,0.5,0.5,true\n")


def test_a_column_that_is_named_twice(read, tmp_path):
    with pytest.raises(DataError) as caught:
        read(nodes="id,f,class\nx,1,u\ny,2,v\n", edges="source,target\nx,y\n", features=["f", "F"])
    assert str(caught.value) == f"the features name the column 'f' of {tmp_path / 'nodes.csv'} twice: name it once"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_numbers_count_line_breaks_in_quotes(read, newline):
    """The fault: the lines of multi-line cells were not counted."""
    nodes = (
        f'id,class,"no{newline}te"{newline}0,a,"x{newline}y{newline}z"{newline}{newline}1,b,u{newline}1,b,v{newline}'
    )
    with pytest.raises(DataError, match=r"^line 8 of \S+ repeats the node '1'"):
        read(nodes, "source,target\n0,1\n")
    with (
        pytest.warns(DataWarning, match="'c' is not used"),
        pytest.raises(DataError, match=r"^line 4 of \S+ names the node '7'"),
    ):
        read("id,class,f\n0,a,1\n1,b,2\n", 'source,target,c\n0,1,"x\ny"\n0,7,z\n'.replace("\n", newline))
