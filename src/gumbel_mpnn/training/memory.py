"""Number of replicas that are trained at once."""

from __future__ import annotations

from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.nn import SparseFeatures, TrainableModel
from gumbel_mpnn.nn.model import Sizes
from gumbel_mpnn.training.build import build_model
from gumbel_mpnn.training.task import Task

COPIES_OF_PARAMETERS = 6
"""Parameters, gradients, two moments of Adam, the best state and a temporary copy."""
COPIES_OF_FEATURES = 2
"""Features of every replica, if they are standardized, and a temporary copy."""
SHARE_OF_FREE = 0.8
LARGE_ARRAY = 32 * 2**20
"""Size in bytes from which glibc maps and unmaps every array, which takes as long as the step itself."""


def plan_groups(settings: Settings, task: Task, budget: int) -> tuple[int, int]:
    """Number of replicas to train at once within `budget` bytes, at least one, and bytes per replica."""
    model = build_model(settings, task, [Replica(0, 0)])
    each = bytes_per_replica(model, settings, task)
    size = group_size(each, budget)
    on_cpu = task.y.device.type == "cpu"
    return min(size, group_size_of_a_cpu(model.width, task.graph.num_nodes)) if on_cpu else size, each


def bytes_per_replica(model: TrainableModel, settings: Settings, task: Task) -> int:
    """Upper estimate of the memory of one replica, without the graph and features that all replicas share.

    `model` has one replica.
    """
    graph = task.graph
    inputs = task.features.values if isinstance(task.features, SparseFeatures) else task.features
    sizes = Sizes(
        nodes=graph.num_nodes,
        arcs=graph.num_arcs,
        pairs=graph.num_pairs,
        given_pairs=int(graph.is_original.sum()),
        inputs=inputs.numel(),
        on_gpu=task.y.device.type == "cuda",
        in_16_bits=settings.train.bfloat16,
    )
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
