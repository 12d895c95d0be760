"""Components of the benchmarks' classes beside scikit-learn's, where there is a data root."""

import warnings

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from gumbel_mpnn.data import load
from gumbel_mpnn.measures import decompose, edge_homophily, neighborhood_distributions
from gumbel_mpnn.util.errors import MissingDataError

pytestmark = pytest.mark.real_data


def loaded(name, data_root):
    try:
        return load(name, root=data_root, features=False)
    except MissingDataError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ["cora", "minesweeper", "chameleon"])
@pytest.mark.parametrize("reg_covar", [1e-4, 1e-6])
def test_bic_is_no_higher_than_scikit_learns_at_the_chosen_number(name, reg_covar, data_root):
    data = loaded(name, data_root)
    found = decompose(data, seeds=1, reg_covar=reg_covar)
    rows, y = neighborhood_distributions(data).numpy(), data.y.numpy()
    for label, mixture in enumerate(found.mixtures):
        k = len(mixture.weights)
        theirs = GaussianMixture(k, n_init=2, reg_covar=reg_covar, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.fit(rows[y == label])
        assert mixture.bic <= theirs.bic(rows[y == label]) + 1e-6 * abs(mixture.bic)
        assert k > 1


def test_seeds_agree_about_cora(data_root):
    data = loaded("cora", data_root)
    found = decompose(data, seeds=2)
    assert found.spread[1] - found.spread[0] <= 4
    assert 30 <= found.total <= 45
    assert np.isclose(edge_homophily(found.relabel(data)), 0.45, atol=0.03)
