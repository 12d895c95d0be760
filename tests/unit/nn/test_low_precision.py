"""Models in 16 bits on a CPU, whole or under autocast: near the model in 32 bits, with finite gradients."""

import contextlib

import pytest
import torch
import torch.nn.functional as F

import gumbel_mpnn as gm
from gumbel_mpnn.graph import matmul, sampled_product
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.rewiring.scorers import scorers
from helpers import random_edges, small_data

LOW = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


def data():
    made = small_data()
    made.candidate_index = random_edges(made.num_nodes, 30, seed=3)
    return made


def trained_logits(model, given, context):
    """Logits of one pass, after checking the gradients of its loss."""
    with context:
        out = model(given)
        loss = F.cross_entropy(out.float(), given.y)
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())
    return out


def check_near(make, dtype):
    plain = trained_logits(make(), data(), contextlib.nullcontext())
    cast = trained_logits(make(), data(), torch.autocast("cpu", dtype=dtype))
    low = data()
    low.x = low.x.to(dtype)
    whole = trained_logits(make().to(dtype), low, contextlib.nullcontext())
    assert whole.dtype == dtype
    for out in (cast, whole):
        torch.testing.assert_close(out.float(), plain, atol=0.1, rtol=0.1)


@LOW
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("name", list(backbones))
def test_plain_models(name, norm, dtype):
    def make():
        options = {"hidden_channels": 8, "norm": norm, "residual": True, "input_layer": True, "dropout": 0.0}
        return backbones[name](6, out_channels=3, seeds=[4], **options)

    check_near(make, dtype)
    model = make().eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype):
        assert torch.isfinite(model(data())).all()


@LOW
@pytest.mark.parametrize("scorer", list(scorers))
def test_rewired_models(scorer, dtype):
    # Drawn edges are 0 or 1, so rounding could turn one over: the graph that they are expected to be has no such step.
    def make():
        options = {"hidden_channels": 8, "dropout": 0.0, "scorer": scorer, "evaluation": "expected"}
        return gm.GumbelMPNN(in_channels=6, out_channels=3, seeds=[4], **options).eval()

    check_near(make, dtype)
    drawn = trained_logits(make().train(), data(), torch.autocast("cpu", dtype=dtype))
    assert torch.isfinite(drawn).all()


@LOW
def test_products_are_summed_in_32_bits(dtype):
    star = gm.PairGraph.build(torch.stack([torch.arange(1, 4001), torch.zeros(4000, dtype=torch.int64)]), 4001)
    x = torch.ones(1, 4001, 1, dtype=dtype)
    total = matmul(star.arcs, torch.ones(star.num_arcs, dtype=dtype), x)
    assert total.dtype == dtype
    assert total[0, 0, 0] == 4000  # added up in bfloat16 it would stop at 256
    mixed = matmul(star.arcs, torch.ones(star.num_arcs), x)
    assert mixed.dtype == torch.float32
    assert sampled_product(star.arcs, x, x).dtype == dtype
