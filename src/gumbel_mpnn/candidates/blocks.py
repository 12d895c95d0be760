"""The graphs of a batch as contiguous blocks of nodes, small graphs put together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError

SMALL = 512
"""Graphs are put together up to this number of nodes: what is computed between them is thrown away."""

Span = tuple[int, int]
"""Nodes from the first number up to, not including, the second."""


@dataclass(frozen=True, eq=False)
class Block:
    """The nodes `start` to `stop - 1`: those of one graph, or of several whole graphs."""

    start: int
    stop: int
    graph: int = 0
    """Number of the graph, or of the first one."""
    graph_of: Tensor | None = None
    """Where there are several: the graph of each node, int64 [stop - start]."""

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.stop - self.start

    def chunks(self, limit: int) -> list[Span]:
        """The nodes cut into as few spans of at most `limit` nodes as can be, all about as long."""
        count = -(-self.size // max(limit, 1))
        return list(pairwise(self.start + self.size * cut // count for cut in range(count + 1)))


def blocks_of(data: Data) -> list[Block]:
    """Blocks that cover all nodes of `data` in their order; where it has no `batch`, one."""
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
    """Raise a `DataError` unless `data.batch`, if it is there, numbers whole graphs one after the other.

    Args:
        data: The batch.
        pairs: Pairs of its nodes, int64 [2, K], none of which may join two graphs.
        what: What one of them is called in the message.
    """
    batch, nodes = data.get("batch"), int(data.num_nodes or 0)
    if batch is None:
        return
    if batch.shape != (nodes,):
        raise DataError(f"batch must have the shape [{nodes}], a number for each node, not {[*batch.shape]}")
    if bool((batch[1:] < batch[:-1]).any()):
        raise DataError("batch must be sorted: the nodes of a graph stand together")
    crossing = (batch[pairs[0]] != batch[pairs[1]]).nonzero()
    if crossing.numel():
        first, second = pairs[:, int(crossing[0])].tolist()
        raise DataError(f"{what} joins nodes {first} and {second}, but batch says they are in different graphs")
