"""Tests of the sparse GPU kernels; run by test_triton_interpreted.py in a process where Triton interprets them."""

import pytest
import torch

from graph_cases import check_against_float64
from gumbel_mpnn.graph import PairGraph, SparseLayout, matmul, products, sampled_product
from gumbel_mpnn.graph.kernels import attention as triton_attention
from gumbel_mpnn.graph.kernels import products as triton_kernels
from gumbel_mpnn.graph.products import attention, averages, symmetric_product
from gumbel_mpnn.nn import backbones
from helpers import edges, normal

ROWS, COLS = 4, 37


def pattern(rows=ROWS, cols=COLS, seed=0):
    """A random layout whose first row is full (above one block of edges) and whose last row and column are empty."""
    there = torch.rand(rows, cols, generator=torch.Generator().manual_seed(seed)) < 0.2
    there[0], there[-1], there[:, -1] = True, False, False
    row, col = there.nonzero().T
    return SparseLayout.build(row, col, rows, cols)


def dense(layout, values):
    out = values.new_zeros(values.shape[0], *layout.shape)
    out[:, layout.row.long(), layout.col.long()] = values
    return out


def product(side, values, x):
    return triton_kernels.walk(side, x, values=values).sums


def samples(layout, a, b):
    return triton_kernels.walk(layout.by_row, b, own=a).samples


@pytest.fixture
def short_chunks(monkeypatch):
    """Rows are cut up."""
    monkeypatch.setattr("gumbel_mpnn.graph.layout.LONGEST", 10)


def use(monkeypatch, kernels=None, attention=None):
    """The operations use these modules of kernels, or plain torch, although the tensors lie on the CPU."""
    found = {"graph.kernels.products": kernels, "graph.kernels.attention": attention}
    monkeypatch.setattr(products, "gpu_kernels", lambda device, module: found[module])


SHAPES = [(1, 1), (2, 3), (70, 1), (300, 3)]


@pytest.mark.parametrize(
    ("width", "batch", "dtype"),
    [
        *((width, batch, torch.float32) for width, batch in SHAPES),
        *((width, 4 - batch, torch.float64) for width, batch in SHAPES),
    ],
)
class TestKernels:
    def test_product(self, width, batch, dtype):
        layout = pattern()
        values, x = normal(batch, layout.nnz, seed=1, dtype=dtype), normal(batch, COLS, width, seed=2, dtype=dtype)
        out = product(layout.by_row, values, x)
        assert out.dtype == dtype
        torch.testing.assert_close(out, dense(layout, values) @ x, rtol=1e-4, atol=1e-5)
        assert not out[:, -1].any()

    def test_transposed_product(self, width, batch, dtype):
        layout = pattern(COLS, ROWS)
        values, x = normal(batch, layout.nnz, seed=1, dtype=dtype), normal(batch, COLS, width, seed=2, dtype=dtype)
        out = product(layout.by_col, values, x)
        torch.testing.assert_close(out, dense(layout, values).transpose(1, 2) @ x, rtol=1e-4, atol=1e-5)

    def test_sampled_product(self, width, batch, dtype):
        layout = pattern()
        a, b = normal(batch, ROWS, width, seed=1, dtype=dtype), normal(batch, COLS, width, seed=2, dtype=dtype)
        out = samples(layout, a, b)
        assert out.dtype == dtype
        expected = (a @ b.transpose(1, 2))[:, layout.row.long(), layout.col.long()]
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4 if dtype is torch.float32 else 1e-10)


@pytest.mark.parametrize("width", [1, 5, 64, 200])
@pytest.mark.parametrize("batch", [2, 3, 7])
def test_values_that_the_batch_shares(width, batch):
    layout = pattern()
    values, x = normal(1, layout.nnz, seed=1).expand(batch, -1), normal(batch, COLS, width, seed=2)
    assert values.stride(0) == 0
    torch.testing.assert_close(product(layout.by_row, values, x), dense(layout, values) @ x)


def test_operands_whose_last_axis_is_strided():
    layout = pattern()
    values, x = normal(layout.nnz, 2, seed=1).T, normal(5, COLS, 2, seed=2).permute(2, 1, 0)
    torch.testing.assert_close(product(layout.by_row, values, x), dense(layout, values.contiguous()) @ x)
    a = normal(5, ROWS, 2, seed=3).permute(2, 1, 0)
    torch.testing.assert_close(
        samples(layout, a, x),
        (a @ x.transpose(1, 2))[:, layout.row.long(), layout.col.long()],
    )


def test_operands_that_the_batch_shares():
    layout = pattern()
    values, x = normal(3, layout.nnz, seed=1), normal(1, COLS, 5, seed=2).expand(3, -1, -1)
    torch.testing.assert_close(product(layout.by_row, values, x), dense(layout, values) @ x)


def test_gradients_are_those_of_the_cpu(monkeypatch):
    layout, results = pattern(6, 5), []
    for kernels in (None, triton_kernels):
        use(monkeypatch, kernels)
        values = normal(2, layout.nnz, seed=1).requires_grad_()
        x, y = normal(2, 5, 3, seed=2).requires_grad_(), normal(2, 6, 3, seed=3).requires_grad_()
        out, scores = matmul(layout, values, x), sampled_product(layout, y, x)
        grads = torch.autograd.grad(out.square().sum() + scores.square().sum(), [values, x, y])
        results.append([out, scores, *grads])
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(("width", "batch"), [(1, 1), (33, 2), (100, 5)])
def test_graph_convolution_is_that_of_plain_torch(width, batch, learned, monkeypatch):
    layout, results = pattern(9, 9, seed=3), []
    for kernels in (None, triton_kernels):
        use(monkeypatch, kernels)
        values = normal(batch, layout.nnz, seed=1).requires_grad_(learned)
        root = (1 + normal(batch, 9, seed=2).square()).requires_grad_(learned)
        x = normal(batch, 9, width, seed=3).requires_grad_()
        out = symmetric_product(layout, values, root, x)
        inputs = [tensor for tensor in (values, root, x) if tensor.requires_grad]
        results.append([out, *torch.autograd.grad((out * normal(batch, 9, width, seed=4)).sum(), inputs)])
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("heads", [1, 2, 14])
@pytest.mark.parametrize("shared", [True, False])
def test_attention_is_that_of_plain_torch(heads, shared, monkeypatch):
    monkeypatch.setattr(triton_attention, "FEWEST", 4)
    monkeypatch.setattr(triton_attention, "MOST", 4)
    layout, results = pattern(9, 9, seed=3), []
    for kernels in (None, triton_attention):
        use(monkeypatch, attention=kernels)
        weight = normal(1 if shared else 3, layout.nnz, seed=1).abs()
        weight[:, ::3] = 0
        inputs = [weight, 2 * normal(3 * heads, 9, seed=2), 2 * normal(3 * heads, 9, seed=3)]
        inputs = [tensor.float().requires_grad_() for tensor in inputs]
        shares, own = attention(layout, *inputs, 0.2)
        loss = (shares * normal(*shares.shape, seed=4)).sum() + (own * normal(*own.shape, seed=5)).sum()
        results.append([shares, own, *torch.autograd.grad(loss, inputs)])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    shares, own = results[1][:2]
    torch.testing.assert_close(dense(layout, shares).sum(-1) + own, torch.ones_like(own))


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize(("heads", "width"), [(1, 5), (3, 4), (2, 70), (5, 64), (3, 130)])
def test_averages_of_heads_are_those_of_plain_torch(heads, width, monkeypatch):
    layout, results = pattern(15, 15, seed=3), []
    for kernels in (None, triton_kernels):
        use(monkeypatch, kernels)
        inputs = [
            normal(2, heads, layout.nnz, seed=1),
            normal(2, heads, 15, seed=2),
            normal(2, 15, heads * width, seed=3),
        ]
        inputs = [tensor.requires_grad_() for tensor in inputs]
        out = averages(layout, *inputs)
        results.append([out, *torch.autograd.grad((out * normal(*out.shape, seed=4)).sum(), inputs)])
    torch.testing.assert_close(results[1], results[0])


def test_heads_too_wide_for_one_program_go_the_plain_way(monkeypatch):
    layout, results = pattern(9, 9, seed=3), []
    shares = normal(1, 2, layout.nnz, seed=1), normal(1, 2, 9, seed=2)
    for widest in (triton_kernels.WIDEST, 4):
        monkeypatch.setattr(triton_kernels, "WIDEST", widest)
        use(monkeypatch, triton_kernels)
        results.append(averages(layout, *shares, normal(1, 9, 20, seed=3)))
    torch.testing.assert_close(*results)


def test_attention_with_a_score_far_above_all_that_are_there(monkeypatch):
    layout = SparseLayout.build(torch.tensor([0, 0]), torch.tensor([1, 2]), 3, 3)
    source = torch.tensor([[0.0, 500.0, 1.0]])
    for kernels in (None, triton_attention):
        use(monkeypatch, attention=kernels)
        shares, own = attention(layout, torch.tensor([[0.0, 1.0]]), torch.zeros(1, 3), source, 0.2)
        assert shares[0, 0] == 0
        assert (shares[0, 1] + own[0, 0]).item() == pytest.approx(1)


def test_attention_without_arcs(monkeypatch):
    layout, none = SparseLayout.build(*torch.empty(2, 2, 0, dtype=torch.int64)[0], 3, 3), torch.empty(1, 0)
    for kernels in (None, triton_attention):
        use(monkeypatch, attention=kernels)
        weight, target = none.clone().requires_grad_(), normal(2, 3).float().requires_grad_()
        shares, own = attention(layout, weight, target, normal(2, 3, seed=1).float(), 0.2)
        assert shares.shape == (2, 0)
        assert (own == 1).all()
        grads = torch.autograd.grad(own.sum(), [weight, target])
        assert grads[0].shape == (1, 0)
        assert (grads[1] == 0).all()


def test_factors_that_are_laid_out_otherwise():
    layout, x = pattern(9, 9, seed=3), normal(2, 9, 4, seed=1)
    values = normal(2, layout.nnz, seed=2)
    for scale in ((1 + normal(9, 2, seed=3).square()).T, torch.full((1, 1), 0.5, dtype=x.dtype).expand(2, 9)):
        found, expected = (
            triton_kernels.walk(layout.by_row, x, values=values, scale=factor).sums
            for factor in (scale, scale.contiguous())
        )
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("shape", [(2, 9, 0), (0, 9, 4)], ids=str)
def test_no_channels_or_no_replicas(shape):
    layout, (batch, nodes, _) = pattern(9, 9, seed=3), shape
    x, values, root = torch.ones(shape), torch.ones(batch, layout.nnz), torch.ones(batch, nodes)
    found = triton_kernels.walk(layout.by_col, x, values=values, own=x, scale=root, image=x)
    assert found.sums.shape == shape
    assert not found.samples.any()
    assert not found.scale_grad.any()


@pytest.mark.usefixtures("short_chunks")
def test_wide_rows_are_worked_off_in_slices(monkeypatch):
    layout = pattern(9, 9, seed=3)
    values, root, x, grad = normal(2, layout.nnz, seed=1), normal(2, 9, seed=2).exp(), *normal(2, 2, 9, 40, seed=3)
    arguments = {"values": values, "own": grad, "scale": root, "image": x}
    whole = triton_kernels.walk(layout.by_col, x, **arguments)
    monkeypatch.setattr(triton_kernels, "WIDEST", 16)
    sliced = triton_kernels.walk(layout.by_col, x, **arguments)
    for name in ("sums", "samples", "scale_grad"):
        torch.testing.assert_close(getattr(sliced, name), getattr(whole, name))


def test_a_row_in_many_chunks():
    layout, x = pattern(3, 700, seed=1), normal(1, 700, 2, seed=2)
    values = normal(1, layout.nnz, seed=1)
    assert layout.by_row.chunks.slots > 1
    torch.testing.assert_close(product(layout.by_row, values, x), dense(layout, values) @ x)


def test_sums_of_16_bit_numbers_are_made_in_32():
    ones = torch.ones(1, 600, 1, dtype=torch.bfloat16)
    layout = SparseLayout.build(torch.zeros(600, dtype=torch.int64), torch.arange(600), 1, 600)
    assert product(layout.by_row, ones[..., 0], ones).item() == 600  # in bfloat16, 256 + 1 is 256
    assert samples(layout, torch.ones(1, 1, 600, dtype=torch.bfloat16), ones.expand(1, 600, 600))[0, 0].item() == 600


@pytest.mark.parametrize("name", list(backbones))
def test_models_give_the_logits_of_the_cpu(name, monkeypatch):
    graph = PairGraph.build(edges((0, 1), (1, 2), (2, 3), (0, 3)), 5)
    model = backbones[name](4, out_channels=3, hidden_channels=4, replicas=2).eval()
    x, weight = normal(5, 4, dtype=torch.float32), torch.rand(2, graph.num_pairs)
    expected = model(x, graph, weight)
    use(monkeypatch, triton_kernels)
    torch.testing.assert_close(model(x, graph, weight), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize(("name", "width", "replicas"), [("hub", 7, 1), ("power_law", 1, 1), ("empty", 7, 2)])
def test_products_are_those_of_float64(name, width, replicas, monkeypatch):
    """The kernels' in float32 beside torch's in float64."""
    monkeypatch.setattr(products, "_kernels", lambda x: triton_kernels if x.dtype == torch.float32 else None)
    check_against_float64(name, width, replicas)
