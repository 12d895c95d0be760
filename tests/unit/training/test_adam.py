"""Our Adam computes the same as torch's."""

import pytest
import torch

from gumbel_mpnn.training.adam import Adam
from helpers import normal

SHAPES = [(3, 4), (5,), (2, 3, 1)]


def groups():
    params = [normal(*shape, seed=k, dtype=torch.float32).requires_grad_() for k, shape in enumerate(SHAPES)]
    return [
        {"params": params[:2], "lr": 0.01, "weight_decay": 0.1},
        {"params": params[2:], "lr": 0.1, "weight_decay": 0.0},
    ]


def train(optimizer, params, steps):
    for step in steps:
        optimizer.zero_grad()
        sum((param * normal(*param.shape, seed=step)).square().sum() for param in params[: 1 + step % 3]).backward()
        optimizer.step()


def params_of(groups):
    return [param for group in groups for param in group["params"]]


def test_parameters_are_those_of_torch():
    ours, theirs = groups(), groups()
    train(Adam(ours), params_of(ours), range(5))
    train(torch.optim.Adam(theirs, foreach=True), params_of(theirs), range(5))
    assert not torch.equal(params_of(ours)[0], params_of(groups())[0])
    for one, other in zip(params_of(ours), params_of(theirs), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("left_out", [(), ("2/step", "2/exp_avg", "2/exp_avg_sq")])
def test_it_continues_from_its_state(left_out):
    parts = groups()
    train(first := Adam(parts), params_of(parts), range(2))  # the third parameter has no gradient yet
    again = Adam(parts)
    again.load({name: value for name, value in first.tensors().items() if name not in left_out})
    train(again, params_of(parts), range(2, 5))
    reference = groups()
    train(Adam(reference), params_of(reference), range(5))
    assert all(map(torch.equal, params_of(parts), params_of(reference)))
