"""Drawing nodes at distance two, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.jit import compiled
from gumbel_mpnn.candidates.scramble import scrambled


@compiled
def draw_two_hop(
    rowptr: NDArray[np.int32],
    col: NDArray[np.int32],
    first: NDArray[np.uint64],
    stream: np.uint64,
    drawn: NDArray[np.int64],
) -> None:
    """Fill each row of `drawn` [N, per_node] with the nodes at distance two whose hashes for this node are smallest.

    However many paths lead to a node, its hash is the same on each: all are equally likely, and the two-hop
    neighborhood is walked through but never stored. Nodes are numbered from the first one of their graph, `first` [N].
    """
    per_node = drawn.shape[1]
    hashes = np.empty(per_node, dtype=np.uint64)  # of the nodes drawn so far, ascending
    for node in range(drawn.shape[0]):
        own = scrambled(np.uint64(node) - first[node] + stream)
        neighbors = col[rowptr[node] : rowptr[node + 1]]
        count = 0
        for middle in neighbors:
            for other in col[rowptr[middle] : rowptr[middle + 1]]:
                value = scrambled(own ^ (np.uint64(other) - first[node]))
                if count == per_node and value >= hashes[count - 1]:
                    continue
                beside = np.searchsorted(neighbors, other)
                if other == node or (beside < neighbors.size and neighbors[beside] == other):
                    continue
                place = np.searchsorted(hashes[:count], value)
                if place < count and hashes[place] == value:  # no two nodes have the same hash
                    continue
                count = min(count + 1, per_node)
                for after in range(count - 1, place, -1):
                    hashes[after], drawn[node, after] = hashes[after - 1], drawn[node, after - 1]
                hashes[place], drawn[node, place] = value, other
