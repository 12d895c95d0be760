"""Memory and time of a training step, from the sizes of a graph and coefficients measured on a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.candidates import candidates as strategies
from gumbel_mpnn.candidates.chosen import DATA, NONE, chosen_strategy
from gumbel_mpnn.candidates.similarity import BySimilarity
from gumbel_mpnn.config import Settings
from gumbel_mpnn.graph import undirected_keys
from gumbel_mpnn.graph.layout import INT32_MAX
from gumbel_mpnn.nn.features import SPARSE_BELOW
from gumbel_mpnn.nn.model import Sizes, Work
from gumbel_mpnn.nn.room import total_bytes
from gumbel_mpnn.runs.coefficients import Coefficients, coefficients
from gumbel_mpnn.runs.spec import RunSpec, Tables
from gumbel_mpnn.training.build import WITH_STRUCTURE, num_seen, outline_model
from gumbel_mpnn.training.device import available_bytes, pick_device
from gumbel_mpnn.training.memory import SHARE_OF_FREE, bytes_at_sizes
from gumbel_mpnn.training.task import Task

SHARE_OF_GPU = 0.65
"""Share of a GPU's memory that tensors can fill: torch held about 1.5 bytes for each byte of theirs (docs/scale.md)."""
GIB = 2**30
MOST = 10**15
"""Largest count of nodes, edges or features that is taken; sizes then fit into 64 bits with room to spare."""


@dataclass(frozen=True)
class Estimate:
    """What training one replica takes on one device."""

    model: str
    nodes: int
    edges: int
    """Undirected edges of the given graph; of a directed graph, its edges."""
    candidates: int
    """Largest number of candidates that the strategy can find."""
    features: int
    classes: int
    parameters: int
    partitions: int
    """Number of parts that the settings ask for."""
    memory: int
    """Bytes at the peak of a training step; of several parts, those of one without the nodes around it, at least."""
    step_seconds: float
    """Time of a training step on the whole graph, whether or not it fits."""
    candidate_seconds: float | None
    """Time of the search for candidates on the CPU; None if it is not known for this search."""
    device: str
    device_memory: int
    """Bytes of the device."""
    parts: int | None
    """Smallest number of parts of which each fits, without the nodes around them; None if parameters alone do not."""
    measured_on: str

    @property
    def fits(self) -> bool:
        """Whether the graph fits, in the number of parts that the settings ask for."""
        return self.parts is not None and self.parts <= self.partitions

    def to_dict(self) -> dict[str, Any]:
        """All values as plain JSON."""
        return asdict(self) | {"fits": self.fits}


@dataclass(frozen=True)
class GraphSize:
    """Counts of a graph that is not there."""

    nodes: int
    edges: int
    features: int
    classes: int
    inputs: int | None = None
    """Feature entries that are not 0; None for all."""
    candidates: int | None = None
    """Candidates that the graph has itself."""

    @classmethod
    def of(cls, data: Data, undirected: bool) -> GraphSize:
        """Counts of a graph with features and labels."""
        given = data.get("candidate_index")
        nodes = int(data.num_nodes)
        x: Tensor = data.x
        values = x if x.layout is torch.strided else x.coalesce().values()
        return cls(
            nodes=nodes,
            edges=len(undirected_keys(data.edge_index, nodes)) if undirected else data.edge_index.shape[1],
            features=x.shape[1],
            classes=int(data.y.max()) + 1,
            inputs=int(torch.count_nonzero(values)),
            candidates=None if given is None else given.shape[1],
        )


def estimate(
    dataset: str | Data | Callable[[bool], str | Data] | None = None,
    model: str = "gumbel-mpnn",
    *,
    nodes: int | None = None,
    edges: int | None = None,
    features: int | None = None,
    classes: int = 2,
    preset: str | Path | None = "tuned",
    settings: Tables | None = None,
    overrides: Iterable[str] = (),
    device: str = "auto",
    memory: float | None = None,
    root: str | Path | None = None,
) -> Estimate:
    """Estimate memory and time of training a model on a graph, which need not exist.

    Nothing is trained, and candidates are not searched. Memory is the same estimate by which `fit` chooses how many
    runs it trains at once, scaled by measured coefficients; errors of a quarter are usual.

    Args:
        dataset: A data set by name, a graph, or a function as in `RunSpec.of`; leave it out and give counts instead.
        model: Name of a model.
        nodes: Number of nodes.
        edges: Number of undirected edges.
        features: Number of features per node, all of which may differ from 0.
        classes: Number of classes.
        preset: Preset as in `fit`.
        settings: Settings as in `fit`.
        overrides: Settings as `table.name=value`.
        device: `cpu`, `h200`, `cuda`, or `auto` for a GPU if there is one. Every GPU has the coefficients of the H200.
        memory: GiB of memory of the device; by default, all of a GPU, or what is free of the CPU's.
        root: Folder of data files.
    """
    counts = {"nodes": nodes, "edges": edges, "features": features}
    given = {name: count for name, count in counts.items() if count is not None}
    if (dataset is None) == (not given):
        raise UserError("give a data set, or the counts nodes, edges and features")
    if dataset is None and len(given) < len(counts):
        missing = " and ".join(name for name in counts if name not in given)
        raise UserError(f"the number of {missing} is missing: give nodes, edges and features")
    for name, count in {**given, "classes": classes}.items():
        least = 0 if name == "edges" else 1
        if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= MOST:
            raise UserError(f"{name} must be a whole number from {least} to {MOST:,}, not {count!r}")
    if memory is not None and not 0 < memory < math.inf:
        raise UserError(f"memory must be a number of GiB above 0, not {memory}")
    described = _stand_in() if dataset is None else dataset
    options: Mapping[str, Any] = {"preset": preset, "settings": settings, "overrides": overrides, "root": root}
    spec = RunSpec.of(described, model, **options)
    if dataset is None:
        size, chosen = GraphSize(**given, classes=classes), spec.settings
        _check_edges(size, chosen.data.undirected)
    else:
        workload = spec.read()
        size, chosen = GraphSize.of(workload.data, workload.settings.data.undirected), workload.settings
    return estimate_size(size, chosen, device, memory)


def _check_edges(size: GraphSize, undirected: bool) -> None:
    """Raise a `UserError` for more edges than there are pairs of different nodes."""
    most = size.nodes * (size.nodes - 1) // (2 if undirected else 1)
    if size.edges > most:
        kind = "undirected" if undirected else "directed"
        raise UserError(f"{size.nodes:,} nodes can have {most:,} {kind} edges at most, not {size.edges:,}")


@dataclass(frozen=True)
class Bounds:
    """What `fit` plans for a step, before coefficients are applied."""

    sizes: Sizes
    nodes: int
    """Bytes that a graph without arcs would take, at the most."""
    arcs: int
    """Bytes that the arcs add."""
    own: int
    """Bytes of parameters, which no part of a graph can do without."""
    parameters: int
    work: Work

    @classmethod
    def of(cls, size: GraphSize, settings: Settings, on_gpu: bool) -> Bounds:
        """Bounds of a step on a graph of these counts."""
        size = _seen(size, settings)
        sizes = _sizes(size, _candidates(size, settings), settings, on_gpu)
        without_arcs = replace(sizes, arcs=0, pairs=0, given_pairs=0)
        try:
            model = outline_model(settings, _outline(size))
            whole, nodes, own = (
                bytes_at_sizes(model, settings, each)
                for each in (sizes, without_arcs, replace(without_arcs, nodes=0, inputs=0))
            )
        except OverflowError:
            raise UserError("64 bits cannot express the size of this model: give it fewer channels") from None
        parameters = sum(parameter.numel() for parameter in model.parameters())
        return cls(sizes, nodes, whole - nodes, own, parameters, model.step_work(sizes, size.features))


def estimate_size(size: GraphSize, settings: Settings, device: str = "auto", memory: float | None = None) -> Estimate:
    """Estimate what training takes on a graph of these counts."""
    name, here = _device(device)
    on_gpu, partitions = name != "cpu", settings.train.partitions
    costs, bounds = coefficients(name), Bounds.of(size, settings, on_gpu)
    in_16_bits = settings.train.bfloat16 and on_gpu
    need, has = costs.step_bytes(bounds.nodes, bounds.arcs, bounds.sizes, in_16_bits), _memory(costs, here, memory)
    room = int((SHARE_OF_GPU if on_gpu else SHARE_OF_FREE) * has)
    return Estimate(
        model=settings.model,
        nodes=size.nodes,
        edges=size.edges,
        candidates=_candidates(size, settings),
        features=size.features,
        classes=size.classes,
        parameters=bounds.parameters,
        partitions=partitions,
        memory=min(need, bounds.own + math.ceil(max(need - bounds.own, 0) / partitions)),
        step_seconds=costs.step_seconds(
            bounds.work, bounds.nodes, tf32=settings.train.tf32 and on_gpu, in_16_bits=in_16_bits
        ),
        candidate_seconds=_search_seconds(size, settings, costs),
        device=name if here is None else str(here),
        device_memory=has,
        parts=_parts(need, bounds.own, room, max(bounds.sizes.arcs, size.nodes)),
        measured_on=costs.on,
    )


def _device(name: str) -> tuple[str, torch.device | None]:
    """Name of the coefficients to use, and the device of this machine that is meant, if it is here."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return "cpu", torch.device("cpu")
    if name == "auto" or name.startswith("cuda"):
        return "h200", pick_device(name) if torch.cuda.is_available() else None
    return name, None


def _memory(costs: Coefficients, here: torch.device | None, memory: float | None) -> int:
    if memory is not None:
        return int(memory * GIB)
    if here is None:
        return int(costs.memory_gib * GIB)
    return total_bytes(here) if here.type == "cuda" else available_bytes(here)


def _parts(need: int, own: int, room: int, largest: int) -> int | None:
    """Smallest number of parts of which each fits into `room` beside parameters of `own` bytes.

    An index of arcs or nodes has 32 bits, so that no part may have more than `INT32_MAX` of the `largest` of both.
    """
    if own >= room:
        return None
    return max(math.ceil(max(need - own, 1) / (room - own)), math.ceil(largest / INT32_MAX), 1)


def _candidates(size: GraphSize, settings: Settings) -> int:
    """Largest number of candidates that the settings ask for."""
    rewiring = settings.rewiring
    if rewiring is None or rewiring.candidates == NONE:
        return 0
    if rewiring.candidates == DATA:
        return size.candidates or 0
    options = rewiring.options_of("candidates", strategies.defaults(rewiring.candidates))
    possible = max(size.nodes * (size.nodes - 1) // 2 - size.edges, 0)
    asked = size.nodes * options["per_node"] if "per_node" in options else options.get("pairs") or 2 * size.edges
    return int(min(asked, possible))


def _search_seconds(size: GraphSize, settings: Settings, costs: Coefficients) -> float | None:
    """Time to find the candidates; exact searches by similarity compare every node with every other."""
    rewiring = settings.rewiring
    if rewiring is None or rewiring.candidates in (NONE, DATA):
        return 0.0
    strategy = chosen_strategy(rewiring, settings.train.partitions)
    if isinstance(strategy, BySimilarity) and strategy.is_approximate(Data(num_nodes=size.nodes)):
        return None
    match strategies.canonical(rewiring.candidates):
        case "local" | "global":
            return size.nodes**2 * (costs.compared_pair_s + costs.compared_number_s * size.features)
        case "two_hop":
            return costs.two_hop_arc_s * 2 * size.edges
    return None


def _sizes(size: GraphSize, found: int, settings: Settings, on_gpu: bool) -> Sizes:
    """Sizes of the graph with its candidates, laid out as `Task` does."""
    undirected = settings.data.undirected
    arcs = 2 * (size.edges + found) if undirected else size.edges + 2 * found
    as_pairs = undirected and (settings.rewiring is None or settings.rewiring.symmetric)
    dense = size.nodes * size.features
    inputs = dense if size.inputs is None else size.inputs
    is_sparse = inputs < SPARSE_BELOW["cuda" if on_gpu else "cpu"] * dense and settings.data.features != "standardized"
    return Sizes(
        nodes=size.nodes,
        arcs=arcs,
        pairs=arcs // 2 if as_pairs else arcs,
        given_pairs=size.edges if as_pairs or not undirected else 2 * size.edges,
        inputs=inputs if is_sparse else dense,
        on_gpu=on_gpu,
        in_16_bits=settings.train.bfloat16,
    )


def _seen(size: GraphSize, settings: Settings) -> GraphSize:
    """Counts of the graph as the model sees it, with positions among communities if the settings ask for them."""
    features = num_seen(size.features, size.classes, settings)
    if features == size.features:
        return size
    beside = settings.data.features == WITH_STRUCTURE and size.inputs is not None
    inputs = (size.inputs or 0) + size.nodes * (features - size.features) if beside else None
    return replace(size, features=features, inputs=inputs)


def _outline(size: GraphSize) -> Task:
    """What `outline_model` asks a task for."""
    return cast(Task, SimpleNamespace(num_features=size.features, num_outputs=size.classes, train_y=None))


def _stand_in() -> Data:
    """A graph with a name only, for which settings are resolved."""
    return Data(x=torch.zeros(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.arange(2), name="graph")
