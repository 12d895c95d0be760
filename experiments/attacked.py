"""Graphs with poisoned edges, as data sets: `attacked-cora`, and `attacked-cora:meta-0.25` after an attack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import DatasetSpec, File, specs

META = ("meta-0.05", "meta-0.1", "meta-0.15", "meta-0.2", "meta-0.25")
"""Metattack, which changes this share of the edges to harm the predictions of all nodes."""
NETTACK = ("nettack-1", "nettack-2", "nettack-3", "nettack-4", "nettack-5")
"""Nettack, which changes this many edges for each of its targets, on which models are then tested."""
ATTACKS = ("", *META, *NETTACK)
"""No attack, and every attack."""
_GRAPHS = {
    "attacked-cora": (2_485, 1_433, 7, (5069, 5322, 5567, 5809, 6040, 6246, 5152, 5225, 5304, 5375, 5440)),
    "attacked-citeseer": (2_110, 3_703, 6, (3668, 3851, 4032, 4196, 4375, 4549, 3731, 3794, 3857, 3916, 3963)),
    "attacked-polblogs": (
        *(1_222, 1_222, 2),
        (16_714, 17_349, 17_813, 18_131, 17_794, 17_636, 17_192, 17_652, 18_110, 18_554, 18_978),
    ),
}
"""Nodes, features, classes, and edges after each of the attacks."""


def after(dataset: str, attack: str) -> str:
    """Return the name of a graph after an attack."""
    return f"{dataset}:{attack}" if attack else dataset


def read_attacked(attack: str, paths: Sequence[Path]) -> Data:
    """Read a graph after an attack, with its only split; after nettack, the test nodes are its targets.

    A graph without features has the identity matrix, as in the literature on attacks.
    """
    with np.load(paths[0], allow_pickle=False) as arrays:
        edges = arrays[f"edges_{attack.replace('-', '_')}" if attack else "edges"].astype(np.int64)
        y = torch.from_numpy(arrays["node_labels"].astype(np.int64))
        x = arrays["node_features"] if "node_features" in arrays else np.eye(len(y))
        data = Data(x=torch.from_numpy(x.astype(np.float32)), edge_index=torch.from_numpy(edges).T.contiguous(), y=y)
        for mask in ("train_mask", "val_mask", "test_mask"):
            data[mask] = torch.from_numpy(arrays[mask])[:, None]
        if attack in NETTACK:
            data.test_mask = torch.zeros_like(data.test_mask)
            data.test_mask[torch.from_numpy(arrays["nettack_targets"].astype(np.int64))] = True
    return data


# They have no random splits: the attacks were made against the split of the file.
specs.update(
    {
        after(name, attack): DatasetSpec(
            name,
            nodes,
            num_edges,
            features,
            classes,
            protocols=("pro-gnn",),
            source="github.com/danielzuegner/nettack, split and attacks github.com/ChandlerBang/Pro-GNN",
            licence="none stated",
            read=partial(read_attacked, attack),
            files=(File(f"attacked/{name.removeprefix('attacked-')}.npz"),),
        )
        for name, (nodes, features, classes, edges) in _GRAPHS.items()
        for attack, num_edges in zip(ATTACKS, edges, strict=True)
    }
)
