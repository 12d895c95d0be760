"""Blocks of consecutive nodes: the graphs of a batch, with small graphs combined."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError

SMALL = 512
"""Graphs are combined up to this number of nodes; similarities between different graphs are discarded."""

Span = tuple[int, int]
"""Range of nodes: the first one and the one after the last."""


@dataclass(frozen=True, eq=False)
class Block:
    """Nodes `start` to `stop - 1`, which are those of one or several graphs."""

    start: int
    stop: int
    graph: int = 0
    """Index of the (first) graph."""
    graph_of: Tensor | None = None
    """Graph of each node if there are several, int64 [stop - start]."""

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.stop - self.start

    def chunks(self, limit: int) -> list[Span]:
        """Split the nodes into the fewest spans of at most `limit` nodes, of about equal length."""
        count = -(-self.size // max(limit, 1))
        return list(pairwise(self.start + self.size * cut // count for cut in range(count + 1)))


def blocks_of(data: Data) -> list[Block]:
    """Blocks that cover all nodes of `data` in order; a single one without `batch`."""
    batch = data.get("batch")
    if batch is None:
        return [Block(0, int(data.num_nodes))]
    groups: list[list[int]] = []  # start, stop, first graph, number of graphs
    stop = 0
    for graph, size in enumerate(torch.bincount(batch).tolist()):
        if size == 0:
            continue
        start, stop = stop, stop + size
        if groups and stop - groups[-1][0] <= SMALL:
            groups[-1][1] = stop
            groups[-1][3] += 1
        else:
            groups.append([start, stop, graph, 1])
    return [Block(start, stop, first, batch[start:stop] if count > 1 else None) for start, stop, first, count in groups]


def check_batch(data: Data, pairs: Tensor, what: str) -> None:
    """Raise a `DataError` if `data.batch` is not sorted or a pair [2, K], which is called `what`, joins two graphs."""
    batch, nodes = data.get("batch"), int(data.num_nodes or 0)
    if batch is None:
        return
    if batch.shape != (nodes,):
        raise DataError(f"batch must have the shape [{nodes}], a number for each node, not {[*batch.shape]}")
    if bool((batch[1:] < batch[:-1]).any()):
        raise DataError("batch must be sorted: put the nodes of each graph next to each other")
    crossing = (batch[pairs[0]] != batch[pairs[1]]).nonzero()
    if crossing.numel():
        first, second = pairs[:, int(crossing[0])].tolist()
        raise DataError(f"{what} joins nodes {first} and {second}, but batch says they are in different graphs")
