"""What a graph must be like to be written to a file that can be read again."""

from __future__ import annotations

from torch_geometric.data import Batch, Data

from gumbel_mpnn.errors import DataError


def check_savable(data: Data) -> None:
    """Raise a `DataError` unless `data` is one graph."""
    if isinstance(data, Batch):
        raise DataError("a file holds one graph, not a batch of them: save each graph of its to_data_list()")
