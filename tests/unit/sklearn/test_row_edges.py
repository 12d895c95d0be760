"""Edges by row numbers: which become edges of the graph of a part of the rows."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from gumbel_mpnn import UserError
from gumbel_mpnn.sklearn.row_edges import read_edges, row_numbers

X = np.zeros((3, 2), dtype=np.float32)
PAIRS = [[0, 1], [1, 2], [2, 4], [4, 0]]
MATRIX = csr_array(([1.0, 1, 1, 1], ([0, 1, 2, 4], [1, 2, 4, 0])), shape=(5, 5))


def pairs_of(data):
    return data.edge_index.T.tolist()


class TestAPartOfTheRows:
    """Rows 4, 0 and 2 are nodes 0, 1 and 2: of the four edges, 2–4 and 4–0 are among them."""

    ROWS = np.array([4, 0, 2])
    EXPECTED = ([0, 1], [2, 0])

    def test_pairs(self):
        assert pairs_of(read_edges(PAIRS, self.ROWS, numbered=True).graph(X, self.ROWS)) == list(self.EXPECTED)

    def test_rows_of_a_matrix(self):
        assert pairs_of(read_edges(MATRIX[self.ROWS], self.ROWS, True).graph(X, self.ROWS)) == list(self.EXPECTED)

    def test_a_matrix_of_all_rows(self):
        assert pairs_of(read_edges(MATRIX, self.ROWS, True).graph(X, self.ROWS)) == list(self.EXPECTED)

    def test_edges_of_two_parts(self):
        """The matrix of `fit` has the rows 0 and 2, that of `predict` the row 4, and both edges at 4 are found."""
        fitted, new = np.array([0, 2]), np.array([4])
        edges = read_edges(MATRIX[fitted], fitted, True) + read_edges(MATRIX[new], new, True)
        assert pairs_of(edges.graph(X, np.array([0, 2, 4]))) == [[1, 2], [2, 0]]

    def test_an_edge_that_is_given_twice(self):
        edges = read_edges(PAIRS, self.ROWS, True) + read_edges(PAIRS, self.ROWS, True)
        assert pairs_of(edges.graph(X, self.ROWS)) == list(self.EXPECTED)


def test_no_edges():
    assert read_edges(None, np.arange(3), False).graph(X, np.arange(3)).edge_index.shape == (2, 0)
    assert read_edges(np.empty((0, 2)), np.arange(3), False).graph(X, np.arange(3)).edge_index.shape == (2, 0)


def test_weights_of_a_matrix():
    """A stored zero is no edge, and weights of 1 are none."""
    matrix = coo_array(([0.5, 0.0, 1.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    data = read_edges(matrix, np.arange(3), False).graph(X, np.arange(3))
    assert pairs_of(data) == [[0, 1], [2, 0]]
    assert data.edge_weight.tolist() == [0.5, 1.0]
    assert "edge_weight" not in read_edges(matrix.astype(bool), np.arange(3), False).graph(X, np.arange(3))


@pytest.mark.parametrize(
    ("edges", "numbered", "message"),
    [
        ([[0, 3]], False, r"row number 3, but X has 3 rows: .* rows=np.arange\(n\)"),
        ([[0, -1]], False, "row number -1: numbers begin at 0"),
        ([[0, 1, 2], [1, 2, 0]], False, r"not int64 \[2, 3\]: give edge_index.T"),
        ([[0.5, 1.0]], False, r"not float64 \[1, 2\]"),
        ([0, 1], False, r"not int64 \[2\]"),
        (MATRIX, False, "the matrix edges has 5 rows, but X has 3"),
        (MATRIX[:3], False, "row number 4, but X has 3 rows"),
        ([[0, 1], [1, 2], [2, 4]], True, "as many pairs as X has rows, 3, so that cross-validation would cut it"),
    ],
)
def test_mistakes(edges, numbered, message):
    with pytest.raises(UserError, match=message):
        read_edges(edges, np.arange(3), numbered)


def test_row_numbers():
    assert row_numbers(None, 3).tolist() == [0, 1, 2]
    assert row_numbers([7, 5], 2).tolist() == [7, 5]
    for rows, message in (
        ([0], "one whole number for each of the 2 rows"),
        ([0.0, 1.0], "one whole number"),
        ([1, 1], "the same number twice"),
    ):
        with pytest.raises(UserError, match=message):
            row_numbers(rows, 2)
