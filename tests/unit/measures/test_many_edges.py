"""On a very large graph, measures that take minutes are left out with a warning."""

import pytest

from gumbel_mpnn.measures import MEASURES, measure, table
from gumbel_mpnn.util.errors import DataWarning
from helpers import small_data


def test_slow_measures_are_left_out_with_a_warning(monkeypatch):
    data = small_data()
    monkeypatch.setattr(table, "MANY_EDGES", measure(data, "num_edges")["num_edges"] - 1)
    with pytest.warns(DataWarning, match=r"left out because this graph has more than .* edges: spectral_gap"):
        values = measure(data)
    assert [name for name in MEASURES if values[name] is None] == ["spectral_gap"]
    assert measure(data, "spectral_gap")["spectral_gap"] is not None


def test_a_graph_of_the_largest_size_has_all_measures(monkeypatch, recwarn):
    data = small_data()
    monkeypatch.setattr(table, "MANY_EDGES", measure(data, "num_edges")["num_edges"])
    assert None not in measure(data).values()
    assert not recwarn.list
