"""Tables that come with scikit-learn, as graphs without edges."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import MissingDataError
from gumbel_mpnn.data.raw import set_masks
from gumbel_mpnn.data.splits import random_masks

PROTOCOL = "random-48-32-20"


def bundled_table(name: str) -> Data:
    """Read the table `wine`, `breast-cancer` or `digits`: a node for each row, and ten random splits.

    Columns have different units: train with `data.features=standardized`.
    """
    try:
        from sklearn import datasets
    except ImportError:
        raise MissingDataError(f"the table {name!r} comes with scikit-learn: pip install scikit-learn") from None
    table = getattr(datasets, f"load_{name.replace('-', '_')}")()
    data = Data(
        x=torch.from_numpy(table.data).float(),
        y=torch.from_numpy(table.target).long(),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
    )
    set_masks(data, random_masks(data.y, PROTOCOL))
    data.name, data.metric, data.protocol = name, "accuracy", PROTOCOL
    return data
