"""Edges are drawn with the probability they should have, and the gradient says how to change it."""

import pytest
import torch

from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.rewiring.rewirer import sample
from gumbel_mpnn.util.errors import UserError

DRAWS = 40_000


def theta_of(value, replicas=1, requires_grad=False):
    return torch.full((replicas, DRAWS), float(value), requires_grad=requires_grad)


@pytest.mark.parametrize("theta", [-4.0, -1.0, 0.0, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("tau", [0.05, 0.5, 2.0])
def test_the_share_of_drawn_edges_is_the_sigmoid(theta, tau):
    weight = sample(theta_of(theta), tau, ReplicaRNG([1], "train"))
    assert set(weight.unique().tolist()) <= {0.0, 1.0}
    wanted = torch.tensor(theta).sigmoid().item()
    assert weight.mean().item() == pytest.approx(wanted, abs=4 * (wanted * (1 - wanted) / DRAWS) ** 0.5)


# Mean and standard deviation of the relaxed weight's derivative, by numerical integration over the logistic noise.
GRADIENTS = [(0.0, 0.1, 0.248, 0.595), (0.0, 0.5, 0.215, 0.178), (0.0, 1.0, 0.167, 0.075), (2.0, 0.1, 0.105, 0.405)]


@pytest.mark.parametrize(("theta", "tau", "mean", "spread"), GRADIENTS)
@pytest.mark.parametrize("hard", [True, False])
def test_the_gradient_is_that_of_the_relaxed_weight(theta, tau, mean, spread, hard):
    logits = theta_of(theta, requires_grad=True)
    sample(logits, tau, ReplicaRNG([2], "train"), hard=hard).sum().backward()
    assert logits.grad.mean().item() == pytest.approx(mean, abs=5 * spread / DRAWS**0.5)
    assert logits.grad.std().item() == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize("theta", [-50.0, 50.0, -1e4, 1e4])
@pytest.mark.parametrize("hard", [True, False])
def test_extreme_logits_give_finite_weights_and_gradients(theta, hard):
    logits = theta_of(theta, requires_grad=True)
    weight = sample(logits, 0.05, ReplicaRNG([3], "train"), hard=hard)
    weight.sum().backward()
    assert torch.equal(weight.round(), torch.full_like(weight, float(theta > 0)))
    assert torch.isfinite(logits.grad).all()


def test_relaxed_weights_lie_between_0_and_1_and_round_to_the_hard_ones():
    soft = sample(theta_of(0.3), 0.7, ReplicaRNG([4], "train"), hard=False)
    hard = sample(theta_of(0.3), 0.7, ReplicaRNG([4], "train"))
    assert ((soft >= 0) & (soft <= 1)).all()
    assert torch.equal((soft > 0.5).float(), hard)


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan")])
def test_a_temperature_must_be_above_0(tau):
    with pytest.raises(UserError, match="tau must be above 0"):
        sample(theta_of(0.0), tau, ReplicaRNG([9], "train"))
