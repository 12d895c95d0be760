"""Agreement between the outputs on several drawn graphs: values by hand, gradients, and what it refuses."""

from math import log

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.rewiring.regularizers import LabelConsistency, agreement
from helpers import normal, small_data

EVEN, LOW, HIGH = (0.0, 0.0), (0.0, log(3)), (log(3), 0.0)  # predictions (½, ½), (¼, ¾) and (¾, ¼)
SAMPLES = [(EVEN, HIGH, LOW, EVEN), (EVEN, LOW, LOW, LOW)]
# Mean predictions (½, ½), (½, ½), (¼, ¾), (3/8, 5/8). Squared and normalised: (½, ½), (½, ½), (.1, .9), (9, 25) / 34.
OUTPUTS = [torch.tensor(sample, dtype=torch.float64) for sample in SAMPLES]
OF_REPLICAS = list(normal(3, 2, 24, 4))


@pytest.mark.parametrize(
    ("outputs", "options", "expected"),
    [
        (OUTPUTS, {}, (0 + 1 / 8 + 2 * 0.15**2 + (64 + 0.25) / 34**2) / 4),
        (OUTPUTS, {"temperature": 1.0}, (0 + 1 / 8 + 0 + 2 / 64) / 4),
        (OUTPUTS[:1] * 3, {"temperature": 1.0}, 0.0),
    ],
)
def test_by_hand(outputs, options, expected):
    value = agreement(outputs, **options)
    assert value.shape == ()
    torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_replicas_together_are_replicas_alone():
    together = agreement(OF_REPLICAS)
    assert together.shape == (2,)
    for k in range(2):
        torch.testing.assert_close(agreement([output[k] for output in OF_REPLICAS]), together[k])


def test_all_samples_are_pulled_to_a_target_that_stands_still():
    logits = torch.zeros(2, 1, 2, dtype=torch.float64)
    logits[0, 0, 0] = 1.0
    logits.requires_grad_()
    agreement(list(logits)).backward()
    first, second = logits.grad[:, 0, 0]
    assert second < 0  # the undecided sample is drawn towards class 0
    predicted = logits.detach().softmax(-1)
    target = predicted.mean(0).square()
    target = target / target.sum(-1, keepdim=True)
    free = logits.detach().clone().requires_grad_()
    (free.softmax(-1) - target).square().sum(-1).mean().backward()
    torch.testing.assert_close(torch.stack([first, second]), free.grad[:, 0, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("classes", [1, 3])
def test_value_and_gradient_are_finite(classes, scale, dtype):
    logits = (scale * normal(2, 2, 9, classes)).to(dtype).requires_grad_()
    value = agreement(list(logits))
    value.sum().backward()
    assert value.dtype == dtype
    assert (value >= 0).all()
    assert value.isfinite().all()
    assert logits.grad.isfinite().all()


def test_nodes_may_stand_in_any_order():
    order = torch.randperm(24, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(agreement([output[:, order] for output in OF_REPLICAS]), agreement(OF_REPLICAS))


def test_outputs_in_half_precision_are_taken():
    outputs = [output.half() for output in OF_REPLICAS]
    exact = agreement([output.double() for output in outputs])
    torch.testing.assert_close(agreement(outputs), exact, rtol=1e-4, atol=1e-4, check_dtype=False)


def test_a_loop_of_ones_own():
    data = small_data()
    model = gm.GumbelMPNN(data.num_features, out_channels=3, hidden_channels=8, seeds=[0])
    outputs = [model(data) for _ in range(2)]
    value = gm.regularizers.agreement(outputs)
    assert value > 0
    value.backward()
    assert model.backbone.head.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (OF_REPLICAS[0], r"takes a list of two or more outputs, not a tensor of shape \[2, 24, 4\]"),
        ([], "was given none"),
        (OF_REPLICAS[:1], r"was given \[2, 24, 4\]$"),
        ([OF_REPLICAS[0], OF_REPLICAS[0][0]], r"was given \[2, 24, 4\], \[24, 4\]$"),
        ([OUTPUTS[0][0]] * 2, r"all \[N, C\] or all \[R, N, C\], but was given \[2\], \[2\]$"),
        ([OF_REPLICAS[0][None]] * 2, r"was given \[1, 2, 24, 4\], "),
    ],
)
def test_outputs_that_cannot_be_compared(outputs, message):
    with pytest.raises(UserError, match=message):
        agreement(outputs)


def test_a_temperature_is_above_0():
    with pytest.raises(UserError, match=r"the temperature of the agreement must be above 0, but is 0\.0"):
        agreement(OUTPUTS, temperature=0.0)


def test_it_is_no_term_of_a_sum():
    with pytest.raises(TypeError, match="unsupported operand"):
        LabelConsistency() + agreement
