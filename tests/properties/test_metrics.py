"""Metrics against scikit-learn, with another mask for every replica and classes that may be absent."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    roc_auc_score,
)

from gumbel_mpnn.training import metrics

levels = st.integers(-2, 2)
"""Few values, so that ties are common."""


def mean_over_classes(area):
    """The mean of an area of each class against all others, over the classes that are present."""
    return lambda y, _, score: np.mean([area(y == c, score[:, c]) for c in np.unique(y)])


# By metric: what scikit-learn says of labels, predictions and probabilities, and how many classes must be present.
OF_PREDICTIONS = {
    "accuracy": (lambda y, found, _: accuracy_score(y, found), 1),
    "balanced_accuracy": (lambda y, found, _: balanced_accuracy_score(y, found), 1),
    "macro_f1": (lambda y, found, _: f1_score(y, found, average="macro", zero_division=0), 1),
}
OF_MANY_CLASSES = {
    "roc_auc": (mean_over_classes(roc_auc_score), 2),
    "average_precision": (mean_over_classes(average_precision_score), 2),
}
OF_TWO_CLASSES = {
    "roc_auc": (lambda y, _, score: roc_auc_score(y, score[:, 1]), 2),
    "average_precision": (lambda y, _, score: average_precision_score(y, score[:, 1]), 2),
}
CASES = [
    *((name, range(2, 5), *case) for name, case in OF_PREDICTIONS.items()),
    *((name, range(3, 6), *case) for name, case in OF_MANY_CLASSES.items()),
    *((name, range(2, 3), *case) for name, case in OF_TWO_CLASSES.items()),
]


@pytest.mark.parametrize(("name", "classes", "expected", "present"), CASES, ids=[f"{c[0]}-{c[1][-1]}" for c in CASES])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
@settings(max_examples=60)
@given(st.data())
def test_a_metric_is_that_of_scikit_learn(name, classes, expected, present, data):
    count, replicas, nodes = (data.draw(st.sampled_from(sizes)) for sizes in (classes, range(1, 4), range(5, 16)))
    logits = data.draw(hnp.arrays("float32", (replicas, nodes, count), elements=levels))
    y = data.draw(hnp.arrays("int64", nodes, elements=st.integers(-1, count - 1)))
    mask = data.draw(hnp.arrays(bool, (replicas, nodes)))
    y[:present], mask[:, :present] = range(present), True
    mask &= y >= 0
    found = metrics[name](*map(torch.from_numpy, (logits, y, mask))).tolist()
    probability = torch.from_numpy(logits).double().softmax(-1).numpy()
    wanted = [expected(y[m], logits[r].argmax(-1)[m], probability[r][m]) for r, m in enumerate(mask)]
    assert found == pytest.approx(wanted, abs=1e-6)
