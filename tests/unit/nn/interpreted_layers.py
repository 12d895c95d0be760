"""Tests of the fused GPU layers; run by graph/test_triton_interpreted.py in a process where Triton interprets them."""

import itertools

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from gumbel_mpnn.nn import ReplicaRNG, layers
from gumbel_mpnn.nn.kernels import norm as triton_norm
from gumbel_mpnn.nn.kernels import replica as triton_replica
from gumbel_mpnn.nn.kernels.norm import _kept
from gumbel_mpnn.nn.layers import activate, dropout, make_norm
from helpers import normal, randomized

SEEDS = torch.tensor([5, 2**62 + 7])
EPS = 1e-5
REAL_CHUNK, CHUNK = triton_norm.CHUNK, 32


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Several chunks of nodes without many nodes: the interpreter is slow."""
    monkeypatch.setattr(triton_norm, "CHUNK", CHUNK)


def interpreted(device, module):
    return {"nn.kernels.norm": triton_norm, "nn.kernels.replica": triton_replica}[module]


def torch_only(device, module):
    return None


def call(number):
    return torch.tensor(number)


class TestSums:
    # The last three have several chunks of rows each: 2, 9 and 12.
    @pytest.mark.parametrize(
        ("rows", "width"), [*itertools.product([0, 1, 40], [1, 5, 70]), (9000, 1), (9000, 5), (1500, 70)]
    )
    def test_sums_over_rows_do_not_depend_on_the_number_of_replicas(self, rows, width):
        x = normal(3, rows, width, dtype=torch.float32)
        found = triton_replica.over_rows(x)
        torch.testing.assert_close(found.double(), x.double().sum(1), rtol=1e-5, atol=1e-3)
        assert torch.equal(found, torch.cat([triton_replica.over_rows(x[[row]]) for row in range(3)]))

    def test_numbers_of_16_bits_are_summed_in_32(self):
        x = torch.full((1, 5000, 2), 1.0, dtype=torch.bfloat16)
        assert triton_replica.over_rows(x).tolist() == [[4992.0, 4992.0]]  # 5000, rounded once
        assert triton_replica.over_rows(x.double()).tolist() == [[5000.0, 5000.0]]


class TestDropout:
    @pytest.mark.parametrize("probability", [0.2, 0.5, 0.9])
    def test_the_share_is_dropped_and_the_rest_scaled_up(self, probability):
        x = torch.ones(2, 150, 31)
        out = triton_replica.fused_dropout(x, probability, SEEDS, call(1))
        dropped = (out == 0).double().mean(dim=(1, 2)).tolist()
        assert dropped == pytest.approx([probability] * 2, abs=0.03)
        assert out[out != 0].unique().tolist() == pytest.approx([1 / (1 - probability)], rel=1e-5)

    def test_the_gradient_has_the_same_mask(self):
        x = normal(2, 40, 31, dtype=torch.float32).requires_grad_()
        out = triton_replica.fused_dropout(x, 0.5, SEEDS, call(3))
        probe = normal(2, 40, 31, seed=1, dtype=torch.float32)
        (grad,) = torch.autograd.grad((out * probe).sum(), x)
        torch.testing.assert_close(out.detach(), torch.where(grad != 0, 2 * x.detach(), 0))
        torch.testing.assert_close(grad, torch.where(out != 0, 2 * probe, 0))

    def test_a_draw_depends_on_the_seed_and_the_call_only(self):
        x = torch.ones(2, 60, 31)
        first, second = (triton_replica.fused_dropout(x, 0.5, SEEDS, call(k)) for k in (1, 2))
        assert not torch.equal(first, second)
        assert not torch.equal(first[0], first[1])
        assert torch.equal(triton_replica.fused_dropout(x, 0.5, SEEDS, call(1)), first)
        assert torch.equal(triton_replica.fused_dropout(x[1:], 0.5, SEEDS[1:], call(1)), first[1:])
        assert torch.equal(triton_replica.fused_dropout(x, 0.5, SEEDS.flip(0), call(1)), first.flip(0))

    def test_full_dropout_is_nothing(self):
        assert not triton_replica.fused_dropout(torch.ones(2, 3, 4), 1.0, SEEDS, call(1)).any()

    def test_uniform_numbers(self):
        numbers = triton_replica.fused_uniform(SEEDS, call(1), 3000)
        assert numbers.shape == (2, 3000)
        assert (numbers >= 0).all()
        assert (numbers < 1).all()
        assert numbers.mean(1).tolist() == pytest.approx([0.5] * 2, abs=0.02)
        assert all(row.unique().numel() > 2990 for row in numbers)  # neither neighbors nor blocks draw the same
        assert torch.equal(triton_replica.fused_uniform(SEEDS[1:], call(1), 3000), numbers[1:])
        assert not torch.equal(triton_replica.fused_uniform(SEEDS, call(2), 3000), numbers)
        assert triton_replica.fused_uniform(SEEDS, call(1), 0).shape == (2, 0)

    def test_it_is_what_the_module_uses(self, monkeypatch):
        monkeypatch.setattr(layers, "gpu_kernels", interpreted)
        rng = ReplicaRNG([0, 1], "train")
        outs = [dropout(torch.ones(2, 20, 8), 0.5, rng) for _ in range(2)]
        assert not torch.equal(*outs)
        assert torch.equal(outs[1], triton_replica.fused_dropout(torch.ones(2, 20, 8), 0.5, rng.seeds, call(2)))


def plain(x, offset, weight, bias, norm):
    """relu(norm(x + offset) · weight + bias) by autograd."""
    x = x + offset
    if norm == "layer":
        x = F.layer_norm(x, x.shape[-1:], eps=EPS)
    if norm == "batch":
        var, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        x = (x - mean) / (var + EPS).sqrt()
    return (x if norm == "none" else x * weight + bias).relu()


def fused(x, offset, weight, bias, norm, probability=0.0, seeds=SEEDS):
    mean = rstd = None
    if norm == "none":
        weight = bias = None
    if norm == "batch":
        mean, var = triton_norm.batch_moments(x.detach())
        rstd = (var + EPS).rsqrt()
    return triton_norm.norm_relu_dropout(x, offset, weight, bias, mean, rstd, norm, EPS, probability, seeds, call(1))


def inputs(nodes, width, dtype=torch.float32):
    x = (3 * normal(2, nodes, width, dtype=torch.float32) + 1).to(dtype)
    others = (normal(2, 1, width, seed=seed, dtype=torch.float32).to(dtype) for seed in (3, 1, 2))
    return [tensor.requires_grad_() for tensor in (x, *others)]


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
class TestNormReluDropout:
    @pytest.mark.parametrize(("nodes", "width"), [(1, 1), (7, 5), (33, 70), (CHUNK + 3, 9), (2 * CHUNK, 2)], ids=str)
    def test_value_and_gradients_are_those_of_autograd(self, norm, nodes, width):
        mine, exact = inputs(nodes, width), inputs(nodes, width, torch.float64)
        out, expected = fused(*mine, norm), plain(*exact, norm)
        torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-4)
        probe = normal(2, nodes, width, seed=3)
        count = 2 if norm == "none" else 4
        grads = torch.autograd.grad((out * probe.float()).sum(), mine[:count])
        exact_grads = torch.autograd.grad((expected * probe).sum(), exact[:count])
        for grad, exact_grad in zip(grads, exact_grads, strict=True):
            torch.testing.assert_close(grad.double(), exact_grad, rtol=1e-4, atol=1e-4)

    def test_numbers_kept_in_16_bits_are_computed_with_in_32(self, norm):
        x, *others = inputs(2 * CHUNK, 9)
        short = x.detach().bfloat16().requires_grad_()
        out, expected = fused(short, *others, norm), fused(short.float(), *others, norm)
        assert out.dtype == torch.bfloat16
        torch.testing.assert_close(
            out.float(), expected, rtol=2**-7, atol=0
        )  # the interpreter cuts off, does not round
        probe = normal(*out.shape, seed=3, dtype=torch.float32).bfloat16()
        grads = [torch.autograd.grad((y * probe).sum(), short)[0] for y in (out, expected)]
        torch.testing.assert_close(*grads, rtol=2e-2, atol=2e-2)

    def test_dropout_keeps_or_doubles(self, norm):
        every = inputs(60, 24)
        whole, dropped = fused(*every, norm), fused(*every, norm, probability=0.5)
        kept = dropped != 0
        torch.testing.assert_close(dropped[kept], 2 * whole[kept])
        assert kept.sum().item() / (whole != 0).sum().item() == pytest.approx(0.5, abs=0.05)
        alone = fused(*(tensor[1:] for tensor in every), norm, probability=0.5, seeds=SEEDS[1:])
        torch.testing.assert_close(alone, dropped[1:])

    def test_the_gradient_of_dropout_has_the_same_mask(self, norm):
        mine, exact = inputs(20, 6), inputs(20, 6, torch.float64)
        dropped = fused(*mine, norm, probability=0.5)
        mask = 2 * (dropped.detach() != 0)
        probe, count = normal(2, 20, 6, seed=3), 2 if norm == "none" else 4
        grads = torch.autograd.grad((dropped * probe.float()).sum(), mine[:count])
        exact_grads = torch.autograd.grad((plain(*exact, norm) * mask * probe).sum(), exact[:count])
        for grad, exact_grad in zip(grads, exact_grads, strict=True):
            torch.testing.assert_close(grad.double(), exact_grad, rtol=1e-4, atol=1e-4)

    def test_nan_passes_through(self, norm):
        x, *others = (tensor.detach() for tensor in inputs(20, 6))
        x[1, 4, 2] = torch.nan
        out = fused(x, *others, norm)
        assert out[1, 4, 2].isnan()
        assert out[0].isfinite().all()

    def test_far_from_zero_no_digits_are_lost(self, norm):
        x, *others = (tensor.detach() for tensor in inputs(CHUNK + 20, 3))
        far = x + 1000
        expected = plain(*(tensor.double() for tensor in (far, *others)), norm)
        torch.testing.assert_close(fused(far, *others, norm).double(), expected, rtol=1e-3, atol=2e-3)

    @pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
    def test_it_is_the_layer_of_the_cpu(self, norm, training, monkeypatch):
        results = []
        for kernels in (torch_only, interpreted):
            monkeypatch.setattr(layers, "gpu_kernels", kernels)
            module = randomized(make_norm(norm, 2, 5)).float().train(training)
            x, bias = (
                normal(*shape, seed=seed, dtype=torch.float32).requires_grad_()
                for seed, shape in enumerate([(2, 30, 5), (2, 1, 5)])
            )
            out = activate(x, bias, module, 0.0, ReplicaRNG([0, 1], "train"))
            probe = normal(2, 30, 5, seed=1, dtype=torch.float32)
            grads = torch.autograd.grad((out * probe).sum(), [x, bias, *module.parameters()])
            results.append([out, *grads, *module.buffers()])
        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


@triton.jit
def _drop(out, seeds, calls, first_row, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    row, channel = first_row + tl.arange(0, ROWS), tl.arange(0, CHANNELS)
    ones = tl.full([ROWS, CHANNELS], 1.0, dtype=tl.float32)
    kept = _kept(ones, seeds, calls, 0, row, width, 0.5, ROWS, CHANNELS)
    tl.store(out + tl.arange(0, ROWS)[:, None] * CHANNELS + channel[None, :], kept)


def test_no_node_drops_what_another_does_however_many_numbers_there_are():
    width, masks = 2**24, []
    for first_row in (0, 2**9, 2**10):  # the last begins at 2³² fours
        masks.append(torch.empty(4, 64))
        _drop[(1,)](masks[-1], SEEDS, call(1), first_row, width, ROWS=4, CHANNELS=64)
        assert 0.3 < float(masks[-1].mean()) < 0.7
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(masks, 2))


def test_moments_of_a_wide_layer_whose_first_nodes_are_far_from_the_others(monkeypatch):
    monkeypatch.setattr(triton_norm, "CHUNK", REAL_CHUNK)
    x = 1000 + normal(1, 256, 1500, dtype=torch.float32)
    x[:, 0] = 0
    _, var = triton_norm.batch_moments(x)
    exact, _ = torch.var_mean(x.double(), dim=1, keepdim=True, correction=0)
    torch.testing.assert_close(var.double(), exact, rtol=1e-4, atol=0)


@pytest.mark.parametrize("frozen", [True, False])
def test_the_gradient_of_a_bias_in_evaluation_with_batch_norm(frozen, monkeypatch):
    grads = []
    for kernels in (torch_only, interpreted):
        monkeypatch.setattr(layers, "gpu_kernels", kernels)
        norm = randomized(make_norm("batch", 2, 5)).float().eval().requires_grad_(False)
        x, bias = normal(2, 30, 5).float().requires_grad_(not frozen), normal(2, 1, 5, seed=1).float().requires_grad_()
        out = activate(x, bias, norm, 0.0, ReplicaRNG([0, 1], "train"))
        grads.append(torch.autograd.grad((out * normal(2, 30, 5, seed=2).float()).sum(), bias)[0])
    assert grads[0].any()
    torch.testing.assert_close(*grads)
