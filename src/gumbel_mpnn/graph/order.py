"""Nodes by their content, not by their numbering in a file: an order of the nodes, and a digest of them.

Searches and random draws break ties by node number. If a file is sorted by class, the number reveals the class.
Therefore, whatever breaks ties works on the graph in content order and maps its result back.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.graph.pairs import CANDIDATE_OF, inverse
from gumbel_mpnn.util.errors import DataWarning
from gumbel_mpnn.util.tensors import dense_if_small

if TYPE_CHECKING:
    from gumbel_mpnn.graph.pair_graph import PairGraph

ROUNDS = 3
"""Rounds of hashing over neighbors: nodes with equal features are distinguished by nodes up to three hops away."""
ENTRIES_AT_ONCE = 2**23
"""Feature entries that are hashed at a time, which limits memory."""


def content_order(graph: PairGraph, features: Iterable[Tensor] = (), batch: Tensor | None = None) -> Tensor:
    """Nodes sorted by a hash of their features [N, ...] and surroundings, int64 [N].

    The order does not depend on the numbering of the nodes, except for nodes that have the same features and
    surroundings; these are in a fixed random order. Weights and directions of edges are ignored. With a sorted `batch`
    [N], nodes of one graph stay together, and the order within a graph does not depend on the other graphs.
    """
    device = graph.pair_index.device
    key = torch.zeros(graph.num_nodes, dtype=torch.int64, device=device)
    for values in features:
        key = mixed(key + row_hash(values.to(device)))
    source, target = torch.cat([graph.pair_index, graph.pair_index.flip(0)], dim=1)
    for _ in range(ROUNDS):
        around = torch.zeros_like(key).index_add_(0, target, mixed(key + 1)[source])
        key = mixed(key + mixed(around))
    number = torch.arange(graph.num_nodes, device=device)
    if batch is not None:
        batch = batch.to(device)
        number = number - torch.searchsorted(batch, batch)
    order = mixed(number + 1).argsort(stable=True)
    order = order[key[order].argsort(stable=True)]
    return order if batch is None else order[batch[order].argsort(stable=True)]


def in_order(data: Data, order: Tensor) -> Data:
    """Copy `data` with its nodes renumbered: node k of the copy is node `order[k]` of `data`."""
    place = inverse(order)
    out = copy.copy(data)
    for name in data.node_attrs():
        value = data[name]
        if isinstance(value, Tensor):
            out[name] = dense_if_small(value).index_select(0, order.to(value.device))
        else:
            out[name] = [value[node] for node in order.tolist()]
    for name in ("edge_index", "candidate_index"):
        if data.get(name) is not None:
            index = data[name].as_subclass(Tensor)
            out[name] = place.to(index.device)[index.long()]
    if CANDIDATE_OF in out:
        del out[CANDIDATE_OF]  # the candidates are renumbered too
    out.num_nodes = len(order)
    return out


def digest_of_nodes(data: Data) -> Tensor:
    """Number of nodes, hash of their features, and the same hash in this order, int64 [1, 3].

    Edges do not count: they may be added and dropped after the candidates are computed.
    """
    num_nodes, x = int(data.num_nodes or 0), data.get("x")
    has_features = isinstance(x, Tensor) and x.dim() > 0 and len(x) == num_nodes
    content = mixed(row_hash(x.float())) if has_features else torch.zeros(num_nodes, dtype=torch.int64)
    places = mixed(torch.arange(1, num_nodes + 1, device=content.device)) | 1
    return torch.stack([torch.tensor(num_nodes, device=content.device), content.sum(), (content * places).sum()])[None]


def warn_if_stale(data: Data) -> bool:
    """Warn if the candidates of a graph were computed for other nodes; returns whether they were.

    That is, for another number of nodes or another order of them. Changed features are not noticed, nor is the order of
    nodes with equal features, nor anything in a batch of several graphs.
    """
    before = data.get(CANDIDATE_OF)
    if data.get("candidate_index") is None or not isinstance(before, Tensor) or len(before) != 1:
        return False
    nodes, content, order = (before.cpu() == digest_of_nodes(data).cpu())[0].tolist()
    stale = not nodes or (content and not order)
    if stale:
        warnings.warn(
            "the candidate_index of this graph was computed before its nodes were renumbered or left out, so it joins"
            " other nodes now: delete it and compute the candidates again",
            DataWarning,
            stacklevel=3,
        )
    return stale


def row_hash(values: Tensor) -> Tensor:
    """Hash of every row of `values` [N, ...], int64 [N]; equal rows have equal hashes on every device."""
    values = dense_if_small(values.detach())
    if values.layout is not torch.strided:
        row, column = values.indices()
        hashes = torch.zeros(len(values), dtype=torch.int64, device=values.device)
        return hashes.index_add_(0, row, _bits(values.values()) * (mixed(column + 1) | 1))
    values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    values = values.reshape(len(values), -1) if len(values) else values.new_zeros(0, 1)
    factor = mixed(torch.arange(1, values.shape[1] + 1, device=values.device)) | 1
    step = max(ENTRIES_AT_ONCE // max(values.shape[1], 1), 1)
    parts = [(_bits(rows) * factor).sum(1) for rows in values.split(step)]
    return torch.cat(parts) if parts else factor.new_zeros(0)


def _bits(values: Tensor) -> Tensor:
    """Convert values to int64: integers by value, floats by their bits."""
    if not values.is_floating_point():
        return values.long()
    values = values if values.dtype == torch.float64 else values.float()
    bits = (values + 0.0).contiguous()  # turns −0 into 0
    return bits.view(torch.int64) if bits.dtype == torch.float64 else bits.view(torch.int32).long()


def mixed(value: Tensor) -> Tensor:
    """Pseudorandom permutation of the 64-bit integers (the last step of SplitMix64)."""
    value = (value ^ ((value >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    value = (value ^ ((value >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return value ^ ((value >> 31) & (2**33 - 1))
