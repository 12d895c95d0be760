"""Linear layers, norms, activation and dropout: as torch's for every replica, and by hand."""

import pytest
import torch
from torch import nn

from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures, as_features
from gumbel_mpnn.nn.layers import (
    BatchNorm,
    LayerNorm,
    Linear,
    activate,
    dropout,
    dropout_features,
    make_norm,
    relu_dropout,
)
from helpers import normal, randomized

NODES, WIDTH = 7, 5


def sparse_matrix():
    x = torch.zeros(NODES, 12, dtype=torch.float64)
    x[0, 3], x[0, 11], x[2, 0], x[6, 3] = 1.5, -2.0, 0.5, 3.0
    return x


@pytest.mark.parametrize("bias", [True, False])
def test_linear_equals_torchs_for_every_replica(bias):
    ours = randomized(Linear(3, WIDTH, 4, bias=bias))
    x = normal(3, NODES, WIDTH)
    out, shared = ours(x), ours(x[0])
    for replica in range(3):
        plain = nn.Linear(WIDTH, 4, bias=bias, dtype=torch.float64)
        with torch.no_grad():
            plain.weight.copy_(ours.weight[replica].T)
            if bias:
                plain.bias.copy_(ours.bias[replica, 0])
        torch.testing.assert_close(out[replica], plain(x[replica]))
        torch.testing.assert_close(shared[replica], plain(x[0]))


@pytest.mark.parametrize("bias", [True, False])
def test_linear_takes_shared_sparse_features(bias):
    ours, x = randomized(Linear(3, 12, 4, bias=bias)), sparse_matrix()
    features = as_features(x)
    assert isinstance(features, SparseFeatures)
    dense, sparse = ours(x), ours(features)
    torch.testing.assert_close(sparse, dense)
    probe = normal(3, NODES, 4, seed=1)
    expected = torch.autograd.grad((dense * probe).sum(), list(ours.parameters()))
    actual = torch.autograd.grad((sparse * probe).sum(), list(ours.parameters()))
    torch.testing.assert_close(actual, expected)


def test_linear_takes_sparse_features_of_each_replica():
    ours, features = randomized(Linear(3, 12, 4)), as_features(sparse_matrix())
    values = normal(3, 4)
    x = torch.zeros(3, NODES, 12, dtype=torch.float64)
    x[:, features.layout.row.long(), features.layout.col.long()] = values
    torch.testing.assert_close(ours(SparseFeatures(features.layout, values)), ours(x))


@pytest.mark.parametrize(("glorot", "bound"), [(False, (1 / 50) ** 0.5), (True, (6 / 80) ** 0.5)])
def test_linear_starts_in_the_range_of_its_model(glorot, bound):
    ours = Linear(2, 50, 30, glorot=glorot)
    with torch.no_grad():
        ours.bias.fill_(float("nan"))  # what may lie in memory that was not written to
    ours.init_own_parameters(ReplicaRNG([0, 1], "init"))
    largest = ours.weight.abs().amax(dim=(1, 2)).tolist()
    assert largest == pytest.approx([bound] * 2, rel=0.02)
    assert max(largest) <= bound
    assert ours.bias.abs().max() == 0 if glorot else 0 < ours.bias.abs().max() <= bound


def test_layer_norm_equals_torchs():
    ours, x = randomized(LayerNorm(2, WIDTH)), normal(2, NODES, WIDTH)
    for replica in range(2):
        plain = nn.LayerNorm(WIDTH, dtype=torch.float64)
        with torch.no_grad():
            plain.weight.copy_(ours.weight[replica, 0])
            plain.bias.copy_(ours.bias[replica, 0])
        torch.testing.assert_close(ours(x)[replica], plain(x[replica]))


def test_batch_norm_equals_torchs_in_training_and_evaluation():
    ours = randomized(BatchNorm(2, WIDTH))
    plain = [nn.BatchNorm1d(WIDTH, dtype=torch.float64) for _ in range(2)]
    for replica, norm in enumerate(plain):
        with torch.no_grad():
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(norm, name).copy_(getattr(ours, name)[replica, 0])
    for step in range(3):
        x = 3 * normal(2, NODES, WIDTH, seed=step) + step
        given = [x.clone().requires_grad_(), x.clone().requires_grad_()]
        out, expected = ours(given[0]), torch.stack([norm(given[1][r]) for r, norm in enumerate(plain)])
        torch.testing.assert_close(out, expected)
        probe = normal(2, NODES, WIDTH, seed=10 + step)
        theirs = [parameter for norm in plain for parameter in (norm.weight, norm.bias)]
        grad_x, grad_weight, grad_bias = torch.autograd.grad((out * probe).sum(), [given[0], ours.weight, ours.bias])
        expected_x, *expected_grads = torch.autograd.grad((expected * probe).sum(), [given[1], *theirs])
        torch.testing.assert_close(grad_x, expected_x)
        torch.testing.assert_close(
            torch.cat([grad_weight, grad_bias], dim=1).flatten(0, 1), torch.stack(expected_grads)
        )
    for replica, norm in enumerate(plain):
        torch.testing.assert_close(ours.running_mean[replica, 0], norm.running_mean)
        torch.testing.assert_close(ours.running_var[replica, 0], norm.running_var)
        torch.testing.assert_close(ours.eval()(x)[replica], norm.eval()(x[replica]))


@pytest.mark.parametrize("name", ["none", "layer", "batch"])
def test_activate_is_bias_then_norm_then_relu_then_dropout(name):
    x, bias, norm = normal(2, 7, 5), normal(2, 1, 5, seed=1), randomized(make_norm(name, 2, 5))
    out = activate(x, bias, norm, 0.5, ReplicaRNG([0, 1], "train"))
    again = randomized(make_norm(name, 2, 5))
    assert torch.equal(out, dropout(torch.relu(again(x + bias)), 0.5, ReplicaRNG([0, 1], "train")))
    assert (out == 0).sum() > (again(x + bias) <= 0).sum()


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.75])
def test_dropout_drops_the_share_and_scales_up_the_rest(probability):
    out = dropout(torch.ones(2, 300, 100), probability, ReplicaRNG([0, 1], "train"))
    dropped = (out == 0).double().mean(dim=(1, 2)).tolist()
    assert dropped == pytest.approx([probability] * 2, abs=0.01)
    assert out[out != 0].unique().tolist() == pytest.approx([1 / (1 - probability)], rel=1e-4)


def test_no_dropout_is_the_input_and_full_dropout_is_nothing():
    x, rng = torch.ones(2, 3, 4), ReplicaRNG([0, 1], "train")
    before = rng.get_state()["generators"]
    assert dropout(x, 0.0, rng) is x
    assert dropout_features(x[0], 0.0, rng).data_ptr() == x.data_ptr()
    assert torch.equal(rng.get_state()["generators"], before)
    assert torch.equal(dropout(x, 1.0, rng), torch.zeros(2, 3, 4))


def test_feature_dropout_of_sparse_features_drops_among_the_nonzeros():
    features = as_features(torch.eye(400))
    out = dropout_features(features, 0.5, ReplicaRNG([0, 1], "train"))
    assert out.layout is features.layout
    assert out.values.shape == (2, 400)
    assert set(out.values.unique().tolist()) == {0.0, 2.0}
    assert (out.values == 0).double().mean(dim=1).tolist() == pytest.approx([0.5] * 2, abs=0.1)
    assert not torch.equal(out.values[0], out.values[1])


def test_the_gradient_of_relu_and_dropout_in_one_is_that_of_both():
    found = []
    for both in (lambda x, rng: dropout(torch.relu(x), 0.3, rng), lambda x, rng: relu_dropout(x, 0.3, rng)):
        x = normal(2, 7, 5).requires_grad_()
        out = both(x, ReplicaRNG([0, 1], "train"))
        (grad,) = torch.autograd.grad(out, x, normal(2, 7, 5, seed=1))
        found.append((out, grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert found[0][1].count_nonzero() > 0
