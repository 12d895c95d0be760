"""A run has the same numbers, bit for bit, whichever runs are trained together with it."""

from itertools import combinations

import pytest
import torch

from gumbel_mpnn.nn import SparseFeatures, replica
from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task, prepare, train
from helpers import normal, numbers, small_data
from quick_fit import figures, fit, stored
from same_seed_cases import CASES, settings_of

GROUP = [Replica(k % 5, k // 5) for k in range(7)]


@pytest.fixture
def threads():
    """Sets the number of threads until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def some_data(sparse=False):
    """A graph whose arrays have odd sizes, as texas, where MKL and vectorized loops treat some rows differently."""
    data = small_data(nodes=183, features=41, classes=5, splits=5)
    if sparse:
        data.x = data.x * (normal(*data.x.shape, seed=1) > 1.2)
    return data


def assert_same_in_any_group(case, sparse=False):
    settings = settings_of(case)
    task = Task.of(prepare(some_data(sparse), settings), settings)
    assert isinstance(task.features, SparseFeatures) == sparse
    alone = [numbers(train(task, settings, [replica]))[0] for replica in GROUP]
    assert all(one["history"] != other["history"] for one, other in combinations(alone, 2))
    for size in (2, 6, len(GROUP)):
        groups = [GROUP[first : first + size] for first in range(0, len(GROUP), size)]
        together = [outcome for group in groups for outcome in numbers(train(task, settings, group))]
        assert together == alone


@pytest.mark.parametrize("case", CASES)
def test_groups_of_any_size_give_the_same(case):
    assert_same_in_any_group(case)


@pytest.mark.parametrize("case", ["mlp", "gat", "batch norm", "scorer literal", "scorer mixed"])
def test_groups_of_any_size_give_the_same_on_sparse_features(case):
    assert_same_in_any_group(case, sparse=True)


@pytest.mark.parametrize("case", ["sage", "scorer mixed", "scorer neighborhood"])
def test_groups_of_any_size_give_the_same_on_two_threads(case, threads):
    threads(2)
    assert_same_in_any_group(case)


@pytest.mark.parametrize("case", ["gcn", "batch norm", "layer norm", "heads", "scorer mixed", "class weights"])
def test_the_number_of_threads_changes_nothing(case, threads):
    """On a graph whose arrays are so large that threads share every operation."""
    settings = settings_of(case)
    task = Task.of(prepare(small_data(nodes=3001, features=41, classes=5, splits=5), settings), settings)
    found = []
    for count in (1, 2, 3):
        threads(count)
        found.append(numbers(train(task, settings, GROUP[:2])))
        assert torch.get_num_threads() == count
    assert found[0] == found[1] == found[2]


def made(folder, **arguments):
    """Long enough for a difference in the last bit to grow."""
    settings = {"train": {"epochs": 60, "lr": 0.01}, "model": {"hidden_channels": 20}, "rewiring": {"scorer": "mixed"}}
    run = fit(some_data(), "gumbel-mpnn", runs=folder, settings=settings, device="cpu", **arguments)
    return figures(run), stored(run)


def test_a_run_is_the_same_after_a_partial_run(tmp_path):
    made(tmp_path / "partial", splits=[0])
    made(tmp_path / "partial", splits=[2, 1], seeds=2)
    assert made(tmp_path / "partial", splits=range(5)) == made(tmp_path / "fresh", splits=range(5))


def test_a_run_is_the_same_with_little_memory(tmp_path, trained):
    little = made(tmp_path / "little", splits=range(5), memory=1)
    assert max(map(len, trained)) == 1
    assert made(tmp_path / "much", splits=range(5)) == little
    assert max(map(len, trained)) == 5


@pytest.mark.parametrize("count", [1, 1000, 50_000, 100_001])
def test_totals_depend_neither_on_the_group_nor_on_threads(count, threads):
    x = normal(3, count, dtype=torch.float32)
    found = []
    for number in (1, 2):
        threads(number)
        found += [replica.total(x), torch.cat([replica.total(row[None].clone()) for row in x])]
    assert all(torch.equal(one, found[0]) for one in found)
    torch.testing.assert_close(found[0].double(), x.double().sum(-1), rtol=1e-4, atol=1e-4)


def test_losses_of_large_graphs_do_not_depend_on_the_group(threads):
    """Sums of more than 32,768 entries, which threads share."""
    threads(2)
    logits, y = normal(3, 40_000, 4, dtype=torch.float32), torch.arange(40_000) % 4
    mask, bias = normal(3, 40_000, seed=1) > 0, normal(3, 1, seed=2, dtype=torch.float32).requires_grad_()
    weight = normal(3, 40_000, seed=3, dtype=torch.float32).abs()

    def results(rows):
        loss = cross_entropy(logits[rows], y, mask[rows], weight[rows])
        spread = replica.spread(bias[rows], 40_000) * weight[rows]
        return torch.cat([loss, torch.autograd.grad(spread.square().sum(), bias)[0][rows].flatten()])

    assert torch.equal(results(slice(0, 3)).view(2, 3), torch.stack([results([row]) for row in range(3)], dim=1))


@pytest.mark.parametrize("shape", [(183, 64, 5), (5, 183, 5), (31, 16, 6), (40, 7, 1), (1, 10, 5), (4999, 20, 33)])
def test_products_do_not_depend_on_where_a_matrix_lies(shape):
    rows, between, columns = shape
    x, weight = normal(6, rows, between, dtype=torch.float32), normal(6, between, columns, dtype=torch.float32)
    together = replica.product(x, weight)
    for row in range(6):
        one = slice(row, row + 1)
        assert torch.equal(together[one], replica.product(x[one].clone(), weight[one].clone()))
    torch.testing.assert_close(together, torch.bmm(x, weight), rtol=1e-5, atol=1e-5)
    start = normal(6, rows, columns, dtype=torch.float32)
    added = replica.product_sum([(x, weight), (x, weight)], start)
    last = x[5:].clone(), weight[5:].clone()
    assert torch.equal(added[5:], replica.product_sum([last, last], start[5:].clone()))
    outer = replica.outer_sum(x, start)
    assert torch.equal(outer[5:], replica.outer_sum(x[5:].clone(), start[5:].clone()))
    torch.testing.assert_close(outer, torch.bmm(x.transpose(1, 2), start), rtol=1e-4, atol=1e-3)


def test_second_derivatives_of_products():
    x, weight = normal(2, 5, 3).requires_grad_(), normal(2, 3, 4, seed=1).requires_grad_()
    y = normal(2, 5, 4, seed=2).requires_grad_()
    assert torch.autograd.gradgradcheck(replica.product, (x, weight))
    assert torch.autograd.gradgradcheck(lambda x, w, s: replica.product_sum([(x, w), (x, w)], s), (x, weight, y))
    assert torch.autograd.gradgradcheck(replica.outer_sum, (x, y))
