"""Candidates of a whole graph, renumbered to the nodes of a mini-batch."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.candidates.base import largest_count
from gumbel_mpnn.graph import CANDIDATE_OF, check_candidates, digest_of_nodes, pairs_of, undirected_keys
from gumbel_mpnn.graph.edge_list import is_whole, tensor_of


def for_batch(batch: Data, candidate_index: Tensor, n_id: Tensor | None = None) -> Data:
    """Return a mini-batch with those candidates of the whole graph whose two nodes are in it.

    Works with the batches of PyG's `NeighborLoader`, `ClusterLoader` and `RandomNodeLoader`. A `NeighborLoader` says
    itself which nodes a batch has. For the other two, set `data.n_id = torch.arange(data.num_nodes)` before the loader
    is made.

    Args:
        batch: Mini-batch of a loader; it is not changed.
        candidate_index: Candidates of the whole graph [2, M], as in `data.candidate_index`.
        n_id: Number of each node of the batch in the whole graph, int64 [n]; `batch.n_id` by default.
    """
    n_id = tensor_of(batch, "n_id") if n_id is None else n_id
    nodes = int(batch.num_nodes or 0)
    if n_id is None:
        raise DataError(
            "the batch does not say which nodes it has: set data.n_id = torch.arange(data.num_nodes) before the loader"
            " is made"
        )
    if n_id.shape != (nodes,) or not is_whole(n_id):
        form = f"{n_id.dtype} {list(n_id.shape)}"
        raise DataError(f"n_id must be integers of shape [{nodes}], one for each node of the batch, not {form}")
    if not isinstance(candidate_index, Tensor):
        kind = type(candidate_index).__name__
        raise DataError(f"candidate_index must be a tensor [2, M], such as data.candidate_index, not a {kind}")
    check_candidates(candidate_index, torch.iinfo(torch.int64).max)
    batch = copy.copy(batch)
    batch.candidate_index = _renumbered(candidate_index.to(n_id.device), n_id)
    batch.max_candidates_per_node = largest_count(batch.candidate_index)
    batch[CANDIDATE_OF] = digest_of_nodes(batch)
    return batch


def _renumbered(pairs: Tensor, n_id: Tensor) -> Tensor:
    """Pairs [2, M] among the nodes `n_id` [n], as sorted pairs of places in `n_id`, int64 [2, m]."""
    if pairs.numel() == 0 or n_id.numel() == 0:
        return n_id.new_empty(2, 0)
    place = n_id.new_full((1 + int(torch.maximum(pairs.max(), n_id.max())),), -1)
    place[n_id] = torch.arange(len(n_id), device=n_id.device)
    if int((place >= 0).sum()) != len(n_id):
        raise DataError("a node is in the batch twice: use a loader without disjoint=True")
    ends = place[pairs]
    return pairs_of(undirected_keys(ends[:, (ends >= 0).all(0)], len(n_id)), len(n_id))
