"""A scikit-learn classifier of the rows of a table that are nodes of a graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gumbel_mpnn._util.errors import DataWarning, UserError, check_at_least, check_between
from gumbel_mpnn.runs import Place, describe, fit_any
from gumbel_mpnn.sklearn.fitted import GivenData, in_memory, validation_rows
from gumbel_mpnn.sklearn.row_edges import read_edges, row_numbers

MOST_SEED = 2**31 - 1


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
        overrides: Settings such as `("model.dropout=0.7",)`, which override these.
        epochs: Number of epochs; None for that of the settings.
        seeds: Number of models, whose probabilities are averaged.
        validation_fraction: Share of the rows of each class that is kept for validation.
        random_state: Seed or generator of the validation rows and of training.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if X was a DataFrame with names.
        run_: The finished runs, a `gm.Run`.
    """

    def __init__(
        self,
        model: str = "auto",
        *,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        overrides: Iterable[str] = (),
        epochs: int | None = None,
        seeds: int = 1,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.settings = settings
        self.overrides = overrides
        self.epochs = epochs
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
        _check_real(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32)
        check_classification_targets(y)
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise UserError(
                f"all rows are of one class, {self.classes_.tolist()[0]!r}: a classifier needs two or more classes"
            )
        x, numbers = _dense(X), row_numbers(rows, X.shape[0])
        found = read_edges(edges, numbers, numbered=rows is not None)
        random = check_random_state(self.random_state)
        validation = validation_rows(label, self.validation_fraction, random)
        data = found.graph(x, numbers)
        data.y = torch.from_numpy(label.astype(np.int64))
        data.class_names = self.classes_.tolist()
        data.val_mask = torch.from_numpy(validation)
        data.train_mask, data.test_mask = ~data.val_mask, torch.zeros_like(data.val_mask)
        first = int(random.randint(MOST_SEED))
        spec = describe(
            data,
            self.model,
            seeds=range(first, first + self.seeds),
            preset=None,
            settings=self.settings,
            overrides=(*self.overrides, *([] if self.epochs is None else [f"train.epochs={self.epochs}"])),
        )
        self.run_ = in_memory(fit_any(spec, Place(device=self.device, reader=GivenData())))
        self._rows, self._edges, self._numbered = numbers, found, rows is not None
        return self

    def predict_proba(self, X: Any, edges: Any = None, rows: Any = None) -> NDArray[np.float32]:
        """Probability of each class, [N, C], in the order of `classes_`.

        Args:
            X: Features [N, F].
            edges: Edges of these rows, as in `fit`.
            rows: Number of each row, as in `fit`: the rows are added to those of `fit`.
        """
        check_is_fitted(self)
        _check_real(X)
        x = _dense(validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False))
        numbers = row_numbers(rows, len(x))
        found = read_edges(edges, numbers, numbered=rows is not None)
        if rows is None:
            if edges is None and len(self._edges):
                warnings.warn(
                    "the classifier was trained with edges, but gets none here and predicts from features alone: give"
                    " edges, and rows in cross-validation",
                    DataWarning,
                    stacklevel=2,
                )
            return self._probabilities(found.graph(x, numbers))
        if not self._numbered:
            raise UserError("rows was given here but not to fit: give both the numbers of their rows, or neither")
        new = ~np.isin(numbers, self._rows)
        every = np.concatenate([self._rows, numbers[new]])
        graph = (self._edges + found).graph(np.concatenate([self.run_.data.x.numpy(), x[new]]), every)
        order = np.argsort(every)
        mine: NDArray[np.float32] = self._probabilities(graph)[order[np.searchsorted(every, numbers, sorter=order)]]
        return mine

    def predict(self, X: Any, edges: Any = None, rows: Any = None) -> NDArray[Any]:
        """Class of each row, [N]; the arguments are those of `predict_proba`."""
        best = self.predict_proba(X, edges, rows).argmax(1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None, edges: Any = None, rows: Any = None) -> float:
        """Accuracy on rows with known classes `y`; the other arguments are those of `predict_proba`."""
        return float(accuracy_score(y, self.predict(X, edges, rows), sample_weight=sample_weight))

    def _probabilities(self, graph: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.run_.predict_proba(graph).numpy()
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _check_real(X: Any) -> None:
    """Raise a `UserError` for dates and durations, which numpy converts to numbers without a word."""
    types = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    wrong = next((each for each in types if getattr(each, "kind", "") in ("m", "M")), None)
    if wrong is not None:
        raise UserError(f"X holds {wrong}, dates or durations, which are not features: turn them into numbers")


def _dense(X: Any) -> NDArray[np.float32]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)
