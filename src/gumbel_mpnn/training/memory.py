"""Number of replicas that are trained at once, and whether one fits into memory at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from gumbel_mpnn._util.errors import TooLargeError
from gumbel_mpnn.config import Settings
from gumbel_mpnn.nn import SparseFeatures, TrainableModel
from gumbel_mpnn.nn.model import Sizes
from gumbel_mpnn.training.build import outline_model
from gumbel_mpnn.training.task import Task

COPIES_OF_PARAMETERS = 6
"""Parameters, gradients, two moments of Adam, the best state and a temporary copy."""
COPIES_OF_FEATURES = 2
"""Features of every replica, if they are standardized, and a temporary copy."""
SHARE_OF_FREE = 0.8
TIMES_TOO_LARGE = 3
"""A run is refused if its estimate is so many times the free memory, since estimates are upper bounds."""
LARGE_ARRAY = 32 * 2**20
"""Size in bytes from which glibc maps and unmaps every array, which takes as long as the step itself."""


def plan_groups(settings: Settings, task: Task, budget: int) -> tuple[int, int]:
    """Number of replicas to train at once within `budget` bytes, at least one, and bytes per replica."""
    model = outline_model(settings, task)
    each = bytes_per_replica(model, settings, task)
    size = group_size(each, budget)
    on_cpu = task.device.type == "cpu"
    return min(size, group_size_of_a_cpu(model.width, task.largest.graph.num_nodes)) if on_cpu else size, each


def check_fits(settings: Settings, task: Task, free: int) -> None:
    """Raise a `TooLargeError` if one run does not fit into `free` bytes, before anything is allocated for it."""
    if _fits(settings, task, TIMES_TOO_LARGE * free):
        return
    for name, value, changed in _smaller(settings):
        if _fits(changed, task, free):
            raise TooLargeError(f"{does_not_fit(settings, task.device)}: {name}={value:.10g} fits")
    raise TooLargeError(f"{does_not_fit(settings, task.device)}: {ADVICE}")


ADVICE = "try a smaller model.hidden_channels or model.num_layers, or more parts (--partitions)"


def does_not_fit(settings: Settings, device: torch.device) -> str:
    """The beginning of a sentence that ends with advice."""
    return f"one run of {settings.model} on {settings.dataset} does not fit into the memory of {device}"


def _fits(settings: Settings, task: Task, free: int) -> bool:
    try:
        each = bytes_per_replica(outline_model(settings, task), settings, task)
    except OverflowError:
        return False
    return each <= free


def _smaller(settings: Settings) -> Iterator[tuple[str, float, Settings]]:
    """Settings that take memory, halved again and again, one setting after the other."""
    width = settings.options.get("hidden_channels", 0)
    while (width := width // 2) > 0:
        yield "model.hidden_channels", width, replace(settings, options={**settings.options, "hidden_channels": width})
    if settings.rewiring is None:
        return
    channels, decoys = settings.rewiring.channels, settings.rewiring.decoys
    while (channels := channels // 2) > 0:
        yield "rewiring.channels", channels, replace(settings, rewiring=replace(settings.rewiring, channels=channels))
    while (decoys := decoys / 2) > 1e-3:
        yield "rewiring.decoys", decoys, replace(settings, rewiring=replace(settings.rewiring, decoys=decoys))


def bytes_per_replica(model: TrainableModel, settings: Settings, task: Task) -> int:
    """Upper estimate of the memory of one replica, without the graph and features that all replicas share.

    `model` has one replica.
    """
    largest = task.largest
    graph = largest.graph
    inputs = largest.features.values if isinstance(largest.features, SparseFeatures) else largest.features
    sizes = Sizes(
        nodes=graph.num_nodes,
        arcs=graph.num_arcs,
        pairs=graph.num_pairs,
        given_pairs=int(graph.is_original.sum()),
        inputs=inputs.numel(),
        on_gpu=task.device.type == "cuda",
        in_16_bits=settings.train.bfloat16,
    )
    return bytes_at_sizes(model, settings, sizes)


def bytes_at_sizes(model: TrainableModel, settings: Settings, sizes: Sizes) -> int:
    """`bytes_per_replica` for a graph of which the sizes are known."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    features = COPIES_OF_FEATURES * sizes.inputs if settings.data.features == "standardized" else 0
    return 4 * (COPIES_OF_PARAMETERS * parameters + features + model.step_numbers(sizes))


def group_size(each: int, budget: int) -> int:
    """Number of replicas of `each` bytes that fit into `budget` bytes, at least one."""
    return max(1, int(SHARE_OF_FREE * budget) // max(each, 1))


def group_size_of_a_cpu(width: int, nodes: int) -> int:
    """Number of replicas whose hidden layer is smaller than `LARGE_ARRAY`, at least one.

    On a CPU, larger groups are slower: see benchmarks/replicas_cpu.py.
    """
    return max(1, LARGE_ARRAY // (4 * nodes * width))
