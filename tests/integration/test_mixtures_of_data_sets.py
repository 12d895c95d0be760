"""Components of the classes of Cora, where there is a data root."""

import pytest

from gumbel_mpnn.data import load
from gumbel_mpnn.measures import decompose, edge_homophily
from gumbel_mpnn.util.errors import MissingDataError


@pytest.mark.real_data
def test_cora_has_as_many_components_as_in_the_paper(data_root):
    try:
        data = load("cora", root=data_root, features=False)
    except MissingDataError as error:
        pytest.skip(str(error))
    found = decompose(data)
    assert (found.total, found.totals) == (47, (53, 60, 45))
    assert edge_homophily(found.relabel(data)) == pytest.approx(0.45, abs=0.015)
