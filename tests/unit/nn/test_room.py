"""A model that is far too large is told before it is built."""

import os

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import TooLargeError
from gumbel_mpnn.nn import room
from gumbel_mpnn.nn.backbone import GCN

HUGE = {
    "layers": lambda: gm.GumbelMPNN(10, out_channels=2, hidden_channels=2**20, num_layers=1000),
    "features": lambda: gm.GCN(10**15, out_channels=2),
    "classes": lambda: gm.MLP(10, out_channels=10**14),
    "replicas": lambda: gm.GAT(10, out_channels=2, hidden_channels=2**20, replicas=1000),
    "scorer": lambda: gm.GumbelMPNN(10**7, out_channels=2, hidden_channels=1, scorer="literal"),
    "channels": lambda: gm.GumbelMPNN(4, out_channels=2, hidden_channels=8, scorer="bilinear", channels=10**8),
    "wrapped": lambda: gm.Rewired(gm.GCN(10, out_channels=2), 10**13, 2),
    "baseline": lambda: gm.baselines.DropEdge(10**15, out_channels=2),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_model_that_does_not_fit_is_told(what):
    with pytest.raises(TooLargeError, match=r"^a model of [\d,]+ parameters takes [\d,]+ GiB, but cpu has .* try"):
        HUGE[what]()


def test_a_size_that_64_bits_cannot_express():
    with pytest.raises(TooLargeError, match=r"^64 bits cannot express the size of this model: try fewer"):
        gm.GCN(10**17, out_channels=2)


def test_only_what_fits_is_built(monkeypatch):
    """10 x 3 and 3 x 2 weights with 3 and 2 biases: 41 parameters of 4 bytes."""
    monkeypatch.setattr(room, "total_bytes", lambda device: 4 * 41)
    assert sum(map(torch.numel, gm.GCN(10, out_channels=2, hidden_channels=3, num_layers=1).parameters())) == 41
    monkeypatch.setattr(room, "total_bytes", lambda device: 4 * 41 - 1)
    with pytest.raises(TooLargeError, match="a model of 41 parameters"):
        gm.GCN(10, out_channels=2, hidden_channels=3, num_layers=1)


def test_a_size_of_memory_that_is_not_known_refuses_nothing(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "sysconf")
    assert gm.GCN(10, out_channels=2).head.weight.device.type == "cpu"


def test_a_layer_that_needs_real_tensors_is_built(monkeypatch):
    make = GCN.make_conv
    monkeypatch.setattr(GCN, "make_conv", lambda *arguments: float(torch.ones(())) and make(*arguments))
    assert {value.device.type for value in gm.GCN(4, out_channels=2).parameters()} == {"cpu"}


def test_an_outline_may_have_any_size():
    with torch.device("meta"):
        model = gm.GCN(10**9, out_channels=2, hidden_channels=2**20, seeds=[0])
    assert model.head.weight.is_meta


def test_building_draws_the_same_parameters():
    torch.manual_seed(3)
    one = gm.GumbelMPNN(5, out_channels=2, hidden_channels=4)
    torch.manual_seed(3)
    two = gm.GumbelMPNN(5, out_channels=2, hidden_channels=4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
