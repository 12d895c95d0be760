import pytest
import torch
from torch.autograd import gradcheck

from gumbel_mpnn.graph import SparseLayout, matmul, sampled_product
from gumbel_mpnn.graph import layout as layout_module
from gumbel_mpnn.graph.products import multiply, multiply_transposed, row_products
from gumbel_mpnn.util.errors import UserError
from helpers import normal

ROW, COL = torch.tensor([0, 0, 2, 2, 2]), torch.tensor([1, 3, 0, 1, 3])
"""Non-zeros of a matrix of 3 rows, one of them empty, and 4 columns, one of them empty."""

NOTHING = torch.empty(0, dtype=torch.int64)


@pytest.fixture
def layout():
    return SparseLayout.build(ROW, COL, 3, 4)


@pytest.fixture(params=[(0, 0), (0, 3), (3, 0), (2, 3)], ids=str)
def empty(request):
    return SparseLayout.build(NOTHING, NOTHING, *request.param)


def dense(layout, values):
    """[B, nnz] as [B, rows, cols], differentiable."""
    batch = torch.arange(values.shape[0])[:, None]
    zeros = values.new_zeros(values.shape[0], *layout.shape)
    return zeros.index_put((batch, layout.row.long(), layout.col.long()), values)


def test_a_layout_by_hand_row_by_row_and_column_by_column(layout):
    assert layout.shape == (3, 4)
    assert layout.nnz == 5
    assert layout.rowptr.tolist() == [0, 2, 2, 5]
    assert layout.col.tolist() == [1, 3, 0, 1, 3]
    assert layout.row.tolist() == [0, 0, 2, 2, 2]
    assert layout.colptr.tolist() == [0, 1, 3, 3, 5]
    assert layout.row_by_col.tolist() == [2, 0, 2, 0, 2]
    assert layout.to_transposed.tolist() == [2, 0, 3, 1, 4]
    small = (layout.rowptr, layout.row, layout.col, layout.colptr, layout.row_by_col)
    assert {tensor.dtype for tensor in small} == {torch.int32}
    assert layout.to_transposed.dtype == torch.int64


def test_tiled_lays_copies_along_the_diagonal(layout):
    rows, columns = layout.by_row.tiled(2), layout.by_col.tiled(2)
    assert (rows.columns, columns.columns) == (8, 6)
    assert rows.offsets.tolist() == [0, 2, 2, 5, 7, 7, 10]
    assert rows.index.tolist() == [1, 3, 0, 1, 3, 5, 7, 4, 5, 7]
    assert columns.offsets.tolist() == [0, 1, 3, 3, 5, 6, 8, 8, 10]
    assert columns.index.tolist() == [2, 0, 2, 0, 2, 5, 3, 5, 3, 5]


def test_a_few_tilings_are_kept_and_one_copy_is_the_pattern_itself(layout):
    side = layout.by_row
    assert side.tiled(1) is side
    first = {batch: side.tiled(batch) for batch in (2, 3, 6)}
    assert all(side.tiled(batch) is tiles for batch, tiles in first.items())
    side.tiled(4)
    assert side.tiled(6) is first[6]
    assert side.tiled(2) is not first[2]


def test_more_positions_than_32_bits_can_count_are_refused(monkeypatch):
    monkeypatch.setattr(layout_module, "INT32_MAX", 4)
    place = torch.arange(5)
    with pytest.raises(UserError, match="5 positions of 5 rows and 5 columns exceed 32-bit indices"):
        SparseLayout.build(place, place, 5, 5)


def test_matmul_worked_by_hand(layout):
    values = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    x = torch.tensor([[[1.0, -1.0], [10.0, 0.0], [100.0, 0.0], [1000.0, 2.0]]])
    assert matmul(layout, values, x).tolist() == [[[2010.0, 4.0], [0.0, 0.0], [5043.0, 7.0]]]


def test_sampled_product_worked_by_hand(layout):
    a = torch.tensor([[[1.0, 0.0], [7.0, 7.0], [1.0, 2.0]]])
    b = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]])
    assert sampled_product(layout, a, b).tolist() == [[2.0, 4.0, 21.0, 42.0, 84.0]]


@pytest.mark.parametrize("shape", [(5,), (1, 5)])
def test_matmul_shares_values_among_the_batch(layout, shape):
    values, x = normal(*shape, seed=1), normal(3, 4, 2, seed=2)
    torch.testing.assert_close(matmul(layout, values, x), dense(layout, values.view(1, 5)) @ x)


@pytest.mark.parametrize(("values", "x"), [((1, 5), (1, 4, 2)), ((3, 5), (3, 4, 2)), ((5,), (3, 4, 2))], ids=str)
def test_gradients_of_matmul(layout, values, x):
    values, x = normal(*values, seed=1).requires_grad_(), normal(*x, seed=2).requires_grad_()
    assert gradcheck(lambda v, z: matmul(layout, v, z), (values, x))
    assert gradcheck(lambda v: matmul(layout, v, x.detach()), (values,))
    assert gradcheck(lambda z: matmul(layout, values.detach(), z), (x,))


@pytest.mark.parametrize("batch", [1, 3])
def test_gradients_of_sampled_product(layout, batch):
    a, b = normal(batch, 3, 2, seed=1).requires_grad_(), normal(batch, 4, 2, seed=2).requires_grad_()
    assert gradcheck(lambda p, q: sampled_product(layout, p, q), (a, b))
    assert gradcheck(lambda p: sampled_product(layout, p, b.detach()), (a,))
    assert gradcheck(lambda q: sampled_product(layout, a.detach(), q), (b,))


def test_products_take_strided_operands(layout):
    values, x = normal(5, 3, seed=1).T, normal(2, 4, 3, seed=2).permute(2, 1, 0)
    assert not values.is_contiguous()
    assert not x.is_contiguous()
    torch.testing.assert_close(matmul(layout, values, x), dense(layout, values) @ x)
    a, b = normal(3, 2, 3, seed=3).permute(2, 0, 1), normal(4, 2, 3, seed=4).permute(2, 0, 1)
    torch.testing.assert_close(sampled_product(layout, a, b), (a @ b.transpose(1, 2))[:, ROW, COL])


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("width", [0, 2])
def test_an_empty_layout_gives_zeros_and_zero_gradients(empty, batch, width):
    rows, cols = empty.shape
    values, x = torch.zeros(batch, 0, requires_grad=True), torch.ones(batch, cols, width, requires_grad=True)
    out = matmul(empty, values, x)
    assert out.shape == (batch, rows, width)
    assert not out.any()
    out.sum().backward()
    assert values.grad.shape == (batch, 0)
    assert torch.equal(x.grad, torch.zeros(batch, cols, width))

    a, b = torch.ones(batch, rows, width, requires_grad=True), torch.ones(batch, cols, width, requires_grad=True)
    scores = sampled_product(empty, a, b)
    assert scores.shape == (batch, 0)
    scores.sum().backward()
    assert torch.equal(a.grad, torch.zeros(batch, rows, width))
    assert torch.equal(b.grad, torch.zeros(batch, cols, width))


def random_layout(rows, cols, share):
    row, col = (normal(rows, cols).abs() < share).nonzero().T
    return SparseLayout.build(row, col, rows, cols)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 128])
def test_values_of_0_change_no_bit_of_a_product(width):
    """Bits of a run may not depend on how many values of all runs are 0, which decides whether they are left out."""
    layout, x = random_layout(60, 50, 0.5), normal(2, 50, width, dtype=torch.float32)
    values = normal(2, layout.nnz, seed=1, dtype=torch.float32) * (normal(2, layout.nnz, seed=2) > 0.5)
    assert 0.2 < (values != 0).double().mean() < 0.5
    some = torch.cat([values, torch.ones_like(values).repeat(9, 1)])  # few zeros among many
    together = multiply(layout, some, x.repeat(10, 1, 1)[:20])[:2]
    assert torch.equal(multiply(layout, values, x), together)
    torch.testing.assert_close(together, dense(layout, values) @ x, rtol=1e-4, atol=1e-5)


def test_tall_layouts_are_cut_into_blocks():
    rows = 4 * layout_module.BLOCK + 5
    layout, y = random_layout(rows, 7, 0.1), normal(2, rows, 20, dtype=torch.float32)
    blocks = layout.blocks
    assert blocks is not None
    assert blocks.offsets.numel() == 5 * 7 + 1
    values = normal(2, layout.nnz, seed=1, dtype=torch.float32)
    out = multiply_transposed(layout, values, y)
    torch.testing.assert_close(out, dense(layout, values).transpose(1, 2) @ y, rtol=1e-4, atol=1e-3)
    assert torch.equal(out[1:], multiply_transposed(layout, values[1:], y[1:]))


def test_square_and_small_layouts_are_not_cut(layout):
    assert layout.blocks is None
    rows = 4 * layout_module.BLOCK
    near = torch.arange(rows)
    assert SparseLayout.build(near, near, rows, rows).blocks is None


def test_row_products():
    a, b = normal(2, 5, 3), normal(2, 5, 3, seed=1)
    torch.testing.assert_close(row_products(a, b), (a * b).sum(-1))
    assert row_products(a[..., :0], b[..., :0]).tolist() == [[0.0] * 5] * 2
