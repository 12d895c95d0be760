"""The nodes that candidates were computed for, so that candidates of renumbered nodes are noticed."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataWarning
from gumbel_mpnn.graph.hashes import mixed, row_hash
from gumbel_mpnn.graph.pairs import CANDIDATE_OF, can_be_taken_apart


def digest_of_nodes(data: Data) -> Tensor:
    """Number of nodes, hash of their features, and the same hash in this order, int64 [B, 3], one row per graph.

    Edges do not count: they may be added and dropped after the candidates are computed.
    """
    num_nodes, x = int(data.num_nodes or 0), data.get("x")
    has_features = isinstance(x, Tensor) and x.dim() > 0 and len(x) == num_nodes
    content = mixed(row_hash(x.float())) if has_features else torch.zeros(num_nodes, dtype=torch.int64)
    number = torch.arange(num_nodes, device=content.device)
    graph, graphs = torch.zeros_like(number), 1
    if can_be_taken_apart(data):
        graph, graphs = data.batch.to(number.device), len(data.ptr) - 1
        number = number - data.ptr.to(number.device)[graph]
    values = torch.stack([torch.ones_like(number), content, content * (mixed(number + 1) | 1)], dim=1)
    return values.new_zeros(graphs, 3).index_add_(0, graph, values)


def is_stale(data: Data) -> bool:
    """Whether the candidates of a graph were computed for another number of nodes or for another order of them.

    Changed features are not noticed, nor is the order of nodes with equal features.
    """
    before = data.get(CANDIDATE_OF)
    if data.get("candidate_index") is None or not isinstance(before, Tensor):
        return False
    now = digest_of_nodes(data).cpu()
    if before.shape != now.shape:
        return False
    nodes, content, order = (before.cpu() == now).unbind(1)
    return bool((~nodes | (content & ~order)).any())


def warn_if_stale(data: Data) -> bool:
    """Warn if the candidates of a graph belong to other nodes; returns whether they do."""
    stale = is_stale(data)
    if stale:
        warnings.warn(
            "the candidate_index of this graph was computed before its nodes were renumbered or left out, so it joins"
            " other nodes now: delete it and compute the candidates again",
            DataWarning,
            stacklevel=3,
        )
    return stale
