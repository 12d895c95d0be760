"""Builders shared by the tests: small graphs, data, tasks and settings."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data

from gumbel_mpnn.data import DatasetSpec
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.settings import DataSettings, Replica, RewiringSettings, Settings, resolve
from gumbel_mpnn.training import Outcome, Task, train


def fresh_processes() -> ForkServerContext:
    """Processes forked from one that has no threads, unlike this one, and in which what they need is imported already.

    They have the environment of the first test that starts one.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "gumbel_mpnn.candidates", "gumbel_mpnn.runs.tune", "optuna"])
    return context


def edges(*pairs: tuple[int, int]) -> Tensor:
    """An `edge_index` of the given (source, target) pairs."""
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T


def both_ways(edge_index: Tensor) -> Tensor:
    """Every edge and its reverse."""
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


def random_edges(nodes: int, count: int, seed: int = 0) -> Tensor:
    """`count` random edges among all but the last node, which stays isolated; self-loops and duplicates occur."""
    return torch.randint(nodes - 1, (2, count), generator=torch.Generator().manual_seed(seed))


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers that depend on the seed alone."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def positive(*shape: int, seed: int = 0) -> Tensor:
    """Numbers between 0.5 and 1.5."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5


def dense_weights(graph: PairGraph, weight: Tensor) -> Tensor:
    """Pair weights [B, P] as matrices [B, target, source], differentiable."""
    source, target = graph.pair_index
    dense = weight.new_zeros(weight.shape[0], graph.num_nodes, graph.num_nodes)
    dense = dense.index_put((torch.arange(weight.shape[0])[:, None], target, source), weight)
    return dense + dense.transpose(1, 2) if graph.undirected else dense


def randomized(model: nn.Module, seed: int = 0) -> nn.Module:
    """The model in float64 with every parameter and running statistic drawn anew, biases and norms too."""
    model = model.double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.state_dict().values():
            value.copy_(torch.rand(value.shape, generator=generator, dtype=torch.float64) + 0.1)
        for value in model.parameters():
            value.sub_(0.6)
    return model


def small_data(nodes: int = 24, features: int = 6, classes: int = 3, splits: int = 2, seed: int = 0) -> Data:
    """A random graph whose features tell something of the labels, with masks [N, splits]."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % classes
    centers = torch.randn(classes, features, generator=generator)
    x = centers[y] + torch.randn(nodes, features, generator=generator)
    part = torch.stack([torch.randperm(nodes, generator=generator) for _ in range(splits)], dim=1) % 3
    return Data(
        x=x,
        y=y,
        edge_index=torch.randint(nodes - 1, (2, 3 * nodes), generator=generator),
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
    )


def generated(name: str, make: Callable[[], Data]) -> DatasetSpec:
    """A data set called `name` that `make` generates, with its splits."""
    return DatasetSpec(name, 0, 0, 0, 0, ("fixed",), "this test", "none", make)


def changed(data: Data, **values: Any) -> Data:
    """A copy of `data` with some attributes replaced; None leaves one out."""
    return Data(**{name: value for name, value in {**data.to_dict(), **values}.items() if value is not None})


def make_task(data: Data | None = None, device: str = "cpu", **data_settings: Any) -> Task:
    """The task of `data`, of `small_data` by default."""
    settings = Settings("toy", "gumbel-mpnn", {}, DataSettings(**data_settings), rewiring=RewiringSettings())
    return Task.of(small_data() if data is None else data, settings, device)


def make_settings(model: str = "gcn", options: Mapping[str, Any] | None = None, **train: Any) -> Settings:
    """Complete settings of a narrow model that trains fast."""
    tables = {"model": {"hidden_channels": 8, **(options or {})}, "train": {"lr": 0.01, "epochs": 6, **train}}
    return resolve("toy", model, tables, backbones.complete)


def replicas(*pairs: tuple[int, int]) -> list[Replica]:
    """Replicas from (split, seed)."""
    return [Replica(split, seed) for split, seed in pairs]


def numbers(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """The numbers of each outcome that must not depend on the machine's speed, in a form that `==` compares."""
    names = ("replica", "val", "test", "best_epoch", "epochs", "history")
    return [
        {name: getattr(outcome, name) for name in names}
        | {"state": {name: value.tolist() for name, value in outcome.state.items()}}
        for outcome in outcomes
    ]


def interrupted(epoch: int, task: Task, settings: Settings, group: Sequence[Replica], checkpoint: Path) -> None:
    """Train until `epoch` and break off there, before its checkpoint is written."""

    def watch(now: int, best: float) -> None:
        if now == epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(task, settings, group, checkpoint=checkpoint, watch=watch)


def curve(outcome: Outcome, name: str) -> list[float]:
    """One column of the history."""
    return [row[name] for row in outcome.history]


def assert_close_outcomes(actual: Sequence[Outcome], expected: Sequence[Outcome], tolerance: float = 1e-4) -> None:
    """The same replicas, epochs and, up to rounding, figures and parameters."""
    for one, other in zip(actual, expected, strict=True):
        assert (one.replica, one.best_epoch, one.epochs) == (other.replica, other.best_epoch, other.epochs)
        close = {"rtol": tolerance, "atol": tolerance}
        torch.testing.assert_close([one.val, one.test], [other.val, other.test], **close)
        assert len(one.history) == len(other.history)
        for row, other_row in zip(one.history, other.history, strict=True):
            torch.testing.assert_close(row, other_row, **close)
        torch.testing.assert_close(one.state, other.state, **close)


def assert_close_curves(actual: Sequence[Outcome], expected: Sequence[Outcome], norm: str) -> None:
    """The same losses all along, up to rounding.

    Before a batch norm a bias has no gradient but rounding, which Adam makes steps of: training does not see them, the
    running statistics and so the validation do.
    """
    for name in ("train_loss",) if norm == "batch" else ("train_loss", "val_loss"):
        one, other = (torch.tensor([curve(outcome, name) for outcome in group]) for group in (actual, expected))
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


class LargestOutput(TorchDispatchMode):
    """Notes the largest number of stored elements among the outputs of all operations, forward and backward."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor):
                stored = leaf.values() if leaf.layout is torch.sparse_csr else leaf
                self.elements = max(self.elements, stored.numel())
        return out
