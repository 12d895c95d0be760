import pytest
import torch

from gumbel_mpnn.training import accuracy, average_precision, balanced_accuracy, macro_f1, metrics, roc_auc

Y = torch.tensor([0, 1, 1, 0, -1])


def scores(*rows):
    """Logits whose class 1 leads class 0 by the given numbers."""
    lead = torch.tensor(rows)
    return torch.stack([torch.ones_like(lead), 1 + lead], dim=-1)


def masks(*rows):
    return torch.tensor(rows, dtype=torch.bool)


@pytest.mark.parametrize(
    ("lead", "mask", "expected"),
    [
        ([-1.0, 2.0, -3.0, 4.0, 1.0], [1, 1, 1, 1, 0], 0.5),
        ([-1.0, 2.0, 3.0, -4.0, 1.0], [1, 1, 1, 1, 0], 1.0),
        ([-1.0, 2.0, -3.0, 4.0, 1.0], [1, 0, 1, 1, 0], 1 / 3),
        ([-1.0, 2.0, 3.0, -4.0, 1.0], [1, 1, 1, 1, 1], 0.8),  # an unknown label is never right
        ([0.0, 0.0, 0.0, 0.0, 0.0], [1, 1, 1, 1, 0], 0.5),  # a tie goes to the first class
    ],
)
def test_accuracy_worked_by_hand(lead, mask, expected):
    assert accuracy(scores(lead), Y, masks(mask)).tolist() == pytest.approx([expected])


@pytest.mark.parametrize(
    ("lead", "mask", "expected"),
    [
        ([0.1, 0.4, 0.35, 0.8, 9.0], [1, 1, 1, 1, 0], 0.5),
        ([0.1, 0.9, 0.8, 0.2, 9.0], [1, 1, 1, 1, 0], 1.0),
        ([0.5, 0.5, 0.5, 0.5, 9.0], [1, 1, 1, 1, 0], 0.5),
        ([0.5, 0.5, 0.7, 0.6, 9.0], [1, 1, 1, 1, 0], 0.625),
        ([0.1, 0.4, 0.35, 0.8, 9.0], [0, 0, 1, 1, 0], 0.0),
        ([0.1, 0.9, 0.8, 0.2, 9.0], [1, 1, 1, 1, 1], 1.0),
    ],
)
def test_roc_auc_worked_by_hand(lead, mask, expected):
    assert roc_auc(scores(lead), Y, masks(mask)).tolist() == [expected]


def test_roc_auc_does_not_see_nodes_outside_the_mask():
    mask = masks([1, 1, 1, 0, 0])
    values = [roc_auc(scores([0.1, 0.4, 0.05, far, -far]), Y, mask).item() for far in (-1e6, 0.2, 1e6)]
    assert values == [0.5, 0.5, 0.5]


def test_roc_auc_tells_scores_apart_that_differ_by_little():
    logits = torch.tensor([[[1e6, 1e6], [1e6, 1e6 + 0.0625]]])
    assert roc_auc(logits, torch.tensor([0, 1]), masks([1, 1])).tolist() == [1.0]


def test_roc_auc_is_exact_for_many_pairs():
    y = torch.tensor([0, 1] * 20001)
    wins, pairs = 20001 * 20002 // 2, 20001**2
    area = roc_auc(scores(list(range(40002))), y, torch.ones(1, 40002, dtype=torch.bool))
    assert area.item() == pytest.approx(wins / pairs, abs=1e-12)


def predicting(*classes, count=3):
    """Logits [1, N, count] whose largest are those of the given classes."""
    return torch.nn.functional.one_hot(torch.tensor([classes]), count).float()


THREE = torch.tensor([0, 0, 0, 0, 1, 1, 2, -1])


@pytest.mark.parametrize(
    ("mask", "recall", "f1"),
    [
        # Class 0: 3 of 4 found, of 4 predicted. Class 1: 1 of 2, of 3. Class 2: 0 of 1, none predicted.
        ([1, 1, 1, 1, 1, 1, 1, 0], (3 / 4 + 1 / 2 + 0) / 3, (6 / 8 + 2 / 5 + 0) / 3),
        # Without class 2, which is neither there nor predicted.
        ([1, 1, 1, 1, 1, 1, 0, 0], (3 / 4 + 1 / 2) / 2, (6 / 8 + 2 / 4) / 2),
        # Class 1 alone, once called 0: class 0 counts in F1, where it is predicted, and not in recall.
        ([0, 0, 0, 0, 1, 1, 0, 0], 1 / 2, (0 + 2 / 3) / 2),
    ],
)
def test_balanced_accuracy_and_macro_f1_worked_by_hand(mask, recall, f1):
    logits = predicting(0, 0, 0, 1, 1, 0, 1, 2)
    assert balanced_accuracy(logits, THREE, masks(mask)).tolist() == pytest.approx([recall])
    assert macro_f1(logits, THREE, masks(mask)).tolist() == pytest.approx([f1])


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        ([0.1, 0.4, 0.35, 0.8, 9.0], (1 / 2 + 2 / 3) / 2),  # 0.8 is wrong, then both positives
        ([0.1, 0.9, 0.8, 0.2, 9.0], 1.0),
        ([0.5, 0.5, 0.5, 0.5, 9.0], 0.5),
        ([0.5, 0.5, 0.7, 0.6, 9.0], (1 + 2 / 4) / 2),  # a tie with a negative, below another
    ],
)
def test_average_precision_worked_by_hand(lead, expected):
    assert average_precision(scores(lead), Y, masks([1, 1, 1, 1, 0])).tolist() == pytest.approx([expected])


def test_areas_of_three_classes_are_the_mean_of_those_that_are_there():
    probability = torch.tensor([[[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.4, 0.5, 0.1], [0.2, 0.2, 0.6]]])
    y, mask = torch.tensor([0, 0, 1, 2]), masks([1, 1, 1, 0])
    # Class 0 scores 0.5 and 0.3 against 0.4; class 1 scores 0.5 against 0.3 and 0.4; class 2 is not in the mask.
    assert roc_auc(probability.log(), y, mask).tolist() == pytest.approx([(1 / 2 + 1) / 2])
    assert average_precision(probability.log(), y, mask).tolist() == pytest.approx([((1 + 2 / 3) / 2 + 1) / 2])


@pytest.mark.parametrize("metric", list(metrics))
def test_no_metric_is_defined_without_nodes(metric):
    value = metrics[metric](torch.zeros(2, 5, 3), Y, masks([1, 1, 1, 1, 0], [0] * 5))
    assert value.isnan().tolist() == [False, True]
    assert value.dtype == torch.float64
