"""A graph of the user is read again from its files as it was read first."""

import pytest
import torch

from gumbel_mpnn.data import from_csv, from_graphml, from_npz, save_graph
from gumbel_mpnn.runs.loading import read_again
from gumbel_mpnn.training import data_hash
from helpers import changed, small_data

NODES = "key,kind,size,color\n" + "".join(f"n{k},{'ab'[k % 2]},{k},{['red', 'blue'][k % 2]}\n" for k in range(12))
EDGES = "to,from\n" + "".join(f"n{k},n{k + 1}\n" for k in range(11))


@pytest.fixture
def csv(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path / "nodes.csv", tmp_path / "edges.csv"


@pytest.mark.parametrize(
    "how",
    [{}, {"features": ["size"]}, {"features": False}, {"undirected": False, "source": "from", "target": "to"}],
    ids=str,
)
@pytest.mark.parametrize("with_edges", [True, False])
def test_csv(csv, how, with_edges):
    nodes, edges = csv
    data = from_csv(nodes, edges if with_edges else None, "kind", id="key", **how)
    again = read_again(data.source_files)
    assert data_hash(again) == data_hash(data)
    assert again.get("undirected") == data.get("undirected")
    assert (again.feature_columns, again.class_names, again.name) == (data.feature_columns, data.class_names, data.name)


def test_csv_with_the_columns_of_another_file(csv):
    nodes, edges = csv
    first = from_csv(nodes, edges, "kind", id="key")
    data = from_csv(nodes, edges, "kind", first.feature_columns, id="key")
    assert torch.equal(read_again(data.source_files).x, first.x)


@pytest.mark.parametrize(("suffix", "read"), [(".npz", from_npz), (".graphml", from_graphml)])
def test_saved_graphs(tmp_path, suffix, read):
    data = changed(small_data(splits=1), class_names=["ant", "bee", "cow"])
    save_graph(data, tmp_path / f"graph{suffix}")
    first = read(tmp_path / f"graph{suffix}")
    assert data_hash(read_again(first.source_files)) == data_hash(first)
    assert read_again(read(tmp_path / f"graph{suffix}", features=False).source_files).x is None
