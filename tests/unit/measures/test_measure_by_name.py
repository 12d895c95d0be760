"""All measures at once: their names, and what stands where one is not defined."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn import measures
from gumbel_mpnn.measures import table
from gumbel_mpnn.util.errors import DataWarning, UserError
from helpers import edges, small_data

NAMES = [
    "edge_homophily",
    "adjusted_homophily",
    "label_informativeness",
    "std_per_class",
    "num_nodes",
    "num_edges",
    "degree_min",
    "degree_mean",
    "degree_max",
    "num_components",
    "spectral_gap",
]


def test_the_names():
    assert list(measures.measure(small_data())) == list(measures.MEASURES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_convention_reaches_those_that_take_one(name):
    data = small_data()  # lists some edges twice and some both ways
    data.edge_index = torch.cat([data.edge_index, torch.arange(24).expand(2, 24)], dim=1)  # no node has none as listed
    function, takes_one = measures.MEASURES[name].function, measures.MEASURES[name].by_convention
    assert name.startswith("degree_") or function is getattr(measures, name)
    expected = function(data, "as_listed") if takes_one else function(data)
    assert measures.measure(data, [name]) == {name: function(data)}
    assert measures.measure(data, [name], convention="as_listed") == {name: expected}
    assert (expected != function(data)) == takes_one


def test_without_labels_the_rest_is_measured():
    values = measures.measure(Data(edge_index=edges((0, 1), (1, 2)), num_nodes=3))
    assert [name for name, value in values.items() if value is None] == NAMES[:4]
    assert (values["num_edges"], values["spectral_gap"]) == (2, pytest.approx(1))


def test_none_where_a_measure_is_not_defined():
    values = measures.measure(Data(edge_index=edges(), y=torch.tensor([0])))
    assert [name for name, value in values.items() if value is None] == [*NAMES[:4], "spectral_gap"]
    assert (values["num_nodes"], values["num_components"]) == (1, 1)


def test_one_name_by_itself():
    data = small_data()
    assert measures.measure(data, "edge_homophily") == measures.measure(data, ["edge_homophily"])
    with pytest.raises(UserError, match="no measure called 'edge_homophilly': did you mean 'edge_homophily'"):
        measures.measure(data, "edge_homophilly")


def test_slow_measures_are_left_out_with_a_warning(monkeypatch):
    data = small_data()
    monkeypatch.setattr(table, "MANY_EDGES", measures.measure(data, "num_edges")["num_edges"] - 1)
    with pytest.warns(DataWarning, match=r"left out because this graph has more than .* edges: spectral_gap"):
        values = measures.measure(data)
    assert [name for name in measures.MEASURES if values[name] is None] == ["spectral_gap"]
    assert measures.measure(data, "spectral_gap")["spectral_gap"] is not None


def test_a_graph_of_the_largest_size_has_all_measures(monkeypatch, recwarn):
    data = small_data()
    monkeypatch.setattr(table, "MANY_EDGES", measures.measure(data, "num_edges")["num_edges"])
    assert None not in measures.measure(data).values()
    assert not recwarn.list
