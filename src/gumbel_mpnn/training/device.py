"""The device to train on, its free memory, and how many replicas are trained on it at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from gumbel_mpnn.nn import SparseFeatures, TrainableModel
from gumbel_mpnn.nn.layers import Linear
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.training.build import outline_model
from gumbel_mpnn.training.task import Task
from gumbel_mpnn.util.errors import TooLargeError, UserError

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


def pick_device(name: str) -> torch.device:
    """Device called `name`; `auto` is a GPU if there is one, otherwise the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"there is no device {name!r}: use 'auto', 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"the device {name!r} is not supported: use 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError("there is no CUDA device here: use device 'cpu' or 'auto'")
    return device


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
    """Free memory of the device in bytes; on a CPU, half of all where the system does not tell."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if not MEMINFO.exists():
        return _total_bytes() // 2
    lines = (line.split() for line in MEMINFO.read_text().splitlines())
    free = next(1024 * int(number) for name, number, *_ in lines if name == "MemAvailable:")
    return min(free, _left_in_container())


def _total_bytes() -> int:
    """Memory of this machine, free or not; unlimited where the system does not tell, as on Windows."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else sys.maxsize


def _left_in_container() -> int:
    """Memory left of the limit of a container; cached files that can be dropped count as free."""
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        files = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return limit - used + int(files["inactive_file"])
    except (OSError, ValueError, KeyError):  # no limit, or none that can be read
        return sys.maxsize
