"""Plain arrays, which every reader returns, and their conversion to `Data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.graph import undirected_keys
from gumbel_mpnn.graph.layout import INT32_MAX

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


class Masks(NamedTuple):
    """Training, validation and test nodes: bool [N], or [N, S] for S splits."""

    train: BoolArray
    val: BoolArray
    test: BoolArray

    @classmethod
    def stack(cls, splits: Sequence[Masks]) -> Masks:
        """Stack the masks [N] of each split into masks [N, S]."""
        return cls(*(np.stack(masks, axis=1) for masks in zip(*splits, strict=True)))


@dataclass(frozen=True)
class RawGraph:
    """A graph as listed in its files. An attribute is None if the files do not contain it."""

    edges: IntArray
    """Edges [E, 2] in the order of the file, duplicates included."""
    y: IntArray
    """Labels [N], -1 for unlabelled nodes."""
    x: NDArray[np.float32] | None = None
    """Features, float32 [N, F]."""
    masks: Masks | None = None
    class_names: list[str] | None = None
    weight: NDArray[np.float32] | None = None
    """Weight of each edge, float32 [E]."""
    given: BoolArray | None = None
    """Whether each edge existed before rewiring, bool [E]."""
    probability: NDArray[np.float32] | None = None
    """Probability that rewiring gave each edge, float32 [E]."""
    node_ids: list[str] | None = None
    metric: str | None = None
    directed: bool | None = None
    attacks: Mapping[str, RawGraph] = field(default_factory=dict)
    """The same graph after each attack, by name of the attack."""

    def to_data(self) -> Data:
        """Convert to a `Data` with the edges as listed; use `set_edges` to merge and mirror them."""
        data = Data(
            x=None if self.x is None else torch.from_numpy(self.x),
            edge_index=torch.from_numpy(np.ascontiguousarray(self.edges.T)),
            y=torch.from_numpy(self.y),
        )
        if self.x is None:
            data.num_nodes = len(self.y)
        of_edges = {"edge_weight": self.weight, "edge_probability": self.probability, "edge_origin": self.given}
        for name, values in of_edges.items():
            if values is not None:
                data[name] = torch.from_numpy(values)
        if self.masks is not None:
            set_masks(data, self.masks)
        for name in ("class_names", "node_ids", "metric"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        return data


def set_masks(data: Data, masks: Masks) -> None:
    """Set the training, validation and test masks of `data`."""
    data.train_mask, data.val_mask, data.test_mask = map(torch.from_numpy, masks)


def set_edges(data: Data, undirected: bool) -> None:
    """Sort the edges of `data` and merge duplicates; add the reverse of each edge if `undirected`.

    A merged edge gets the mean of the weights, not the sum: a file that lists an undirected edge in both directions
    does not mean an edge of twice the weight. It counts as given if one of its duplicates does.
    """
    found = {
        name: data[name] for name in ("edge_weight", "edge_probability", "edge_origin") if data.get(name) is not None
    }
    if not found:
        data.edge_index = _merged(data.edge_index, int(data.num_nodes or 0), undirected)
        return
    merge = to_undirected if undirected else coalesce
    values = [value.float() if value.dtype == torch.bool else value for value in found.values()]
    data.edge_index, merged = merge(data.edge_index, values, num_nodes=data.num_nodes, reduce="mean")
    for name, value in zip(found, merged, strict=True):
        data[name] = value > 0 if name == "edge_origin" else value


def _merged(edge_index: Tensor, num_nodes: int, undirected: bool) -> Tensor:
    """Sorted distinct edges [2, A], as `to_undirected` and `coalesce` give them, in half the time.

    A sparse matrix brings the edges of each node together without sorting all of them.
    """
    from scipy.sparse import csr_matrix

    edges = edge_index.cpu().to(torch.int32 if num_nodes <= INT32_MAX else torch.int64)
    row, col = (torch.cat([edges, edges.flip(0)], dim=1) if undirected else edges).numpy()
    matrix = csr_matrix((np.ones(len(row), dtype=bool), (row, col)), shape=(num_nodes, num_nodes))
    merged: IntArray = np.empty((2, matrix.nnz), dtype=np.int64)
    merged[0] = np.repeat(np.arange(num_nodes), np.diff(matrix.indptr))
    merged[1] = matrix.indices
    return torch.from_numpy(merged).to(edge_index.device)


def mask_of(nodes: IntArray, num_nodes: int, where: object) -> BoolArray:
    """Return a bool mask [N] that is true at `nodes`; an error message names `where` they come from."""
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        raise DataError(f"{where} names the nodes {nodes.min()} to {nodes.max()}, but nodes are 0 to {num_nodes - 1}")
    mask = np.zeros(num_nodes, dtype=bool)
    mask[nodes] = True
    return mask


def count_edges(edges: NDArray[Any], num_nodes: int) -> int:
    """Count the undirected edges in `edges` [E, 2], each once, without self-loops."""
    return len(undirected_keys(torch.from_numpy(edges).T, num_nodes))


def label_hint(labels: NDArray[Any]) -> str:
    """Return advice on labels that are not integers, for the end of an error message."""
    if labels.dtype.kind != "f":
        return "number the classes from 0"
    known = labels[np.isfinite(labels)]
    if (known == np.round(known)).all():
        return "convert these whole numbers to integers, with -1 for unknown labels"
    return "a quantity is not a class, so bin it first, for example into low, middle and high"
