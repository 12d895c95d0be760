"""Learned graphs as PyG data, and what rewiring changed: edges kept, dropped and added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, without_pairs
from gumbel_mpnn.util.errors import check_between

SHOWN = 10
"""Number of changes that are listed."""


def as_data(graph: PairGraph, probability: Tensor, data: Data, threshold: float = 0.5) -> Data:
    """Copy `data` with its edges replaced by the pairs whose `probability` [P] is at least `threshold`.

    The copy has the attributes that `GumbelMPNN.rewire` describes, those of `data` that do not belong to edges, and
    `undirected`: false for a directed graph, true only if `data` has this attribute.
    """
    check_between(0, 1, threshold=threshold)
    weight = graph.times_given(probability).detach()
    chosen = probability >= threshold
    index = graph.pair_index[:, chosen]
    about = {"edge_weight": weight, "edge_probability": probability, "edge_origin": graph.is_original}
    about = {name: value[chosen] for name, value in about.items()}
    if graph.undirected:
        index = torch.cat([index, index.flip(0)], dim=1)
        about = {name: value.repeat(2) for name, value in about.items()}
    order = torch.argsort(index[0] * graph.num_nodes + index[1])
    out = without_pairs(data, graph.num_nodes)
    out.edge_index = index[:, order]
    for name, value in about.items():
        out[name] = value[order]
    if not graph.undirected or "undirected" in out:
        out.undirected = graph.undirected
    return out


@dataclass(frozen=True)
class Change:
    """An edge that was dropped or added."""

    change: str
    """`dropped` or `added`."""
    source: str | int
    target: str | int
    probability: float


@dataclass(frozen=True)
class Changes:
    """The difference between a learned graph and the given one."""

    threshold: float
    """Probability from which a pair counts as an edge."""
    kept: int
    """Given edges that are still edges."""
    dropped: int
    """Given edges that are no longer edges."""
    added: int
    """Candidates that became edges."""
    candidates: int
    largest: tuple[Change, ...]
    """The largest changes, the most certain first: edges dropped of a small and added of a large probability."""

    def sentence(self) -> str:
        """One sentence for the user."""
        at = "at one half" if self.threshold == 0.5 else f"at {self.threshold:g}"
        if not self.dropped and not self.added:
            return f"the learned graph is the given one: {at}, all {self.kept} edges are kept and none is added"
        return (
            f"{at}, {self.kept} given edges are kept, {self.dropped} dropped and {self.added} of {self.candidates}"
            " candidates added"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        return asdict(self)


def changes(
    graph: PairGraph, probability: Tensor, threshold: float = 0.5, node_ids: Sequence[str] | None = None
) -> Changes:
    """Compare a learned graph with the given one. Undirected edges count once.

    Args:
        graph: Pairs of the graph.
        probability: Probability of every pair, [P].
        threshold: Pairs with this probability or more are edges.
        node_ids: Names of the nodes; they are numbered by default.
    """
    check_between(0, 1, threshold=threshold)
    given, probability = graph.is_original.cpu(), probability.detach().cpu()
    is_edge = probability >= threshold
    distance = torch.where(given, 1 - probability, probability).double()
    changed = (given != is_edge).nonzero().flatten()
    first = changed[torch.argsort(distance[changed], descending=True, stable=True)][:SHOWN]
    names: Sequence[str | int] = range(graph.num_nodes) if node_ids is None else node_ids
    largest = tuple(
        Change("dropped" if was else "added", names[source], names[target], p)
        for source, target, was, p in zip(
            *graph.pair_index.cpu()[:, first].tolist(),
            given[first].tolist(),
            probability[first].tolist(),
            strict=True,
        )
    )
    return Changes(
        threshold=threshold,
        kept=int((given & is_edge).sum()),
        dropped=int((given & ~is_edge).sum()),
        added=int((~given & is_edge).sum()),
        candidates=int((~given).sum()),
        largest=largest,
    )
