"""Graph rewiring as a scikit-learn classifier of the rows of a table that are nodes of a graph."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch_geometric.data import Data

from gumbel_mpnn.runs.fit import fit
from gumbel_mpnn.runs.run import load_run
from gumbel_mpnn.util.errors import DataWarning, UserError, check_at_least, check_between

__all__ = ["RewiringClassifier"]

MOST_SEED = 2**31 - 1
IntArray = NDArray[np.int64]


class RewiringClassifier(ClassifierMixin, BaseEstimator):
    """Trains a model of `gm.fit` on rows of features and the edges between them.

    Training is transductive: a part of the rows is kept for validation, by which the epoch (and the rung of `auto`) is
    chosen. All rows given to `fit` need a label.

    `edges` are pairs of row numbers of X [E, 2], or a sparse adjacency matrix [N, N] whose values are weights. If X is
    a part of a larger table, as in cross-validation, give the row numbers too, `rows=np.arange(n)`: scikit-learn then
    passes on the numbers of the rows that it selects. Edges to rows that are not there are left out.

    Predictions are made

    - with `rows`, on the graph of `fit` with the new rows and their edges added (transductive; a row that was in `fit`
      keeps the features it had there);
    - without `rows`, on the graph of the given rows alone and the edges between them (inductive).

    Args:
        model: Name of a model, as in `gm.fit`.
        settings: Tables of settings, as in `gm.fit`.
        overrides: Settings such as `("train.epochs=60",)`, which override these.
        seeds: Number of models, whose probabilities are averaged.
        validation_fraction: Share of the rows of each class that is kept for validation.
        random_state: Seed or generator of the validation rows and of training.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if X was a DataFrame with names.
        run_: The finished runs, a `gm.Run` in a temporary folder.
    """

    def __init__(
        self,
        model: str = "auto",
        *,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        overrides: Iterable[str] = (),
        seeds: int = 1,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.settings = settings
        self.overrides = overrides
        self.seeds = seeds
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, edges: Any = None, rows: Any = None) -> RewiringClassifier:
        """Train on all rows.

        Args:
            X: Features [N, F]: an array, a sparse matrix or a DataFrame.
            y: Class of each row, [N].
            edges: Pairs of row numbers [E, 2] or a sparse adjacency matrix; no edges by default.
            rows: Number of each row of X, [N], if X is a part of the rows that `edges` are about.
        """
        check_between(0, 1, validation_fraction=self.validation_fraction)
        check_at_least(1, seeds=self.seeds)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32)
        check_classification_targets(y)
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise UserError(f"all rows are of one class, {self.classes_.tolist()[0]!r}: a classifier needs two or more")
        self._rows, self._numbered = _row_numbers(rows, X.shape[0]), rows is not None
        self._edges = _read_edges(edges, self._rows, self._numbered)
        random = check_random_state(self.random_state)
        data = _graph(_dense(X), self._rows, self._edges)
        data.y, data.class_names = torch.from_numpy(label.astype(np.int64)), self.classes_.tolist()
        data.val_mask = torch.from_numpy(_validation_rows(label, self.validation_fraction, random))
        data.train_mask, data.test_mask = ~data.val_mask, torch.zeros_like(data.val_mask)
        first = int(random.randint(MOST_SEED))
        self.run_ = fit(
            data,
            self.model,
            seeds=range(first, first + self.seeds),
            preset=None,
            settings=self.settings,
            overrides=self.overrides,
            device=self.device,
            progress=False,
        )
        return self

    def predict_proba(self, X: Any, edges: Any = None, rows: Any = None) -> Any:
        """Probability of each class, [N, C], in the order of `classes_`.

        Args:
            X: Features [N, F].
            edges: Edges of these rows, as in `fit`.
            rows: Number of each row, as in `fit`: the rows are added to those of `fit`.
        """
        check_is_fitted(self)
        x = _dense(validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False))
        numbers = _row_numbers(rows, len(x))
        found = _read_edges(edges, numbers, numbered=rows is not None)
        if rows is None:
            if edges is None and len(self._edges):
                warnings.warn(
                    "the classifier was trained with edges, but gets none here and predicts from features alone: give"
                    " edges, and rows in cross-validation",
                    DataWarning,
                    stacklevel=2,
                )
            return self.run_.predict_proba(_graph(x, numbers, found)).numpy()
        if not self._numbered:
            raise UserError("rows was given here but not to fit: give both the numbers of their rows, or neither")
        new = ~np.isin(numbers, self._rows)
        every = np.concatenate([self._rows, numbers[new]])
        graph = _graph(np.concatenate([self.run_.data.x.numpy(), x[new]]), every, pd.concat([self._edges, found]))
        return self.run_.predict_proba(graph).numpy()[pd.Index(every).get_indexer(numbers)]

    def predict(self, X: Any, edges: Any = None, rows: Any = None) -> Any:
        """Class of each row, [N]; the arguments are those of `predict_proba`."""
        best = self.predict_proba(X, edges, rows).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, edges: Any = None, rows: Any = None) -> float:
        """Accuracy on rows with known classes `y`; the other arguments are those of `predict_proba`."""
        return float(accuracy_score(y, self.predict(X, edges, rows), sample_weight=sample_weight))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__().copy()
        if "run_" in state:  # its folder is temporary, so that the content of the folder is kept
            run = state.pop("run_")
            path = run.folder.path
            files = [file for file in path.rglob("*") if file.is_file()]
            content = {str(file.relative_to(path.parent)): file.read_bytes() for file in files}
            state["_stored_run"] = copy.copy(run.data), path.name, content
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        data, name, files = state.pop("_stored_run", (None, "", {}))
        super().__setstate__(state)
        if data is not None:
            self._folder = TemporaryDirectory()
            for file, content in files.items():
                path = Path(self._folder.name, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.run_ = load_run(Path(self._folder.name, name), data=data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _dense(X: Any) -> NDArray[np.float32]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)


def _validation_rows(label: IntArray, fraction: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    """Choose about a fraction of the rows of each class at random, [N]; every class keeps a row to train on."""
    chosen = np.zeros(len(label), dtype=bool)
    shuffled = random.permutation(len(label))
    spare = list[int]()
    for each in np.unique(label):
        mine = shuffled[label[shuffled] == each]
        chosen[mine[: min(round(fraction * len(mine)), len(mine) - 1)]] = True
        spare += mine[:-1].tolist()
    if not spare:
        raise UserError("every class has a single row, so that none is left for validation: give more rows")
    if not chosen.any():
        chosen[spare[0]] = True
    return chosen


def _graph(x: NDArray[np.float32], rows: IntArray, edges: pd.DataFrame) -> Data:
    """Graph of the nodes with features `x` [N, F] and row numbers `rows` [N]; edges to other rows are left out."""
    place = pd.Index(rows)
    found = edges.assign(source=place.get_indexer(edges["source"]), target=place.get_indexer(edges["target"]))
    found = found[(found["source"] >= 0) & (found["target"] >= 0)]
    # An edge that was given twice, to `fit` and to `predict`, counts once.
    found = found.drop_duplicates(["source", "target"]).sort_values(["source", "target"])
    ends = torch.from_numpy(found[["source", "target"]].to_numpy(dtype=np.int64).T.copy())
    data = Data(x=torch.from_numpy(x.copy()), edge_index=ends, undirected=True)
    if (found["weight"] != 1).any():
        data.edge_weight = torch.from_numpy(found["weight"].to_numpy(dtype=np.float32))
    return data


def _row_numbers(rows: Any, count: int) -> IntArray:
    """Row numbers of the `count` rows of X; 0, 1, … if `rows` is None."""
    numbers: NDArray[Any] = np.arange(count) if rows is None else np.asarray(rows)
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise UserError(f"rows must have one whole number for each of the {count} rows of X: give np.arange(n)")
    if len(np.unique(numbers)) < count:
        raise UserError("rows has the same number twice: give every row of X a number of its own")
    return numbers.astype(np.int64)


def _read_edges(edges: Any, rows: IntArray, numbered: bool) -> pd.DataFrame:
    """Edges that the user gives, by the row numbers of their ends, for rows of X with the numbers `rows` [N].

    Pairs are row numbers [E, 2]. A sparse adjacency matrix is of the rows of X [N, M] (as scikit-learn cuts it) or of
    all rows [M, M]. Unless the user gave the numbers, all ends of edges must be rows of X.
    """
    if issparse(edges):
        whole = numbered and edges.shape[0] == edges.shape[1] > rows.max(initial=-1)
        if not whole and edges.shape[0] != len(rows):
            raise UserError(f"the matrix edges has {edges.shape[0]} rows, but X has {len(rows)}: give one row for each")
        matrix = edges.tocoo()
        source = matrix.row if whole else rows[matrix.row]
        found = pd.DataFrame({"source": source, "target": matrix.col, "weight": matrix.data.astype(np.float32)})
        found = found[found["weight"] != 0].astype({"source": np.int64, "target": np.int64})
    else:
        pairs: NDArray[Any] = np.asarray([] if edges is None else edges)
        pairs = pairs if pairs.size else np.empty((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            hint = "give edge_index.T" if pairs.ndim == 2 and len(pairs) == 2 else "or a sparse adjacency matrix"
            raise UserError(f"edges must be pairs of row numbers [E, 2], not {pairs.dtype} {list(pairs.shape)}: {hint}")
        if numbered and len(pairs) == len(rows):
            # scikit-learn takes a list with as many edges as there are rows for one value per row, and cuts it.
            raise UserError(
                f"edges has as many pairs as X has rows, {len(rows)}, so that cross-validation would cut it as it cuts"
                " X: give edges as a sparse adjacency matrix"
            )
        found = pd.DataFrame(pairs.astype(np.int64), columns=["source", "target"]).assign(weight=np.float32(1))
    ends = found[["source", "target"]].to_numpy()
    if ends.min(initial=0) < 0:
        raise UserError(f"edges has the row number {ends.min()}: numbers begin at 0")
    if not numbered and ends.max(initial=-1) >= len(rows):
        raise UserError(
            f"edges has the row number {ends.max()}, but X has {len(rows)} rows: if X is a part of the rows, as in"
            " cross-validation, give their numbers too, as rows=np.arange(n)"
        )
    return found
