"""Creates the models of settings, prepares their graphs and features, and computes what they predict."""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn import baselines, rewiring
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.graph.partition import Subgraph
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.nn import SparseFeatures, TrainableModel, models
from gumbel_mpnn.nn.backbones import Report
from gumbel_mpnn.nn.features import Standardize
from gumbel_mpnn.nn.layers import Linear
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training.task import Task, num_classes
from gumbel_mpnn.util.errors import TooLargeError, UserError
from gumbel_mpnn.util.tensors import TensorCache, coalesced

STRUCTURE, WITH_STRUCTURE = "structure", "with-structure"
"""Values of `data.features` for positions among the communities of the graph, alone and beside the features."""
PER_CLASS = 4
"""Dimensions of positions beside features, for each class. With 3 or 5, validation values of attacked graphs are about
the same; with 9 they are much lower."""
SHARE = 0.25
"""Mean squared length of positions beside features, compared with that of the features; with up to 1, validation values
are about the same."""
MATMUL = "tf32"
"""How a GPU multiplies matrices of 32 bits in training and prediction: several times faster than with "ieee"."""
MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
COPIES_OF_PARAMETERS = 6
"""Parameters, gradients, two moments of Adam, the best state and a temporary copy."""
COPIES_OF_A_LAYER, COPIES_OF_FEATURES = 8, 4
"""Most arrays in use at the peak of the size of a linear map's output, and of the features if every replica has its
own."""
NUMBERS_PER_ARC = 8
"""Most numbers in use of every arc, besides the attribute `numbers_per_arc` of layers and scorers."""
SHARE_OF_FREE = 0.8
TIMES_TOO_LARGE = 10
"""A run is refused if its upper bound is so many times the free memory: some upper bounds are six times too large."""
LARGE_ARRAY = 32 * 2**20
"""Size in bytes from which glibc maps and unmaps every array, which takes as long as the step itself."""
_positions: TensorCache[Tensor] = TensorCache()
_REGISTERING = (baselines, rewiring)
"""Subpackages that are imported to register their models."""


def prepare(data: Data, settings: Settings, report: Report | None = None) -> Data:
    """Prepare the graph for the model of `settings`; `report` is called with the steps done and the total number.

    Positions beside the features come last, so that candidates and similar nodes are found by the features alone.
    """
    features = settings.data.features
    if features == STRUCTURE:
        positions, data = _positions_of(data), copy.copy(data)
        data.x = positions
    prepared = models[settings.model].prepare(data, settings, report)
    if features == WITH_STRUCTURE and prepared.get("x") is not None:
        prepared = copy.copy(prepared)
        prepared.x = _beside(prepared.x, _positions_of(data, PER_CLASS))
    return prepared


def _positions_of(data: Data, per_class: int = 1) -> Tensor:
    """Position of every node among the communities of the given edges, [N, classes · per_class]."""
    edges: Tensor = data.edge_index
    dimensions = per_class * max(2, num_classes(data))
    return _positions.get(edges, [edges], lambda: community_positions(data, dimensions), (dimensions, data.num_nodes))


def _beside(x: Tensor, positions: Tensor) -> Tensor:
    """Features [N, F], dense or sparse, with positions [N, K] as further columns, scaled as the features are."""
    is_dense = x.layout is torch.strided
    x = x.float() if is_dense else coalesced(x.float())
    length, own = (x if is_dense else x.values()).square().sum(), positions.square().sum()
    scale = (SHARE * length / own).sqrt() if length > 0 and own > 0 else 1.0
    columns = (scale * positions).to(x.device)
    return torch.cat([x, columns if is_dense else columns.to_sparse()], dim=1)


def build_model(settings: Settings, task: Task, replicas: Sequence[Replica]) -> TrainableModel:
    """Create the model of `settings`, with the initial parameters of each replica."""
    return _make(settings, task, replicas).to(task.device)


def outline_model(settings: Settings, task: Task) -> TrainableModel:
    """The model of `settings` with one replica on the meta device: parameters have shapes, but take no memory."""
    try:
        with torch.device("meta"):
            return _make(settings, task, [Replica(0, 0)])
    except RuntimeError:  # a model of the user may need real tensors
        return build_model(settings, task, [Replica(0, 0)])


def _make(settings: Settings, task: Task, replicas: Sequence[Replica]) -> TrainableModel:
    extra: dict[str, Any] = {} if settings.rewiring is None else {"rewiring": settings.rewiring}
    make: Any = models[settings.model]
    model: TrainableModel = make(
        in_channels=task.num_features,
        out_channels=task.num_classes,
        **settings.options,
        **extra,
        replicas=len(replicas),
        seeds=[replica.stream_seed for replica in replicas],
    )
    if settings.data.features == "standardized":  # as a part of the model, so that its state has the statistics
        model.add_module("standardize", Standardize(len(replicas), task.num_features))
    return model


def fit_features(model: TrainableModel, task: Task, train_mask: Tensor) -> None:
    """Take the statistics of the features over the training nodes [R, N], if the model standardizes features."""
    if isinstance(standardize := getattr(model, "standardize", None), Standardize):
        standardize.fit(task.features.to_dense(), train_mask)


def seen_by(model: TrainableModel, task: Task) -> Task:
    """The task with the features of every replica [R, N, F] if the model standardizes them, else the task itself.

    Features that have a replica axis already are left alone, and so is a task in parts: each part is seen by itself.
    """
    standardize = getattr(model, "standardize", None)
    if not isinstance(standardize, Standardize) or task.parts or len(task.features.shape) == 3:
        return task
    return replace(task, features=standardize(task.features))


@contextmanager
def matmul_precision() -> Iterator[None]:
    """Let a GPU multiply matrices as `MATMUL` says."""
    switch, before = torch.backends.cuda.matmul, torch.backends.cuda.matmul.fp32_precision
    switch.fp32_precision = MATMUL
    try:
        yield
    finally:
        switch.fp32_precision = before


def activation_precision(settings: Settings, device: torch.device) -> torch.autocast:
    """Store activations in 16 bits, if the settings ask for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=settings.train.bfloat16, cache_enabled=False)


def class_scores(model: TrainableModel, task: Task, settings: Settings) -> Tensor:
    """Class scores of every node of the task, [R, N, C], part by part if it has parts."""
    scores = _computed(model, model, task, settings, lambda cut: (cut.nodes, cut.own), len(task.y))
    assert scores is not None
    return scores.to(task.features.dtype)


def pair_probability(model: TrainableModel, task: Task, settings: Settings) -> Tensor | None:
    """Probability of every pair to be an edge, [R, P]; None if the model does not learn a graph."""
    pairs = task.graph.num_pairs
    return _computed(model.pair_probability, model, task, settings, lambda cut: (cut.pairs, cut.own_pairs), pairs)


def _computed(
    compute: Callable[[Tensor | SparseFeatures, PairGraph], Tensor | None],
    model: TrainableModel,
    task: Task,
    settings: Settings,
    places: Callable[[Subgraph], tuple[Tensor, Tensor]],
    size: int,
) -> Tensor | None:
    """What a model computes of a task, [R, size, ...]: `places` gives those of a part, and which are its own."""

    def of(task: Task) -> Tensor | None:
        task = seen_by(model, task)
        with matmul_precision(), activation_precision(settings, task.features.device):
            return compute(task.features, task.graph)

    if not task.parts:
        return of(task)
    whole = None
    for part in task.parts:
        values, (place, own) = of(part.task.to(task.device)), places(part.cut)
        if values is None:
            return None
        if whole is None:
            whole = torch.zeros(len(values), size, *values.shape[2:], dtype=values.dtype)
        whole[:, place[own]] = values.cpu()[:, own]
    return whole


def pick_device(name: str) -> torch.device:
    """Device called `name`; `auto` is a GPU if there is one, otherwise the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise UserError(f"there is no device {name!r}: use 'auto', 'cpu' or 'cuda'")
    if name != "cpu" and not torch.cuda.is_available():
        raise UserError("there is no CUDA device here: use device 'cpu' or 'auto'")
    return torch.device(name)


def plan_groups(settings: Settings, task: Task, budget: int | None = None) -> tuple[int, int]:
    """Number of replicas to train at once within `budget` bytes, at least one, and an upper bound of bytes for each.

    The budget is all free memory by default. Nothing is allocated. Raises a `TooLargeError` if one replica is much too
    large for the device.
    """
    free, model = available_bytes(task.device), outline_model(settings, task)
    each = bytes_per_replica(model, settings, task)
    if each > TIMES_TOO_LARGE * free:
        raise too_large(settings, task.device)
    size = int(SHARE_OF_FREE * (free if budget is None else budget)) // each
    if task.device.type == "cpu":  # larger groups are slower: see benchmarks/replicas_cpu.py
        width = max((layer.weight.shape[-1] for layer in model.modules() if isinstance(layer, Linear)), default=1)
        size = min(size, LARGE_ARRAY // (4 * task.largest.graph.num_nodes * width))
    return max(1, size), each


def too_large(settings: Settings, device: torch.device) -> TooLargeError:
    """The error that one run does not fit into the memory of a device."""
    elsewhere = ", or --device cpu" if device.type == "cuda" else ""
    return TooLargeError(
        f"one run of {settings.model} on {settings.dataset} does not fit into the memory of {device}: try a smaller"
        f" model.hidden_channels or model.num_layers, or more parts (train.partitions){elsewhere}"
    )


def bytes_per_replica(model: TrainableModel, settings: Settings, task: Task) -> int:
    """Upper bound of the memory of one replica, without the graph and features that all replicas share.

    Every matrix of `model`, which has one replica, counts as a layer.
    """
    part = task.largest
    features = part.features.values if isinstance(part.features, SparseFeatures) else part.features
    classes, nodes, standardized = task.num_classes, part.graph.num_nodes, settings.data.features == "standardized"
    arcs = part.graph.num_arcs * (1 + sum(getattr(module, "decoys", 0) for module in model.modules()))
    outputs = sum(matrix.shape[-1] for matrix in model.parameters() if matrix.dim() == 3 and matrix.shape[1] > 1)
    outputs += classes * sum(getattr(module, "steps", 0) for module in model.modules()) // 4  # APPNP keeps only these
    per_arc = NUMBERS_PER_ARC + sum(getattr(module, "numbers_per_arc", 0) for module in model.modules())
    own_features = standardized or settings.train.bfloat16 or settings.options.get("input_dropout", 0) > 0
    of_sample = COPIES_OF_A_LAYER * nodes * (outputs + classes) + per_arc * arcs
    of_sample += COPIES_OF_FEATURES * features.numel() * own_features
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return int(4 * (COPIES_OF_PARAMETERS * parameters + model.samples * of_sample))


def available_bytes(device: torch.device) -> int:
    """Free memory of the device in bytes; on a CPU, half of all where the system does not tell, as on a Mac."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if not MEMINFO.exists():
        pages = getattr(os, "sysconf", None)
        return (sys.maxsize if pages is None else pages("SC_PHYS_PAGES") * pages("SC_PAGE_SIZE")) // 2
    lines = (line.split() for line in MEMINFO.read_text().splitlines())
    free = next(1024 * int(number) for name, number, *_ in lines if name == "MemAvailable:")
    return min(free, _left_in_container())


def _left_in_container() -> int:
    """Memory left of the limit of a container; cached files that can be dropped count as free."""
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        files = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return limit - used + int(files["inactive_file"])
    except (OSError, ValueError, KeyError):  # no limit, or none that can be read
        return sys.maxsize
