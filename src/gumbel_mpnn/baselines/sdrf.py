"""SDRF: rewiring by stochastic discrete Ricci flow, as a PyG transform and as a model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn.data.check import as_tensors
from gumbel_mpnn.graph import PairGraph, content_order, edge_index_of, pairs_of, undirected_keys, without_pairs
from gumbel_mpnn.graph.pairs import can_be_taken_apart
from gumbel_mpnn.nn import Backbone, BackboneModel, backbones, models
from gumbel_mpnn.nn.backbones import Report
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.util.errors import UserError, check_at_least, check_whole

REPORT_SECONDS = 0.2
"""Time between two reports; Ctrl-C has an effect at the next one."""


class SDRF(BaseTransform):  # type: ignore[misc]
    """Adds edges around the edge of lowest curvature and removes the edge of largest curvature.

    Each step (Topping et al., 2022, algorithm 1) takes the edge `x ~ y` of lowest balanced Forman curvature. It joins a
    node in N(x) ∪ {x} and a node in N(y) ∪ {y}, drawn with probability softmax(τ · curvature of `x ~ y` after joining
    them). Then the edge that had the largest curvature before is removed if that curvature is above the bound. The flow
    ends early when there is nothing to add or remove. Ties are broken at random, but always in the same way, whatever
    the numbering of the nodes.

    Curvatures of candidates are exact, whereas the code published with the paper approximates them. Self-loops are
    removed and duplicate edges are merged.

    Args:
        iterations: Number of steps; memory is allocated for all of them, about 200 bytes each.
        tau: τ, how strongly the best candidate is preferred; 0 for equal probabilities.
        removal_bound: Only edges above this curvature are removed; None for no removal.
        undirected: Whether every edge gets both directions. If False, given edges retain their directions and weights,
            and new edges have both directions. Curvature is always that of the undirected graph.
        seed: Seed of the draws, which are the same on every machine.
        progress: Called with the number of steps done and the total number, at the start and from time to time.
    """

    def __init__(
        self,
        iterations: int = 100,
        tau: float = 1.0,
        removal_bound: float | None = 0.5,
        undirected: bool = True,
        seed: int = 0,
        progress: Report | None = None,
    ) -> None:
        check_at_least(0, iterations=iterations)
        check_whole(seed=seed)
        if not (isinstance(tau, float | int) and math.isfinite(tau) and tau >= 0):
            raise UserError(f"tau must be a finite number, 0 or more, but is {tau!r}")
        if removal_bound is not None and (not isinstance(removal_bound, float | int) or math.isnan(removal_bound)):
            raise UserError("removal_bound must be a number, or None to remove no edge")
        self.iterations, self.tau, self.removal_bound = iterations, tau, removal_bound
        self.undirected, self.seed, self.progress = undirected, seed, progress

    def forward(self, data: Data) -> Data:
        """Rewire the graph, or each graph of a `Batch`.

        The result has the attributes `edge_origin` [E], true for edges of `data`, `edge_weight` if `data` has it (1 for
        new edges), and `sdrf_steps`, the number of steps done. Other edge attributes and candidates are removed.
        """
        from gumbel_mpnn.baselines.sdrf_steps import Flow

        if can_be_taken_apart(data):
            return data.from_data_list([self(graph) for graph in data.to_data_list()])
        data = as_tensors(data)
        edge_index, x, y = edge_index_of(data, or_empty=True), data.get("x"), data.get("y")
        nodes = int(data.num_nodes or 0)
        if "num_nodes" not in data and x is None and y is not None and y.dim():
            nodes = max(nodes, len(y))  # PyG infers it from the edges alone
        graph = PairGraph.build(edge_index, nodes, edge_weight=data.get("edge_weight"))
        order = content_order(graph, [x] if isinstance(x, Tensor) and len(x) == nodes else [])
        flow = Flow(graph.renumbered(order), self.iterations, self.tau, self.removal_bound, self.seed)
        report, count = self.progress or (lambda done, total: None), 1
        report(flow.done, self.iterations)
        while not flow.finished:  # in groups of steps that grow until each takes about `REPORT_SECONDS`
            start = time.monotonic()
            flow.advance(count)
            report(flow.done, self.iterations)
            count = max(int(count * min(2.0, REPORT_SECONDS / max(time.monotonic() - start, 1e-9))), 1)
        pairs = pairs_of(undirected_keys(order[torch.from_numpy(flow.pairs).to(order.device)], nodes), nodes)
        if not self.undirected:
            graph = PairGraph.build(edge_index, nodes, undirected=False, edge_weight=data.get("edge_weight"))
        out = _with_pairs(data, graph, pairs)
        out.sdrf_steps = flow.done
        return out

    def __repr__(self) -> str:
        shown = ("iterations", "tau", "removal_bound", "undirected", "seed")
        return f"SDRF({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _with_pairs(data: Data, given: PairGraph, pairs: Tensor) -> Data:
    """Copy `data` with its edges replaced by `pairs` [2, P].

    Pairs that have arcs in `given` retain these arcs with their weights; other pairs get both arcs.
    """
    nodes = max(given.num_nodes, 1)
    index = torch.cat([pairs, pairs.flip(0)], dim=1)
    key, old = index[1] * nodes + index[0], given.edge_index[1] * nodes + given.edge_index[0]
    origin = torch.isin(key, old)
    wanted = origin | ~origin.view(2, -1).any(0).repeat(2)
    order = torch.argsort(index[0] * nodes + index[1])
    order = order[wanted[order]]
    index, key, origin = index[:, order], key[order], origin[order]
    out = without_pairs(data, given.num_nodes)
    out.edge_index, out.edge_origin = index, origin
    if given.pair_weight is not None:
        weight = torch.ones_like(key, dtype=given.pair_weight.dtype)
        weight[origin] = given.pair_weight[given.arc_pair[torch.searchsorted(old, key[origin])]]
        out.edge_weight = weight
    return out


@models.register("sdrf", backbone=backbones)
class SDRFModel(BackboneModel):
    """The model `sdrf` of `gm.fit`: a plain backbone on a graph that SDRF rewires once, before training.

    The module itself does not rewire the graph: `fit` calls `prepare` before training. In your own training loop, apply
    the transform: `gm.GCN(...)(gm.baselines.SDRF(...)(data))`.

    Args:
        backbone: A backbone, such as `gm.GCN(...)`, or the name of one.
        iterations: Number of steps of SDRF.
        tau: How strongly SDRF prefers the best candidate.
        remove: Whether SDRF removes edges.
        removal_bound: Only edges above this curvature are removed.
        sdrf_seed: Seed of SDRF; all replicas train on the same rewired graph.
        **options: With a name, the arguments of the backbone.
    """

    space: ClassVar[Mapping[str, Any]] = {
        "iterations": {"low": 10, "high": 1000, "log": True},
        "tau": {"low": 1.0, "high": 100.0, "log": True},
        "removal_bound": {"low": 0.5, "high": 50.0, "log": True},
    }

    def __init__(
        self,
        backbone: Backbone | str = "gcn",
        *,
        iterations: int = 100,
        tau: float = 1.0,
        remove: bool = True,
        removal_bound: float = 0.5,
        sdrf_seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(backbone, **options)
        SDRF(iterations, tau, removal_bound, seed=sdrf_seed)  # says what is wrong, before training

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Rewire the graph with SDRF; `report` is called with the steps done and the total number of steps."""
        given = settings.options
        bound = given["removal_bound"] if given["remove"] else None
        undirected = settings.data.undirected
        rewired: Data = SDRF(given["iterations"], given["tau"], bound, undirected, given["sdrf_seed"], report)(data)
        return rewired
