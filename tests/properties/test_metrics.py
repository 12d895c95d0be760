"""Metrics against scikit-learn, with another mask for every replica."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import accuracy_score, roc_auc_score

from gumbel_mpnn.training import accuracy, roc_auc

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
