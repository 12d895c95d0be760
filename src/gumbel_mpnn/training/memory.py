"""How many replicas to train at once."""

from __future__ import annotations

from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.nn import SparseFeatures
from gumbel_mpnn.training.build import build_model
from gumbel_mpnn.training.task import Task

COPIES_OF_A_LAYER = 6
"""Arrays of a layer's size alive at the peak: what autograd keeps and what the step makes in passing."""
COPIES_OF_PARAMETERS = 6
"""Parameters, gradients, two moments of Adam, the best state, one in passing."""
SHARE_OF_FREE = 0.8
LARGE_ARRAY = 32 * 2**20
"""Bytes from which glibc maps every array anew and unmaps it when it is freed, which takes as long as the step."""


def bytes_per_replica(settings: Settings, task: Task) -> int:
    """An estimate of what one more replica costs; the shared graph and features are not counted."""
    model = build_model(settings, task, [Replica(0, 0)])
    parameters = sum(parameter.numel() for parameter in model.parameters())
    nodes, arcs = task.graph.num_nodes, task.graph.num_arcs
    width, layers = int(settings.options["hidden_channels"]), int(settings.options["num_layers"])
    heads = int(settings.options.get("heads", 0))
    shortcut = int(bool(settings.options["residual"]))
    # Scores and shares of every arc in every layer for each attention head; the tiled indices once.
    per_arc = 8 * heads * layers + 6 * max(heads, 1)
    if "edge_dropout" in settings.options:  # the weights that a draw gives every arc, plain and normalized
        per_arc += 6 * (layers if settings.options["per_layer"] else 1)
    inputs = task.features.values.numel() if isinstance(task.features, SparseFeatures) else task.features.numel()
    dropped = 4 * inputs if settings.options["input_dropout"] else 0
    activations = nodes * width * layers * (COPIES_OF_A_LAYER + shortcut) + nodes * task.num_outputs * 8
    if settings.rewiring is not None:
        decoys = round(settings.rewiring.decoys * int(task.graph.is_original.sum()))
        pairs, arcs = task.graph.num_pairs + decoys, arcs + 2 * decoys
        activations *= settings.rewiring.samples
        per_arc += 4 * layers * settings.rewiring.samples
        dropped += pairs * (12 + 8 * settings.rewiring.samples) + nodes * settings.rewiring.channels * 6
    return 4 * (activations + parameters * COPIES_OF_PARAMETERS + arcs * per_arc + dropped)


def group_size(each: int, budget: int) -> int:
    """How many replicas of `each` bytes to train at once within `budget`; at least one."""
    return max(1, int(SHARE_OF_FREE * budget) // max(each, 1))


def group_size_of_a_cpu(settings: Settings, task: Task) -> int:
    """How many replicas have hidden layers that are no large arrays together; at least one.

    On a CPU more at once are slower: benchmarks/replicas_cpu.py.
    """
    layer = 4 * task.graph.num_nodes * int(settings.options["hidden_channels"])
    return max(1, LARGE_ARRAY // layer)
