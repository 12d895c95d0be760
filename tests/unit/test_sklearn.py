"""The classifier: scikit-learn's own checks, edges in training, prediction and cross-validation."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import gumbel_mpnn as gm
from gumbel_mpnn.util.errors import DataWarning

FAST = {"model": {"hidden_channels": 8, "dropout": 0.0}, "train": {"lr": 0.05}}
N = 40


def classifier(model="gcn", epochs=20, **options):
    how = {"settings": FAST, "overrides": [f"train.epochs={epochs}"], "random_state": 0, "device": "cpu", **options}
    return gm.sklearn.RewiringClassifier(model, **how)


@parametrize_with_checks([classifier()])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_another_order_of_the_rows_changes_nothing_but_rounding():
    """Of a model that looks for new edges, which therefore cannot predict a row by itself."""
    x, y, _ = table()
    model, order = classifier("gumbel-mpnn").fit(x, y), np.random.default_rng(0).permutation(N)
    np.testing.assert_allclose(model.predict_proba(x[order]), model.predict_proba(x)[order], rtol=1e-5)


def table(seed=0):
    """Rows of two classes; a row and the next one of its class are joined, which no feature of the second one tells.

    Returns features, classes and the symmetric adjacency matrix.
    """
    random = np.random.default_rng(seed)
    label = np.arange(N) // 2 % 2
    x = random.normal(size=(N, 3)) * 0.1
    x[::2, 0] += 2.0 * label[::2] - 1
    one = np.arange(0, N, 2)
    ends = np.concatenate([one, one + 1]), np.concatenate([one + 1, one])
    return x, np.array(["no", "yes"])[label], csr_array((np.ones(N), ends), shape=(N, N))


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def routed(estimator):
    return estimator.set_fit_request(edges=True, rows=True).set_score_request(edges=True, rows=True)


class TestPredict:
    def test_classes_are_those_of_y(self):
        x, y, edges = table()
        model = classifier().fit(x, y, edges=edges)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.n_features_in_ == 3
        proba = model.predict_proba(x, edges=edges)
        np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-6)
        assert model.predict(x, edges=edges).tolist() == model.classes_[proba.argmax(1)].tolist()
        assert model.score(x, y, edges=edges) == 1
        assert repr(model.run_).startswith("gcn on own: 1 run, metric accuracy\ntest –, validation")
        assert len(model.run_.history) == 20

    def test_pairs_sparse_rows_and_frames_are_the_same(self):
        x, y, edges = table()
        pairs = np.stack(edges.nonzero(), 1)
        expected = classifier().fit(x, y, edges=edges).predict_proba(x, edges=edges)
        for form in (csr_array(x), pd.DataFrame(x, columns=list("abc"))):
            assert (classifier().fit(form, y, edges=pairs).predict_proba(form, edges=pairs) == expected).all()

    def test_without_rows_the_graph_is_that_of_the_rows_given(self):
        """The second half tells its class only by edges within it."""
        x, y, edges = table()
        half = N // 2
        model = classifier().fit(x[:half], y[:half], edges=edges[:half, :half])
        assert model.score(x[half:], y[half:], edges=edges[half:, half:]) == 1

    def test_with_rows_edges_to_those_of_fit_count(self):
        """Odd rows have no features that tell the class; all their neighbors are even rows, which were in `fit`."""
        x, y, edges = table()
        first, odd = np.r_[0:20, 20:N:2], np.arange(21, N, 2)
        model = classifier().fit(x[first], y[first], edges=edges[first], rows=first)
        assert model.score(x[odd], y[odd], edges=edges[odd], rows=odd) == 1
        assert model.score(x[odd], y[odd], edges=edges[odd][:, odd]) < 1

    def test_an_edge_that_is_listed_at_the_row_of_fit_only(self):
        """An upper triangular matrix has the edge of a new row in the row of its neighbor."""
        x, y, edges = table()
        first, odd = np.r_[0:20, 20:N:2], np.arange(21, N, 2)
        upper = csr_array((np.ones(N // 2), (np.arange(0, N, 2), np.arange(1, N, 2))), shape=(N, N))
        results = [
            classifier().fit(x[first], y[first], edges=some[first], rows=first).predict_proba(x[odd], rows=odd)
            for some in (edges, upper)
        ]
        assert (results[0] == results[1]).all()
        assert (results[1].argmax(1) == (y[odd] == "yes")).all()

    def test_rows_of_fit_are_not_doubled(self):
        x, y, edges = table()
        model = classifier().fit(x, y, edges=edges, rows=np.arange(N))
        again = np.array([5, 3, 30])
        expected = model.predict_proba(x, edges=edges, rows=np.arange(N))[again]
        assert (model.predict_proba(x[again], edges=edges[again], rows=again) == expected).all()
        np.testing.assert_allclose(expected, model.run_.predict_proba()[again], rtol=1e-6)

    def test_rows_for_one_of_both(self):
        x, y, edges = table()
        model = classifier(epochs=2).fit(x, y, edges=edges)
        with pytest.raises(gm.UserError, match="rows was given here but not to fit"):
            model.predict(x, edges=edges, rows=np.arange(N))


class TestFit:
    def test_more_seeds_are_averaged(self):
        x, y, edges = table()
        model = classifier(epochs=3, seeds=3).fit(x, y, edges=edges)
        first = model.run_.records[0].seed
        assert [record.seed for record in model.run_.records] == [first, first + 1, first + 2]

    def test_auto_chooses_a_rung(self):
        x, y, edges = table()
        model = classifier("auto", epochs=1, settings={"model": {"hidden_channels": 4}}).fit(x, y, edges=edges)
        assert model.run_.choice.chosen in {rung.name for rung in model.run_.choice.rungs}
        assert model.predict(x, edges=edges).shape == (N,)

    def test_a_pickled_model_predicts_the_same(self):
        x, y, edges = table()
        model = classifier("gumbel-mpnn", epochs=3).fit(x, y, edges=edges, rows=np.arange(N))
        again = pickle.loads(pickle.dumps(model))  # noqa: S301  (its own bytes)
        rows = np.arange(N)
        assert (again.predict_proba(x, edges, rows) == model.predict_proba(x, edges, rows)).all()
        assert again.run_.rewire().edge_index.equal(model.run_.rewire().edge_index)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"model": "gnc"}, "no model called 'gnc'"),
            ({"validation_fraction": 1.5}, "validation_fraction must lie between 0 and 1"),
            ({"seeds": 0}, "seeds must be at least 1"),
        ],
    )
    def test_mistakes(self, options, message):
        x, y, edges = table()
        with pytest.raises(gm.UserError, match=message):
            classifier().set_params(**options).fit(x, y, edges=edges)

    @pytest.mark.parametrize(
        ("x", "y", "message"),
        [
            (np.eye(4), ["a"] * 4, "all rows are of one class, 'a'"),
            (np.eye(2), [0, 1], "every class has a single row"),
        ],
    )
    def test_rows_that_cannot_be_learned_from(self, x, y, message):
        with pytest.raises(gm.UserError, match=message):
            classifier().fit(x, y)


@pytest.mark.parametrize(
    ("counts", "fraction", "expected"), [([10, 5, 1], 0.2, [2, 1, 0]), ([2, 3], 1.0, [1, 2]), ([1, 2], 0.0, [0, 1])]
)
def test_validation_rows_are_a_share_of_each_class_but_a_row_to_train_on(counts, fraction, expected):
    y = np.repeat(np.arange(len(counts)), counts)
    data = classifier(epochs=1, validation_fraction=fraction).fit(np.eye(len(y), 2), y).run_.data
    assert np.bincount(y[data.val_mask.squeeze().numpy()], minlength=len(counts)).tolist() == expected


@pytest.mark.usefixtures("routing")
class TestCrossValidation:
    FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

    @pytest.mark.parametrize("form", ["matrix", "pairs"])
    def test_scores_are_those_of_a_loop(self, form):
        x, y, matrix = table()
        rows, pairs = np.arange(N), np.stack(matrix.nonzero(), 1)[: N - 1]
        edges = matrix if form == "matrix" else pairs
        expected = []
        for train, test in self.FOLDS.split(x, y):
            of = (lambda part: matrix[part]) if form == "matrix" else (lambda part: pairs)
            model = classifier().fit(x[train], y[train], edges=of(train), rows=train)
            expected.append(model.score(x[test], y[test], edges=of(test), rows=test))
        found = cross_val_score(routed(classifier()), x, y, cv=self.FOLDS, params={"edges": edges, "rows": rows})
        assert found.tolist() == expected
        assert np.mean(expected) > 0.8
        assert cross_val_score(classifier(), x, y, cv=self.FOLDS).mean() < np.mean(expected)

    @pytest.mark.parametrize("validate", [cross_val_predict, partial(cross_val_score, scoring="f1_macro")])
    def test_where_no_edges_are_passed_on_to_predict(self, validate):
        x, y, edges = table()
        how = {"cv": self.FOLDS, "params": {"edges": edges, "rows": np.arange(N)}}
        model = classifier(epochs=2).set_fit_request(edges=True, rows=True)
        with pytest.warns(DataWarning, match="trained with edges, but gets none here"):
            validate(model, x, y, **how)

    def test_grid_search(self):
        x, y, edges = table()
        search = GridSearchCV(routed(classifier()), {"model": ["mlp", "gcn"]}, cv=self.FOLDS, error_score="raise")
        search.fit(x, y, edges=edges, rows=np.arange(N))
        assert search.best_params_ == {"model": "gcn"}
        assert search.score(x, y, edges=edges, rows=np.arange(N)) == 1


PAIRS = [[0, 1], [1, 2], [2, 4], [4, 0]]
MATRIX = csr_array(([1.0, 1, 1, 1], ([0, 1, 2, 4], [1, 2, 4, 0])), shape=(5, 5))
"""The pairs as an adjacency matrix of five rows."""


def fitted(edges, rows=None, n=3):
    """A classifier of a few rows."""
    return classifier(epochs=1).fit(np.eye(n, 2), np.arange(n) % 2, edges=edges, rows=rows)


def pairs_of(model):
    return model.run_.data.edge_index.T.tolist()


class TestEdges:
    ROWS = np.array([4, 0, 2])

    @pytest.mark.parametrize("edges", [PAIRS, MATRIX[ROWS], MATRIX], ids=["pairs", "rows of a matrix", "matrix"])
    def test_of_a_part_of_the_rows(self, edges):
        """Rows 4, 0 and 2 are nodes 0, 1 and 2: of the four edges, 2-4 and 4-0 are among them."""
        assert pairs_of(fitted(edges, self.ROWS)) == [[0, 1], [2, 0]]

    @pytest.mark.parametrize("edges", [None, np.empty((0, 2))])
    def test_none(self, edges):
        assert pairs_of(fitted(edges)) == []

    def test_weights_of_a_matrix(self):
        """A stored zero is no edge, and weights of 1 are none."""
        matrix = coo_array(([0.5, 0.0, 1.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
        data = fitted(matrix).run_.data
        assert (data.edge_index.T.tolist(), data.edge_weight.tolist()) == ([[0, 1], [2, 0]], [0.5, 1.0])
        assert "edge_weight" not in fitted(matrix.astype(bool)).run_.data

    @pytest.mark.parametrize(
        ("edges", "rows", "message"),
        [
            ([[0, 3]], None, r"row number 3, but X has 3 rows: .* rows=np.arange\(n\)"),
            ([[0, -1]], None, "row number -1: numbers begin at 0"),
            ([[0, 1, 2], [1, 2, 0]], None, r"not int64 \[2, 3\]: give edge_index.T"),
            ([[0.5, 1.0]], None, r"not float64 \[1, 2\]"),
            ([0, 1], None, r"not int64 \[2\]"),
            (MATRIX, None, "the matrix edges has 5 rows, but X has 3"),
            (MATRIX[:3], None, "row number 4, but X has 3 rows"),
            ([[0, 1], [1, 2], [2, 4]], ROWS, "as many pairs as X has rows, 3, so that cross-validation would cut it"),
            (None, [0], "one whole number for each of the 3 rows"),
            (None, [0.0, 1.0, 2.0], "one whole number"),
            (None, [1, 1, 2], "the same number twice"),
        ],
    )
    def test_mistakes(self, edges, rows, message):
        with pytest.raises(gm.UserError, match=message):
            fitted(edges, rows)
