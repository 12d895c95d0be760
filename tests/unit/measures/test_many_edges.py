"""On a very large graph, measures that take minutes are left out with a warning."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataWarning
from gumbel_mpnn.measures import MEASURES, measure, table
from helpers import small_data


def test_slow_measures_are_left_out_with_a_warning(monkeypatch):
    data = small_data()
    monkeypatch.setattr(table, "MANY_EDGES", measure(data, "num_edges")["num_edges"] - 1)
    with pytest.warns(DataWarning, match=r"left out because this graph has more than .* edges: spectral_gap"):
        values = measure(data)
    assert values.keys() == MEASURES.keys() - {"spectral_gap"}
    assert measure(data, "spectral_gap")["spectral_gap"] is not None


def test_a_graph_of_the_largest_size_has_all_measures(monkeypatch, recwarn):
    data = small_data()
    monkeypatch.setattr(table, "MANY_EDGES", measure(data, "num_edges")["num_edges"])
    assert measure(data).keys() == MEASURES.keys()
    assert not recwarn.list


def test_two_million_edges_are_measured_without_the_spectrum(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    data = Data(edge_index=torch.randint(200_000, (2, 2_000_000), generator=generator), num_nodes=200_000)
    with pytest.warns(DataWarning, match="1,000,000 edges"):
        assert measure(data)["num_components"] == 1
