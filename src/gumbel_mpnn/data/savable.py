"""What a graph must be like to be written to a file that can be read again."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor
from torch_geometric.data import Batch, Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data.validate import check_label_form
from gumbel_mpnn.graph import check_edges, edge_index_of


def check_edges_to_save(data: Data, columns: Iterable[str]) -> None:
    """Raise a `DataError` unless `data` is one graph, whose edges join its nodes; `columns` are known of each edge."""
    if isinstance(data, Batch):
        raise DataError("a file holds one graph, not a batch of them: save each graph of its to_data_list()")
    edge_index = edge_index_of(data)
    num_nodes = count_nodes(data)
    check_edges(edge_index, num_nodes=num_nodes)
    for name in columns:
        value: Tensor | None = data.get(name)
        if value is not None and value.shape != edge_index.shape[1:]:
            raise DataError(f"{name} must have shape [{edge_index.shape[1]}], not {list(value.shape)}")
    ids = data.get("node_ids")
    if ids is not None and len(ids) != num_nodes:
        raise DataError(f"there are {len(ids)} node_ids for {num_nodes} nodes")


def check_nodes_to_save(data: Data) -> None:
    """Raise a `DataError` unless features, labels and masks of `data`, where it has any, go with its nodes."""
    num_nodes = count_nodes(data)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        value: Tensor | None = data.get(name)
        if value is not None and (value.dim() == 0 or value.shape[0] != num_nodes):
            raise DataError(f"{name} must have a row for each of {num_nodes} nodes, but has shape {list(value.shape)}")
    if data.get("x") is not None and data.x.dim() != 2:
        raise DataError(f"the features x must have shape [N, F], not {list(data.x.shape)}")
    if data.get("y") is not None:
        check_label_form(data.y)
        classes = data.get("class_names")
        if classes and num_nodes and int(data.y.max()) >= len(classes):
            raise DataError(f"there are labels up to {int(data.y.max())}, but class_names for {len(classes)} classes")


def count_nodes(data: Data) -> int:
    """How many nodes there are; of a graph that has labels and edges alone, PyG would not count the labels."""
    if data.get("y") is None or data.get("x") is not None or "num_nodes" in data:
        return int(data.num_nodes or 0)
    ends = edge_index_of(data)
    return max(data.y.shape[0] if data.y.dim() else 0, int(ends.max()) + 1 if ends.numel() else 0)
