"""An order of the nodes that depends on their content, not on their numbering in a file.

Searches and random draws break ties by node number. If a file is sorted by class, the number reveals the class.
Therefore, whatever breaks ties works on the graph in content order and maps its result back.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.sparse_tensors import dense_if_small
from gumbel_mpnn.graph.hashes import mixed, row_hash
from gumbel_mpnn.graph.pair_graph import PairGraph
from gumbel_mpnn.graph.pairs import CANDIDATE_OF

ROUNDS = 3
"""Rounds of hashing over neighbors: nodes with equal features are distinguished by nodes up to three hops away."""


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
    place = _places(order)
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


def _places(order: Tensor) -> Tensor:
    """Position of each node in `order`, int64 [N]."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    return place
