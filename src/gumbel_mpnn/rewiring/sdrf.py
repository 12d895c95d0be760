"""SDRF: rewiring by stochastic discrete Ricci flow, a transform."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gumbel_mpnn.errors import UserError
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures.curvature import mode_number
from gumbel_mpnn.rewiring.flow import Flow
from gumbel_mpnn.rewiring.progress import StepLine

REPORT_SECONDS = 0.2
"""Steps are done in groups that take about so long: then progress is shown, and Ctrl-C is heard."""


class SDRF(BaseTransform):  # type: ignore[misc]
    """Adds edges where the graph is most negatively curved and removes those of the largest curvature.

    Each step takes the edge `x ~ y` of least balanced Forman curvature, draws a pair of a node in N(x) ∪ {x} and one in
    N(y) ∪ {y} with probability softmax(τ · curvature of `x ~ y` once they are joined), and joins them; then the edge
    that had the largest curvature before is removed if that is above the bound. Of equal edges the first is taken. It
    ends when there is nothing to add or remove. (Topping et al., 2022, algorithm 1.)

    Everything is exact: a candidate is judged by the curvature of the graph with it, where the code published with the
    paper approximates. Self-loops are left out and duplicates are one edge. Ctrl-C gives the graph so far.

    Args:
        iterations: How many steps.
        tau: τ, how strongly the candidate that helps most is preferred; 0 takes any.
        removal_bound: Edges above this curvature may be removed; None removes none.
        undirected: Whether every edge gets both directions. Curvature is always that of the undirected graph, it knows
            no other; False leaves the directions of the given edges as they are, and new edges have both.
        mode: How curvature is counted, `paper` or `reference` (see `gm.measures.balanced_forman`).
        seed: The same seed makes the same draws on every machine.
        progress: Called with the steps done and all steps now and then; by default a line on standard error.
    """

    def __init__(
        self,
        iterations: int = 100,
        tau: float = 1.0,
        removal_bound: float | None = 0.5,
        undirected: bool = True,
        mode: str = "paper",
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if iterations < 0:
            raise UserError(f"iterations must be 0 or more, but is {iterations}")
        if not (math.isfinite(tau) and tau >= 0):
            raise UserError(f"tau must be a finite number, 0 or more, but is {tau}")
        if removal_bound is not None and math.isnan(removal_bound):
            raise UserError("removal_bound must be a number, or None to remove no edge")
        mode_number(mode)
        self.iterations, self.tau, self.removal_bound = iterations, tau, removal_bound
        self.undirected, self.mode, self.seed, self.progress = undirected, mode, seed, progress

    def forward(self, data: Data) -> Data:
        """The rewired graph; after Ctrl-C, as far as it had come.

        `edge_origin` [E] is true for edges that `data` had, `edge_weight` is kept if there is one (1 for new edges),
        and `sdrf_steps` is the number of steps done. Other attributes of edges, and candidates, are left out.
        """
        return self.rewire(data, heed_interrupt=True)

    def rewire(self, data: Data, *, heed_interrupt: bool = False) -> Data:
        """The same; without `heed_interrupt` Ctrl-C is passed on, as is right where the graph is only a first step."""
        edge_index = data.get("edge_index")
        if edge_index is None:
            edge_index = torch.empty(2, 0, dtype=torch.int64)
        graph = PairGraph.build(edge_index, int(data.num_nodes or 0), edge_weight=data.get("edge_weight"))
        flow: Flow | None = None
        try:
            flow = Flow(graph, self.iterations, self.tau, self.removal_bound, self.mode, self.seed)
            self._run(flow)
        except KeyboardInterrupt:
            if not heed_interrupt:
                raise
            done = flow.done if flow is not None else 0
            warnings.warn(f"SDRF was stopped after {done} of {self.iterations} steps", stacklevel=3)
        pairs = graph.pair_index if flow is None else torch.from_numpy(flow.pairs).to(graph.pair_index.device)
        out = _with_pairs(data, graph, pairs, None if self.undirected else edge_index)
        out.sdrf_steps = 0 if flow is None else flow.done
        return out

    def _run(self, flow: Flow) -> None:
        """All steps, in groups that grow until each takes about `REPORT_SECONDS`."""
        tell, line = self.progress, None
        if tell is None:
            tell = line = StepLine("SDRF")
        count = 1
        try:
            while not flow.finished:
                start = time.monotonic()
                flow.advance(count)
                tell(flow.done, self.iterations)
                seconds = time.monotonic() - start
                if seconds < REPORT_SECONDS / 2:
                    count *= 2
                elif seconds > REPORT_SECONDS:
                    count = max(count // 2, 1)
        finally:
            if line is not None:
                line.close()

    def __repr__(self) -> str:
        shown = ("iterations", "tau", "removal_bound", "undirected", "mode", "seed")
        return f"SDRF({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _with_pairs(data: Data, graph: PairGraph, pairs: Tensor, arcs: Tensor | None) -> Data:
    """A copy of `data` with the edges `pairs` [2, P] in place of its own, in the directions of `arcs` where given."""
    nodes = max(graph.num_nodes, 1)
    key, old = pairs[0] * nodes + pairs[1], graph.pair_index[0] * nodes + graph.pair_index[1]
    origin = torch.isin(key, old)
    index, pair = torch.cat([pairs, pairs.flip(0)], dim=1), torch.arange(len(key), device=key.device).repeat(2)
    if arcs is not None:
        given = torch.isin(index[0] * nodes + index[1], arcs[0] * nodes + arcs[1])
        kept = given | ~origin[pair]
        index, pair = index[:, kept], pair[kept]
    order = torch.argsort(index[0] * nodes + index[1])
    index, pair = index[:, order], pair[order]
    out = copy.copy(data)
    for name in data.to_dict():
        if data.is_edge_attr(name) or name in _ABOUT_PAIRS:
            del out[name]
    out.edge_index, out.edge_origin, out.num_nodes = index, origin[pair], graph.num_nodes
    if graph.pair_weight is not None:
        place = torch.searchsorted(old, key).clamp_(max=max(old.numel() - 1, 0))
        weight = torch.ones_like(key, dtype=graph.pair_weight.dtype)
        weight[origin] = graph.pair_weight[place[origin]]
        out.edge_weight = weight[pair]
    return out


_ABOUT_PAIRS = ("edge_index", "candidate_index", "max_candidates_per_node")
