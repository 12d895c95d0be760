"""How many replicas to train at once."""

from __future__ import annotations

from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.nn import SparseFeatures
from gumbel_mpnn.rewiring.beliefs import WIDTH as BELIEF_WIDTH
from gumbel_mpnn.rewiring.edge_models.neighborhood import WIDTH as NEIGHBORHOOD_WIDTH
from gumbel_mpnn.training.models import build_model
from gumbel_mpnn.training.task import Task

COPIES_OF_A_LAYER = 6
"""Arrays of a layer's size alive at the peak: what autograd keeps and what the step makes in passing. A shortcut, a
layer norm and the heads of attention take one more each."""
COPIES_OF_PARAMETERS = 6
"""Parameters, gradients, two moments of Adam, the best state, one in passing."""
SHARE_OF_FREE = 0.8
LARGE_ARRAY = 32 * 2**20
"""Bytes from which glibc maps every array anew and unmaps it when it is freed, which takes as long as the step."""


def bytes_per_replica(settings: Settings, task: Task) -> int:
    """An estimate from above of what one more replica costs; the shared graph and features are not counted."""
    options, rewiring = settings.options, settings.rewiring
    model = build_model(settings, task, [Replica(0, 0)])
    numbers = COPIES_OF_PARAMETERS * sum(parameter.numel() for parameter in model.parameters())
    nodes, arcs, samples = task.graph.num_nodes, task.graph.num_arcs, 1
    width, layers = int(options["hidden_channels"]), int(options["num_layers"])
    if rewiring is not None:
        decoys = round(rewiring.decoys * int(task.graph.is_original.sum()))
        pairs, arcs, samples = task.graph.num_pairs + decoys, arcs + 2 * decoys, rewiring.samples
        per_pair = 12 + 8 * samples + (3 * NEIGHBORHOOD_WIDTH if rewiring.scorer == "neighborhood" else 0)
        head = 0 if getattr(model, "belief_head", None) is None else BELIEF_WIDTH
        numbers += pairs * per_pair + nodes * (rewiring.channels + head) * 6
    copies = COPIES_OF_A_LAYER + int(bool(options["residual"])) + int(options["norm"] == "layer")
    backbone = options.get("backbone", settings.model)
    per_arc = 0
    if backbone != "mlp":  # the tiled indices once; weights, normalized ones and their gradients in every layer
        per_arc = 6 + (4 * layers * samples if rewiring is not None else 0)
    if backbone == "gat":  # scores and shares of every arc in every layer for each head, and their own tiled indices
        copies += 1
        per_arc += int(options["heads"]) * (8 * layers * samples + 8)
    if "edge_dropout" in options:  # the weights that a draw gives every arc, plain and normalized
        per_arc += 3 * (layers if options["per_layer"] else 1)
    # What is dropped of the features, and in 16 bits the features themselves, are every replica's own.
    inputs = task.features.values if isinstance(task.features, SparseFeatures) else task.features
    numbers += samples * inputs.numel() * (4 * bool(options["input_dropout"]) + settings.train.bfloat16)
    numbers += samples * nodes * (width * (layers + bool(options["input_layer"])) * copies + task.num_outputs * 8)
    return 4 * (numbers + arcs * per_arc)


def group_size(each: int, budget: int) -> int:
    """How many replicas of `each` bytes to train at once within `budget`; at least one."""
    return max(1, int(SHARE_OF_FREE * budget) // max(each, 1))


def group_size_of_a_cpu(settings: Settings, task: Task) -> int:
    """How many replicas have hidden layers that are no large arrays together; at least one.

    On a CPU more at once are slower: benchmarks/replicas_cpu.py.
    """
    layer = 4 * task.graph.num_nodes * int(settings.options["hidden_channels"])
    return max(1, LARGE_ARRAY // layer)
