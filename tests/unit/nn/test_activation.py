import pytest
import torch

from gumbel_mpnn.nn import ReplicaRNG, as_features
from gumbel_mpnn.nn.activation import activate, dropout, dropout_features, relu_dropout
from gumbel_mpnn.nn.modules import make_norm
from helpers import normal, randomized


@pytest.mark.parametrize("name", ["none", "layer", "batch"])
def test_activate_is_bias_then_norm_then_relu_then_dropout(name):
    x, bias, norm = normal(2, 7, 5), normal(2, 1, 5, seed=1), randomized(make_norm(name, 2, 5))
    out = activate(x, bias, norm, 0.5, ReplicaRNG([0, 1], "train"))
    again = randomized(make_norm(name, 2, 5))
    assert torch.equal(out, dropout(torch.relu(again(x + bias)), 0.5, ReplicaRNG([0, 1], "train")))
    assert (out == 0).sum() > (again(x + bias) <= 0).sum()


def test_nothing_is_dropped_outside_training():
    x, bias, rng = normal(2, 7, 5), normal(2, 1, 5, seed=1), ReplicaRNG([0, 1], "train")
    norm = randomized(make_norm("batch", 2, 5)).eval()
    before = rng.get_state()["generators"]
    assert torch.equal(activate(x, bias, norm, 0.5, rng), torch.relu(norm(x + bias)))
    assert torch.equal(rng.get_state()["generators"], before)


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


def test_dropout_of_a_replica_does_not_depend_on_its_neighbors():
    x = normal(3, 20, 4)
    together = dropout(x, 0.5, ReplicaRNG([0, 1, 2], "train"))
    alone = dropout(x[1:2], 0.5, ReplicaRNG([1], "train"))
    assert torch.equal(together[1:2], alone)


def test_dropout_passes_gradients_through_what_is_kept():
    x = torch.ones(1, 50, 4, requires_grad=True)
    out = dropout(x, 0.5, ReplicaRNG([0], "train"))
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_feature_dropout_gives_every_replica_its_own_mask():
    x = torch.ones(40, 30)
    out = dropout_features(x, 0.5, ReplicaRNG([0, 1], "train"))
    assert out.shape == (2, 40, 30)
    assert not torch.equal(out[0], out[1])
    assert set(out.unique().tolist()) == {0.0, 2.0}


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
