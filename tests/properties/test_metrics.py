"""Metrics against scikit-learn, with another mask for every replica."""

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

from gumbel_mpnn.training import accuracy, average_precision, balanced_accuracy, macro_f1, metrics, roc_auc

bounded = settings(max_examples=60, deadline=None)
levels = st.integers(-2, 2)
"""Few values, so that ties are common."""


@bounded
@given(st.data(), st.integers(1, 3), st.integers(1, 12), st.integers(2, 4))
def test_accuracy_is_scikit_learns(data, replicas, nodes, classes):
    logits = data.draw(
        hnp.arrays("float32", (replicas, nodes, classes), elements=st.floats(-5, 5, width=32), unique=True)
    )
    y = data.draw(hnp.arrays("int64", nodes, elements=st.integers(-1, classes - 1)))
    mask = data.draw(hnp.arrays(bool, (replicas, nodes)))
    mask[:, 0] = True
    actual = accuracy(*map(torch.from_numpy, (logits, y, mask)))
    expected = [accuracy_score(y[mask[r]], logits[r].argmax(-1)[mask[r]]) for r in range(replicas)]
    assert actual.tolist() == pytest.approx(expected)


@bounded
@given(st.data(), st.integers(1, 3), st.integers(2, 15))
def test_roc_auc_is_scikit_learns(data, replicas, nodes):
    logits = data.draw(hnp.arrays("float32", (replicas, nodes, 2), elements=levels))
    y = data.draw(hnp.arrays("int64", nodes, elements=st.integers(-1, 1)))
    mask = data.draw(hnp.arrays(bool, (replicas, nodes)))
    y[:2], mask[:, :2] = [0, 1], True
    mask &= y >= 0
    actual = roc_auc(*map(torch.from_numpy, (logits, y, mask)))
    score = logits[..., 1] - logits[..., 0]
    expected = [roc_auc_score(y[mask[r]], score[r][mask[r]]) for r in range(replicas)]
    assert actual.tolist() == pytest.approx(expected, abs=1e-6)


@st.composite
def cases(draw, classes, least=1):
    """Logits [R, N, C] of few values, classes [N] of which some may be absent, and masks [R, N] of labelled nodes."""
    replicas, nodes = draw(st.integers(1, 3)), draw(st.integers(least, 15))
    logits = draw(hnp.arrays("float32", (replicas, nodes, classes), elements=levels))
    y = draw(hnp.arrays("int64", nodes, elements=st.integers(-1, classes - 1)))
    mask = draw(hnp.arrays(bool, (replicas, nodes)))
    y[:least], mask[:, :least] = range(least), True
    return logits, y, mask & (y >= 0)


def compared(ours, expected, logits, y, mask):
    """Our values, and those of a function of labels, predictions and probabilities on the nodes of each mask."""
    probability = torch.from_numpy(logits).double().softmax(-1).numpy()
    wanted = [expected(y[m], logits[r].argmax(-1)[m], probability[r][m]) for r, m in enumerate(mask)]
    return ours(*map(torch.from_numpy, (logits, y, mask))).tolist(), pytest.approx(wanted, abs=1e-12)


@bounded
@given(st.integers(2, 4).flatmap(cases))
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
def test_balanced_accuracy_is_scikit_learns(case):
    actual, expected = compared(balanced_accuracy, lambda y, found, _: balanced_accuracy_score(y, found), *case)
    assert actual == expected


@bounded
@given(st.integers(2, 4).flatmap(cases))
def test_macro_f1_is_scikit_learns(case):
    actual, expected = compared(
        macro_f1, lambda y, found, _: f1_score(y, found, average="macro", zero_division=0), *case
    )
    assert actual == expected


@bounded
@given(st.integers(3, 5).flatmap(lambda classes: cases(classes, least=classes)))
def test_roc_auc_of_many_classes_is_scikit_learns(case):
    def expected(y, _, score):
        return roc_auc_score(y, score, multi_class="ovr", average="macro")

    actual, wanted = compared(roc_auc, expected, *case)
    assert actual == wanted


@bounded
@given(st.integers(3, 5).flatmap(lambda classes: cases(classes, least=2)))
@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
def test_areas_leave_out_absent_classes(metric, case):
    def expected(y, _, score):
        area = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[metric]
        return np.mean([area(y == c, score[:, c]) for c in np.unique(y)])

    actual, wanted = compared(metrics[metric], expected, *case)
    assert actual == wanted


@bounded
@given(cases(2, least=2))
def test_average_precision_of_two_classes_is_scikit_learns(case):
    def expected(y, _, score):
        return average_precision_score(y, score[:, 1])

    actual, wanted = compared(average_precision, expected, *case)
    assert actual == wanted


@bounded
@given(st.integers(3, 5).flatmap(lambda classes: cases(classes, least=classes)))
def test_average_precision_of_many_classes_is_scikit_learns(case):
    def expected(y, _, score):
        return average_precision_score(y, score, average="macro")

    actual, wanted = compared(average_precision, expected, *case)
    assert actual == wanted
