"""Facts of pairs, by hand, and the regression against scikit-learn's."""

import numpy as np
import pytest
import torch

from gumbel_mpnn.measures.pair_facts import class_affinity, common_neighbors, log_odds, random_non_edges
from gumbel_mpnn.util.errors import DataError
from helpers import both_ways, edges

PATH_AND_TRIANGLE = edges((0, 1), (1, 2), (2, 0), (2, 3))


class TestCommonNeighbors:
    PAIRS = edges((0, 1), (0, 3), (2, 3), (1, 3), (4, 0))

    @pytest.mark.parametrize("index", [PATH_AND_TRIANGLE, both_ways(PATH_AND_TRIANGLE)], ids=["one way", "both ways"])
    def test_by_hand(self, index):
        assert common_neighbors(index, 5, self.PAIRS).tolist() == [1, 1, 0, 1, 0]

    def test_self_loops_and_repeats_do_not_count(self):
        index = torch.cat([PATH_AND_TRIANGLE, edges((0, 0), (3, 3), (1, 2), (1, 2))], dim=1)
        assert common_neighbors(index, 5, self.PAIRS).tolist() == [1, 1, 0, 1, 0]

    def test_no_pairs(self):
        assert common_neighbors(PATH_AND_TRIANGLE, 5, edges()).tolist() == []

    def test_in_parts(self, monkeypatch):
        monkeypatch.setattr("gumbel_mpnn.measures.pair_facts.PAIRS_AT_ONCE", 2)
        assert common_neighbors(PATH_AND_TRIANGLE, 5, self.PAIRS).tolist() == [1, 1, 0, 1, 0]


class TestAffinity:
    def test_of_a_homophilous_graph(self):
        """Two classes of two nodes, joined only within: twice as often as by chance, and never otherwise."""
        belief = torch.eye(2)[[0, 0, 1, 1]]
        found = class_affinity(belief, both_ways(edges((0, 1), (2, 3))), edges((0, 1), (0, 2), (2, 3)))
        assert found.tolist() == [2, 0, 2]

    def test_of_a_heterophilous_graph(self):
        belief = torch.eye(2)[[0, 0, 1, 1]]
        found = class_affinity(belief, both_ways(edges((0, 2), (1, 3))), edges((0, 1), (0, 2)))
        assert found.tolist() == [0, 2]

    def test_a_class_with_many_edges_is_not_akin_by_this(self):
        """Ends of edges are of the first class in 2 of 3 cases, and joined as if at random."""
        belief = torch.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1]]
        within = edges((0, 1), (1, 2), (2, 3), (3, 0), (4, 5))
        across = edges((0, 4), (1, 5), (2, 6), (3, 7))
        found = class_affinity(belief, both_ways(torch.cat([within, across], dim=1)), edges((0, 2), (0, 7), (6, 7)))
        torch.testing.assert_close(found, torch.ones(3))

    def test_of_nodes_nothing_is_known_of(self):
        belief = torch.cat([torch.eye(2)[[0, 0, 1, 1]], torch.full((2, 2), 0.5)])
        found = class_affinity(belief, both_ways(edges((0, 1), (2, 3))), edges((4, 5), (0, 4)))
        torch.testing.assert_close(found, torch.ones(2))


class TestRandomNonEdges:
    def test_they_are_pairs_of_different_nodes_that_are_not_joined(self):
        index = edges(*((a, b) for a in range(20) for b in range(a)))[:, ::2]
        joined = {tuple(sorted(pair)) for pair in index.T.tolist()}
        found = random_non_edges(index, 20, 60)
        assert found.shape == (2, 60)
        assert all(a != b and tuple(sorted((a, b))) not in joined for a, b in found.T.tolist())

    def test_the_seed_decides(self):
        first, again, other = (random_non_edges(PATH_AND_TRIANGLE, 50, 9, seed) for seed in (0, 0, 1))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_a_complete_graph_has_none(self):
        index = edges(*((a, b) for a in range(6) for b in range(a)))
        with pytest.raises(DataError, match="nearly all nodes of this graph are joined"):
            random_non_edges(index, 6, 5)


class TestLogOdds:
    @pytest.mark.parametrize("seed", range(3))
    def test_like_scikit_learn(self, seed):
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        rng = np.random.default_rng(seed)
        inside, outside = rng.normal(size=(60, 3)) * [1, 5, 0.1] + [1, 2, 0], rng.normal(size=(40, 3)) * [1, 5, 0.1]
        rows, truth = np.concatenate([inside, outside]), np.repeat([1, 0], [60, 40])
        scaler = StandardScaler().fit(rows)
        theirs = (
            LogisticRegression(tol=1e-10).fit(scaler.transform(rows), truth).decision_function(scaler.transform(rows))
        )
        weights, offset = log_odds(inside, outside)
        np.testing.assert_allclose(rows @ weights + offset, theirs, atol=1e-4)

    def test_a_fact_that_does_not_vary_has_no_weight(self):
        rows = np.array([[1.0, 3.0], [2.0, 3.0]])
        weights, _ = log_odds(rows + np.array([2.0, 0.0]), rows)
        assert weights[1] == 0
        assert weights[0] > 0

    def test_facts_that_tell_all_apart_have_finite_weights(self):
        weights, offset = log_odds(np.full((50, 1), 2.0), np.zeros((50, 1)))
        assert np.isfinite([*weights, offset]).all()
        assert 2 * weights[0] + offset > 1 > -1 > offset
