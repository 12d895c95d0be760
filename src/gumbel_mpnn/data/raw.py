"""What every reader gives: plain arrays, and the one way they become a `Data`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.graph import undirected_keys

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


class Masks(NamedTuple):
    """Which nodes train, validate and test: bool [N], or [N, S] for S splits."""

    train: BoolArray
    val: BoolArray
    test: BoolArray

    @classmethod
    def stack(cls, splits: Sequence[Masks]) -> Masks:
        """Masks [N, S] from those [N] of each split."""
        return cls(*(np.stack(masks, axis=1) for masks in zip(*splits, strict=True)))


@dataclass(frozen=True)
class RawGraph:
    """A graph as its files list it.

    Attributes:
        edges: [E, 2], in the order and multiplicity of the file.
        y: labels [N], -1 where a node has none.
        x: float32 features [N, F], or None if the files have none.
        masks: the splits that come with the files.
        class_names: a name per class, where known.
        weight: of every edge, float32 [E], where they have any.
        given: whether an edge was there before a rewiring, bool [E], where the files say.
        probability: what a rewiring made of every edge, float32 [E], where the files say.
        node_ids: a name per node, where the files have any.
        metric: what models are judged by, where the files say.
        directed: whether edges have a direction, where the files say.
    """

    edges: IntArray
    y: IntArray
    x: NDArray[np.float32] | None = None
    masks: Masks | None = None
    class_names: list[str] | None = None
    weight: NDArray[np.float32] | None = None
    given: BoolArray | None = None
    probability: NDArray[np.float32] | None = None
    node_ids: list[str] | None = None
    metric: str | None = None
    directed: bool | None = None

    def to_data(self) -> Data:
        """A `Data` with the edges as listed; `set_edges` merges and mirrors them."""
        data = Data(
            x=None if self.x is None else torch.from_numpy(self.x),
            edge_index=torch.from_numpy(np.ascontiguousarray(self.edges.T)),
            y=torch.from_numpy(self.y),
        )
        if self.x is None:
            data.num_nodes = len(self.y)
        if self.weight is not None:
            data.edge_weight = torch.from_numpy(self.weight)
        if self.probability is not None:
            data.edge_probability = torch.from_numpy(self.probability)
        if self.given is not None:
            data.edge_origin = torch.from_numpy(self.given)
        if self.masks is not None:
            set_masks(data, self.masks)
        if self.class_names is not None:
            data.class_names = self.class_names
        if self.node_ids is not None:
            data.node_ids = self.node_ids
        if self.metric is not None:
            data.metric = self.metric
        return data


def set_masks(data: Data, masks: Masks) -> None:
    """Give `data` its train, validation and test masks."""
    data.train_mask, data.val_mask, data.test_mask = map(torch.from_numpy, masks)


def set_edges(data: Data, undirected: bool) -> None:
    """List every edge of `data` once, sorted, and in both directions if `undirected`.

    An edge that was listed several times gets the mean of its weights, not the sum: a file that lists an undirected
    edge both ways does not mean an edge of twice the weight. It was given if one of them was.
    """
    merge = to_undirected if undirected else coalesce
    found = {
        name: data[name] for name in ("edge_weight", "edge_probability", "edge_origin") if data.get(name) is not None
    }
    values = [value.float() if value.dtype == torch.bool else value for value in found.values()]
    data.edge_index, merged = merge(data.edge_index, values, num_nodes=data.num_nodes, reduce="mean")
    for name, value in zip(found, merged, strict=True):
        data[name] = value > 0 if name == "edge_origin" else value


def mask_of(nodes: IntArray, num_nodes: int, where: object) -> BoolArray:
    """The bool [N] mask that is true at `nodes`, which come from `where`."""
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        raise DataError(f"{where} names the nodes {nodes.min()} to {nodes.max()}, but nodes are 0 to {num_nodes - 1}")
    mask = np.zeros(num_nodes, dtype=bool)
    mask[nodes] = True
    return mask


def count_edges(edges: NDArray[Any], num_nodes: int) -> int:
    """Undirected edges of the list `edges` [E, 2], each once, without self-loops."""
    return len(undirected_keys(torch.from_numpy(edges).T, num_nodes))


def label_hint(labels: NDArray[Any]) -> str:
    """What to do about labels that are no integers, to end a message with."""
    if labels.dtype.kind != "f":
        return "number the classes from 0"
    known = labels[np.isfinite(labels)]
    if (known == np.round(known)).all():
        return "these are whole numbers, so make them integers, with -1 where a label is unknown"
    return "a quantity is no class, so put it into classes first, such as low, middle and high"
