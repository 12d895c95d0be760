"""A run has the same numbers on a GPU, bit for bit, whichever runs are trained together with it."""

import pytest
import torch

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG, replica
from gumbel_mpnn.nn.features import as_features
from gumbel_mpnn.nn.layers import activate, dropout, linear_sum, make_norm
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task, prepare, train
from helpers import normal, numbers, random_edges, small_data
from quick_fit import figures, fit, stored
from same_seed_cases import CASES, settings_of

DEVICE, NODES, MOST = "cuda", 400, 10
GRAPH = PairGraph.build(
    torch.cat([random_edges(NODES, 3000), torch.stack([torch.zeros(399), torch.arange(1, 400)])], 1).long(), NODES
)
EXCEPTED = ("soft-median",)
"""Its gradient adds in the order in which the GPU's threads arrive, so that it is not even the same twice."""
SPARSE = (normal(NODES, 90) > 2.2).float()


def weighted(weight, x):
    return WeightedGraph(GRAPH.to(DEVICE), weight.abs(), x.dtype)


def layer(norm):
    def operation(x, bias):
        module, rng = make_norm(norm, len(x), x.shape[2]), ReplicaRNG([0] * len(x), "train", x.device)
        module.init_parameters(ReplicaRNG([0] * len(x), "init"))
        return dropout(activate(x, bias, module.to(x.device), 0.3, rng), 0.2, rng)

    return operation


OPERATIONS = {
    "sums": (lambda weight, x: GRAPH.to(DEVICE).propagate(x, weight), "P", "ND"),
    "scores": (lambda a, b: GRAPH.to(DEVICE).pair_scores(a, b), "ND", "ND"),
    "graph convolution": (lambda weight, x: weighted(weight, x).symmetric(x), "P", "ND"),
    "mean": (lambda weight, x: weighted(weight, x).mean(x), "P", "ND"),
    "attention": (lambda weight, x, a, b: weighted(weight, x).attend(x, a, b, 0.2), "P", "ND", "HN", "HN"),
    "sparse features": (lambda weight: linear_sum([(as_features(SPARSE, DEVICE), weight)]), "FD"),
}
FORWARD = {f"norm {norm}": (layer(norm), "ND", "1D") for norm in ("none", "layer")}


@pytest.mark.parametrize("width", [4, 8, 64, 256])
@pytest.mark.parametrize("name", [*OPERATIONS, *FORWARD])
def test_kernels_give_a_run_the_same_bits_in_any_group(name, width):
    operation, *shapes = {**OPERATIONS, **FORWARD}[name]
    sizes = {"P": GRAPH.num_pairs, "N": NODES, "D": width, "F": SPARSE.shape[1], "H": 2, "1": 1}
    given = [
        normal(MOST, *(sizes[letter] for letter in shape), seed=k, dtype=torch.float32).to(DEVICE)
        for k, shape in enumerate(shapes)
    ]

    def results(rows):
        leaves = [tensor[rows].clone().requires_grad_() for tensor in given]
        out = operation(*leaves)
        grads = torch.autograd.grad(out.square().sum(), leaves) if name in OPERATIONS else ()
        return [out, *grads]

    alone = [results(slice(row, row + 1)) for row in range(MOST)]
    for size in (1, 2, 6, MOST):
        for whole, *each in zip(results(slice(0, size)), *alone, strict=True):
            assert torch.equal(whole, torch.cat(each[:size])), f"group of {size}"


def task_of(case, device=DEVICE):
    settings = settings_of(case)
    data = small_data(nodes=NODES - 1, features=41, classes=5, splits=5)
    return Task.of(prepare(data, settings), settings, device), settings


@pytest.mark.parametrize("case", [case for case in CASES if case not in EXCEPTED])
def test_groups_of_any_size_give_the_same(case):
    """Also with an odd number of nodes, so that the matrices of later replicas are not aligned."""
    task, settings = task_of(case)
    group = [Replica(k % 5, k) for k in range(MOST)]
    alone = [numbers(train(task, settings, [replica]))[0] for replica in group]
    for size in (2, 6, MOST):
        assert numbers(train(task, settings, group[:size])) == alone[:size], f"group of {size}"


@pytest.mark.parametrize("width", [1, 5, 64, 300])
@pytest.mark.parametrize("rows", [1, 31, 3000, 100_000])
def test_sums_are_right(rows, width):
    x = normal(3, rows, width, dtype=torch.float32).to(DEVICE).requires_grad_()
    found = replica.over_nodes(x)
    torch.testing.assert_close(found.double(), x.double().sum(1), rtol=1e-4, atol=1e-3)
    (grad,) = torch.autograd.grad((found * normal(3, width, dtype=torch.float32).to(DEVICE)).sum(), x)
    assert torch.equal(grad[:, 0], normal(3, width, dtype=torch.float32).to(DEVICE))


def test_booleans_are_counted():
    mask = (normal(3, 5000) > 0).to(DEVICE)
    assert replica.total(mask).tolist() == mask.sum(1).tolist()


def test_a_run_is_the_same_after_a_partial_run_and_with_little_memory(tmp_path):
    def made(folder, **arguments):
        settings = {"model": {"hidden_channels": 64}, "train": {"epochs": 100}, "rewiring": {"scorer": "mixed"}}
        data = small_data(nodes=NODES, features=40)
        run = fit(data, "gumbel-mpnn", runs=folder, settings=settings, device=DEVICE, **arguments)
        return figures(run), stored(run)

    made(tmp_path / "partial", splits=[1])
    fresh = made(tmp_path / "fresh", splits=[0, 1])
    assert made(tmp_path / "partial", splits=[0, 1]) == fresh
    assert made(tmp_path / "little", splits=[0, 1], memory=1) == fresh
