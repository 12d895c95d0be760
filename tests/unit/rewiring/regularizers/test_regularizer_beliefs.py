from math import log

import pytest
import torch

from gumbel_mpnn.rewiring.regularizers.soft_labels import confidence, nonzero, soft_labels

LOGITS = torch.tensor([[[0.0, log(3)], [0.0, 0.0], [log(3), 0.0]]], dtype=torch.float64)
Y = torch.tensor([1, 0, -1])  # the last is not labelled
TRAIN = torch.tensor([[True, False, False]])


def test_labels_where_trained_predictions_elsewhere():
    beliefs = soft_labels(LOGITS, Y, TRAIN, torch.float64)
    expected = torch.tensor([[[0.0, 1.0], [0.5, 0.5], [0.75, 0.25]]], dtype=torch.float64)
    torch.testing.assert_close(beliefs, expected)


def test_each_replica_has_its_own_training_nodes():
    logits, train = LOGITS.repeat(2, 1, 1), torch.tensor([[True, False, False], [False, True, False]])
    beliefs = soft_labels(logits, Y, train, torch.float64)
    assert beliefs[0, 0].tolist() == [0, 1]
    assert beliefs[1, 1].tolist() == [1, 0]
    torch.testing.assert_close(beliefs[1, 0], torch.tensor([0.25, 0.75], dtype=torch.float64))


@pytest.mark.parametrize("detach", [True, False])
def test_gradient_of_predictions_is_a_choice_and_training_nodes_have_none(detach):
    logits = LOGITS.clone().requires_grad_()
    beliefs = soft_labels(logits, Y, TRAIN, torch.float64, detach=detach)
    certain = confidence(logits, TRAIN, torch.float64, detach=detach)
    assert beliefs.requires_grad == certain.requires_grad == (not detach)
    if not detach:
        (beliefs[..., 0].sum() + certain.sum()).backward()
        assert not logits.grad[0, 0].any()
        assert logits.grad[0, 2].any()


def test_confidence_is_one_minus_the_share_of_the_largest_entropy():
    certain = confidence(LOGITS, TRAIN, torch.float64)
    surprise = (log(4) - 0.75 * log(3)) / log(2)
    torch.testing.assert_close(certain, torch.tensor([[1.0, 0.0, 1 - surprise]], dtype=torch.float64))


def test_confidence_of_extreme_logits_is_finite_and_has_a_gradient():
    logits = torch.tensor([[[1e4, 0.0, -1e4], [-3e4, 3e4, 0.0]]], requires_grad=True)
    certain = confidence(logits, torch.zeros(1, 2, dtype=torch.bool), torch.float32, detach=False)
    certain.sum().backward()
    assert certain.tolist() == [[1.0, 1.0]]
    assert logits.grad.isfinite().all()


def test_one_class_is_certain():
    assert confidence(torch.zeros(1, 2, 1), TRAIN[:, :2], torch.float32).tolist() == [[1.0, 1.0]]


def test_sums_of_nothing_are_safe_to_divide_by():
    assert nonzero(torch.tensor([0.0, 1e-20, 0.5, 3.0])).tolist() == [1.0, 1.0, 0.5, 3.0]
