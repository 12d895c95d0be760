"""SDRF as a PyG transform: rewiring by stochastic discrete Ricci flow."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn._util.errors import DataError, UserError, check_at_least, check_whole
from gumbel_mpnn.baselines.sdrf.flow import Flow
from gumbel_mpnn.data.given import as_tensors
from gumbel_mpnn.graph import PairGraph, edge_index_of, pairs_of, undirected_keys, without_pairs
from gumbel_mpnn.graph.content_order import content_order
from gumbel_mpnn.graph.pairs import can_be_taken_apart, renew_pairs
from gumbel_mpnn.nn.model import Report

REPORT_SECONDS = 0.2
"""Time between two reports; Ctrl-C has an effect at the next one."""

MOST_ITERATIONS = 10_000_000
"""Each step needs about 150 bytes of memory."""


class SDRF(BaseTransform):  # type: ignore[misc]
    """Adds edges around the edge of lowest curvature and removes the edge of largest curvature.

    Each step (Topping et al., 2022, algorithm 1) takes the edge `x ~ y` of lowest balanced Forman curvature. It joins a
    node in N(x) ∪ {x} and a node in N(y) ∪ {y}, drawn with probability softmax(τ · curvature of `x ~ y` after joining
    them). Then the edge that had the largest curvature before is removed if that curvature is above the bound. The flow
    ends early when there is nothing to add or remove. Ties are broken at random, but always in the same way, whatever
    the numbering of the nodes.

    Curvatures of candidates are exact, whereas the code published with the paper approximates them. Self-loops are
    removed and duplicate edges are merged. After Ctrl-C, the graph rewired so far is returned.

    Args:
        iterations: Number of steps, at most ten million; memory is allocated for all of them.
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
        if iterations > MOST_ITERATIONS:
            raise UserError(f"iterations must be at most {MOST_ITERATIONS}, but is {iterations}")
        check_whole(seed=seed)
        if not (isinstance(tau, float | int) and math.isfinite(tau) and tau >= 0):
            raise UserError(f"tau must be a finite number, 0 or more, but is {tau!r}")
        if removal_bound is not None and (not isinstance(removal_bound, float | int) or math.isnan(removal_bound)):
            raise UserError("removal_bound must be a number, or None to remove no edge")
        self.iterations, self.tau, self.removal_bound = iterations, tau, removal_bound
        self.undirected, self.seed, self.progress = undirected, seed, progress

    def forward(self, data: Data) -> Data:
        """Rewire the graph; after Ctrl-C, the graph rewired so far is returned.

        The result has the attributes `edge_origin` [E], true for edges of `data`, `edge_weight` if `data` has it (1 for
        new edges), and `sdrf_steps`, the number of steps done. Other edge attributes and candidates are removed.
        """
        return self.rewire(data, heed_interrupt=True)

    def rewire(self, data: Data, *, heed_interrupt: bool = False) -> Data:
        """Rewire the graph; with `heed_interrupt`, Ctrl-C stops the flow, otherwise it raises a `KeyboardInterrupt`."""
        data = as_tensors(data)
        edge_index = edge_index_of(data, or_empty=True)
        graph = PairGraph.build(edge_index, _num_nodes(data), edge_weight=data.get("edge_weight"))
        x = data.get("x")
        order = content_order(graph, [x] if isinstance(x, Tensor) and len(x) == graph.num_nodes else [])
        flow: Flow | None = None
        try:
            flow = Flow(graph.renumbered(order), self.iterations, self.tau, self.removal_bound, self.seed)
            self._run(flow)
        except KeyboardInterrupt:
            if not heed_interrupt:
                raise
            done = flow.done if flow is not None else 0
            warnings.warn(f"SDRF was stopped after {done} of {self.iterations} steps", stacklevel=3)
        pairs = graph.pair_index
        if flow is not None:
            keys = undirected_keys(order[torch.from_numpy(flow.pairs).to(order.device)], graph.num_nodes)
            pairs = pairs_of(keys, graph.num_nodes)
        given = graph
        if not self.undirected:
            given = PairGraph.build(edge_index, graph.num_nodes, undirected=False, edge_weight=data.get("edge_weight"))
        out = _with_pairs(data, given, pairs)
        out.sdrf_steps = 0 if flow is None else flow.done
        return out

    def _run(self, flow: Flow) -> None:
        """Do all steps, in groups that grow until each takes about `REPORT_SECONDS`."""
        count = 1
        self._report(flow)
        while not flow.finished:
            start = time.monotonic()
            flow.advance(count)
            self._report(flow)
            seconds = time.monotonic() - start
            if seconds < REPORT_SECONDS / 2:
                count *= 2
            elif seconds > REPORT_SECONDS:
                count = max(count // 2, 1)

    def _report(self, flow: Flow) -> None:
        if self.progress is not None:
            self.progress(flow.done, self.iterations)

    def __repr__(self) -> str:
        shown = ("iterations", "tau", "removal_bound", "undirected", "seed")
        return f"SDRF({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _num_nodes(data: Data) -> int:
    """Number of nodes of a graph, which without `x` and `num_nodes` is inferred from edges and labels."""
    count, y = int(data.num_nodes or 0), data.get("y")
    if "num_nodes" in data or data.get("x") is not None or y is None or y.dim() == 0:
        return count
    return max(count, len(y))


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
    if can_be_taken_apart(out):
        renew_pairs(out, "edge_index", [name for name in ("edge_origin", "edge_weight") if name in out])
    return out


@dataclass(frozen=True)
class SDRFOfEachGraph:
    """Transform that applies SDRF to each graph of a disjoint union separately.

    SDRF on the union itself takes the edge of lowest curvature of all graphs in every step. A new edge lowers the
    curvature of others next to it, so most steps are spent on a few graphs and the others do not change.

    Attributes:
        iterations: Number of steps for each graph.
        seed: Seed of the draws.
    """

    iterations: int = 100
    seed: int = 0

    def __call__(self, data: Data) -> Data:
        """Return a copy of a graph with `batch` [N], in which every graph is rewired; edge weights are not allowed."""
        batch = data.get("batch")
        if batch is None:
            raise DataError("this graph has no batch, which says which nodes belong to the same graph")
        if data.get("edge_weight") is not None:
            raise DataError("SDRF of each graph does not take edge weights: leave out edge_weight")
        rewire = SDRF(self.iterations, seed=self.seed)
        parts = [(nodes, rewire.rewire(graph)) for nodes, graph in _graphs(data, batch)]
        out = without_pairs(data, len(batch))
        out.edge_index = torch.cat([nodes[graph.edge_index] for nodes, graph in parts], dim=1)
        out.edge_origin = torch.cat([graph.edge_origin for _, graph in parts])
        return out


def _graphs(data: Data, batch: Tensor) -> list[tuple[Tensor, Data]]:
    """Return the nodes [n] of each graph, and the graph with nodes 0 to n - 1 and the features of `data`."""
    sizes = torch.bincount(batch)
    of_edge = batch[data.edge_index[0]]
    nodes = torch.argsort(batch, stable=True)
    place = torch.empty_like(nodes)
    place[nodes] = torch.arange(len(nodes)) - (sizes.cumsum(0) - sizes)[batch[nodes]]
    edges = place[data.edge_index[:, torch.argsort(of_edge, stable=True)]]
    of_graphs = zip(
        nodes.split(sizes.tolist()),
        edges.split(torch.bincount(of_edge, minlength=len(sizes)).tolist(), dim=1),
        strict=True,
    )
    return [(own, Data(x=data.x[own], edge_index=inside, num_nodes=len(own))) for own, inside in of_graphs]
