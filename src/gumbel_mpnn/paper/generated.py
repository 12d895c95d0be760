"""Generated data sets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch_geometric.data import Data

from gumbel_mpnn.data.tasks import bottleneck, leaf_count, tree_neighbors_match

LEAF_COUNT_DEPTHS = {"leaf-count": 4, "leaf-count-3": 3, "leaf-count-5": 5}
MATCH_DEPTHS = {
    "tree-neighbors-match": 3,
    "tree-neighbors-match-2": 2,
    "tree-neighbors-match-4": 4,
    "tree-neighbors-match-5": 5,
}
SIDES = {"bottleneck": 20, "bottleneck-10": 10, "bottleneck-50": 50, "bottleneck-100": 100}


def _leaf_count(depth: int) -> Data:
    return leaf_count(depth, num_trees=min(32_000, 2**2**depth), max_trees=2_100, num_splits=10)


def _match(depth: int) -> Data:
    return tree_neighbors_match(depth, max_orders=250, num_splits=10)


def _bottleneck(nodes: int) -> Data:
    return bottleneck(nodes_per_side=nodes, num_classes=5, num_graphs=20, num_splits=10)


GENERATED: Mapping[str, Callable[[], Data]] = {
    name: partial(make, size)
    for make, sizes in ((_leaf_count, LEAF_COUNT_DEPTHS), (_match, MATCH_DEPTHS), (_bottleneck, SIDES))
    for name, size in sizes.items()
}
"""Functions that make the data sets; all sizes of a task share its presets."""
