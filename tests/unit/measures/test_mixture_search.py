"""The batched EM against scikit-learn's, and the search over the number of components."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from gumbel_mpnn.measures import expectation, mixture_search
from gumbel_mpnn.measures.expectation import Points, expectation_maximization
from gumbel_mpnn.measures.mixture_search import SearchOptions, best_mixture
from gumbel_mpnn.util.errors import UserError

REG = 1e-4


def shares(n, columns, seed, degree=4):
    """Rows of label shares as a sparse graph has them: few different values, summing to 1."""
    rng = np.random.default_rng(seed)
    favorite = rng.dirichlet(np.full(columns, 0.5), size=3)[rng.integers(3, size=n)]
    counts = np.stack([rng.multinomial(rng.integers(1, degree + 1), p) for p in favorite])
    return counts / counts.sum(1, keepdims=True)


def blobs(centers, each, width, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(center, width, size=(each, len(center))) for center in centers])


def as_scikit_learn(mixture):
    """The same mixture as an object of scikit-learn's."""
    model = GaussianMixture(len(mixture.weights))
    model.weights_, model.means_, model.covariances_ = mixture.weights, mixture.means, mixture.covariances
    model.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(mixture.covariances)).transpose(0, 2, 1)
    return model


class TestPoints:
    def test_equal_rows_are_one_point(self):
        points = Points.of(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), REG)
        assert points.count.tolist() == [1, 2]
        assert points.point_of_row.tolist() == [1, 0, 1]

    def test_shares_lose_the_direction_in_which_they_sum_to_one(self):
        points = Points.of(shares(200, 5, 0), REG)
        assert points.dimension == 4
        assert np.abs(points.basis.sum(1)).max() < 1e-9

    def test_columns_that_never_vary_are_left_out(self):
        assert Points.of(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]), REG).dimension == 1

    def test_a_single_point_spans_nothing(self):
        assert Points.of(np.full((4, 3), 1 / 3), REG).dimension == 0

    def test_coordinates_give_the_rows_back(self):
        rows = shares(50, 4, 1)
        points = Points.of(rows, REG)
        np.testing.assert_allclose((points.center + points.x @ points.basis)[points.point_of_row], rows, atol=1e-12)


class TestExpectationMaximization:
    @pytest.mark.parametrize("reg_covar", [1e-4, 1e-6])
    def test_every_iteration_is_scikit_learns(self, reg_covar):
        rows = shares(120, 4, 2)
        start = np.random.default_rng(0).integers(3, size=len(rows))
        points = Points.of(rows, reg_covar)
        # Equal rows start together, as they must where points are counted.
        start = start[np.unique(points.point_of_row, return_index=True)[1]][points.point_of_row]
        membership = np.zeros((1, 3, len(points.x)))
        np.add.at(membership[0], (start, points.point_of_row), 1)
        onehot = np.eye(3)[start]
        for iterations in (1, 2, 7):
            (fit,) = expectation_maximization(points, membership, tol=1e-300, max_iter=iterations)
            theirs = GaussianMixture(3, reg_covar=reg_covar, tol=0, max_iter=iterations)
            theirs._initialize_parameters = lambda X, random_state, xp=None, m=theirs: m._initialize(X, onehot)
            with pytest.warns(Warning, match="did not converge"):
                theirs.fit(rows)
            assert points.bic(fit.log_likelihood, 3) == pytest.approx(theirs.bic(rows), rel=1e-7)

    def test_starts_do_not_see_each_other(self):
        points = Points.of(shares(80, 4, 3), REG)
        rng = np.random.default_rng(1)
        starts = rng.dirichlet(np.ones(4), size=(5, len(points.x))).transpose(0, 2, 1) * points.count
        together = expectation_maximization(points, starts, 1e-3, 100)
        alone = [expectation_maximization(points, start[None], 1e-3, 100)[0] for start in starts]
        np.testing.assert_allclose([f.log_likelihood for f in together], [f.log_likelihood for f in alone], rtol=1e-9)

    def test_every_row_belongs_somewhere(self):
        points = Points.of(shares(80, 4, 3), REG)
        start = np.random.default_rng(2).dirichlet(np.ones(6), size=len(points.x)).T[None] * points.count
        (fit,) = expectation_maximization(points, start, 1e-3, 100)
        np.testing.assert_allclose(fit.membership.sum(0), points.count)

    def test_likelihood_rises(self):
        points = Points.of(shares(150, 5, 4), REG)
        start = np.random.default_rng(3).dirichlet(np.ones(4), size=len(points.x)).T[None] * points.count
        values = [
            expectation_maximization(points, start, 1e-300, iterations)[0].log_likelihood for iterations in range(1, 30)
        ]
        assert (np.diff(values) > -1e-9).all()
        assert values[-1] > values[0] + 0.1

    def test_an_empty_component_does_no_harm(self):
        points = Points.of(shares(60, 3, 5), REG)
        start = np.concatenate([points.count[None], np.zeros((1, len(points.x)))])[None]
        (with_it,) = expectation_maximization(points, start, 1e-3, 50)
        (without,) = expectation_maximization(points, start[:, :1], 1e-3, 50)
        assert with_it.log_likelihood == pytest.approx(without.log_likelihood, rel=1e-9)


class TestSearch:
    def test_one_component_is_the_normal_distribution(self):
        rows = shares(90, 4, 6)
        mixture = best_mixture(rows, 0, SearchOptions(max_components=1, reg_covar=1e-6))
        theirs = GaussianMixture(1, reg_covar=1e-6).fit(rows)
        np.testing.assert_allclose(mixture.means, theirs.means_, atol=1e-12)
        np.testing.assert_allclose(mixture.covariances, theirs.covariances_, atol=1e-12)
        assert mixture.bic == pytest.approx(theirs.bic(rows), rel=1e-9)

    def test_two_points_by_hand(self):
        # Two spikes of 10 rows each: k = 2 has covariance REG in both columns, weight 1/2 and nothing left to explain.
        rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
        mixture = best_mixture(rows, 0, SearchOptions(max_components=2))
        log_density = -math.log(2 * math.pi * REG) + math.log(0.5)
        assert mixture.bic == pytest.approx(-2 * 20 * log_density + 11 * math.log(20))
        np.testing.assert_allclose(mixture.means[mixture.component], rows, atol=1e-12)
        assert (mixture.component[:10] == mixture.component[0]).all()
        assert mixture.component[0] != mixture.component[10]

    def test_separate_blobs_are_counted(self):
        rows = blobs([(0, 0), (1, 0), (0, 1), (1, 1)], 60, 0.05)
        for seed in range(3):
            mixture = best_mixture(rows, seed, SearchOptions())
            assert len(mixture.weights) == 4
            assert sorted(map(tuple, mixture.means.round(1) + 0.0)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
            assert len({tuple(mixture.component[60 * k : 60 * k + 60]) for k in range(4)}) == 4

    @settings(deadline=None, max_examples=15)
    @given(st.integers(0, 10_000), st.integers(2, 6), st.integers(5, 120))
    def test_bic_and_components_are_what_scikit_learn_says_of_the_mixture(self, seed, columns, n):
        rows = shares(n, columns, seed)
        mixture = best_mixture(rows, 0, SearchOptions(max_components=6, starts=2))
        theirs = as_scikit_learn(mixture)
        assert mixture.bic == pytest.approx(theirs.bic(rows), rel=1e-6, abs=1e-5)
        density = theirs._estimate_weighted_log_prob(rows)
        chosen = density[np.arange(n), mixture.component]
        np.testing.assert_allclose(chosen, density.max(1), atol=0.02 + 1e-6 * np.abs(chosen).max())
        assert (np.diff(mixture.weights) <= 0).all()
        assert mixture.weights.sum() == pytest.approx(1)

    @pytest.mark.parametrize("seed", range(3))
    def test_bic_is_no_higher_than_scikit_learns(self, seed):
        rows = shares(250, 5, seed, degree=6)
        mixture = best_mixture(rows, seed, SearchOptions())
        k = len(mixture.weights)
        theirs = GaussianMixture(k, n_init=5, reg_covar=REG, random_state=seed).fit(rows)
        assert mixture.bic <= theirs.bic(rows) + 1e-6

    def test_the_same_seed_gives_the_same_mixture(self):
        rows = shares(100, 4, 7)
        one, other = (best_mixture(rows, 3, SearchOptions(max_components=5)) for _ in range(2))
        assert one.bic == other.bic
        assert (one.component == other.component).all()

    def test_the_order_of_columns_does_not_matter_to_one_component(self):
        rows = shares(100, 4, 8)
        one, other = (best_mixture(r, 0, SearchOptions(max_components=1)) for r in (rows, rows[:, ::-1]))
        assert one.bic == pytest.approx(other.bic, rel=1e-9)

    def test_growing_ends_when_bic_keeps_rising(self):
        rows = blobs([(0, 0), (1, 0)], 60, 0.05)
        tried = best_mixture(rows, 0, SearchOptions(patience=3)).bic_by_components
        assert list(tried) == [1, 2, 3, 4, 5]

    def test_there_are_no_more_components_than_points(self):
        rows = np.repeat(np.eye(3), 5, axis=0)
        assert max(best_mixture(rows, 0, SearchOptions(patience=25)).bic_by_components) == 3

    @pytest.mark.parametrize("rows", [np.array([[0.2, 0.8]]), np.full((6, 3), 1 / 3)], ids=["one row", "equal rows"])
    def test_a_class_of_one_point_has_one_component(self, rows):
        mixture = best_mixture(rows, 0, SearchOptions())
        assert mixture.weights == pytest.approx([1])
        np.testing.assert_allclose(mixture.means, rows[:1])
        np.testing.assert_allclose(mixture.covariances[0], REG * np.eye(rows.shape[1]), atol=1e-15)

    def test_small_batches_change_nothing(self, monkeypatch):
        rows = shares(60, 4, 9)
        whole = best_mixture(rows, 0, SearchOptions(max_components=4))
        monkeypatch.setattr(mixture_search, "LARGEST_BATCH", 1)
        assert best_mixture(rows, 0, SearchOptions(max_components=4)).bic == pytest.approx(whole.bic, rel=1e-9)

    def test_dropping_a_component_loses_no_rows(self):
        points = Points.of(shares(60, 4, 9), REG)
        spikes = np.diag(points.count)[:5]
        spikes[0] += points.count - spikes.sum(0)
        dropped = mixture_search._drop(points, spikes)
        assert dropped.shape == (5, 4, len(points.x))
        np.testing.assert_allclose(dropped.sum(1), np.broadcast_to(points.count, (5, len(points.x))))

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("max_components", 0),
            ("max_components", 2.5),
            ("starts", 0),
            ("patience", 0),
            ("reg_covar", 0.0),
            ("reg_covar", 1e-9),
            ("reg_covar", float("inf")),
            ("tol", 0.0),
            ("tol", float("inf")),
        ],
    )
    def test_bad_options_are_named(self, option, value):
        with pytest.raises(UserError, match=option):
            SearchOptions(**{option: value})


def test_rank_tolerance_is_far_from_rounding_and_from_data():
    rows = shares(2000, 7, 10, degree=100)
    assert Points.of(rows, REG).dimension == 6
    assert expectation.RANK_TOLERANCE < 1e-6
