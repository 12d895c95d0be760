"""A small graph with poisoned edges, in a file of the format of the published ones."""

from pathlib import Path

import numpy as np

from gumbel_mpnn.data.attacked import ATTACKS, read_attacked
from gumbel_mpnn.data.spec import DatasetSpec, File, Form

NODES, EDGES = 12, 12
PATH = "attacked/small.npz"
SPEC = DatasetSpec(
    "attacked-small",
    "accuracy",
    ("pro-gnn",),
    NODES,
    EDGES,
    NODES,
    2,
    source="this test",
    licence="none",
    forms=(Form((File(PATH),), read_attacked),),
    attacks=ATTACKS,
)


def arrays(**changes):
    """Twelve nodes in a circle without features; attack k joins node 0 to k + 2. None leaves an array out."""
    nodes = np.arange(NODES)
    circle = np.stack([nodes, (nodes + 1) % NODES], axis=1).astype(np.int32)
    found = {
        "node_labels": nodes % 2,
        "edges": circle,
        "train_mask": nodes < 4,
        "val_mask": (nodes >= 4) & (nodes < 8),
        "test_mask": nodes >= 8,
        "nettack_targets": np.array([9, 11]),
    }
    for k, attack in enumerate(ATTACKS):
        found[f"edges_{attack.replace('-', '_')}"] = np.concatenate([circle, [[0, k + 2]]]).astype(np.int32)
    return {name: array for name, array in (found | changes).items() if array is not None}


def write(root: Path, **changes) -> Path:
    """Write the file into a data root; returns the root."""
    path = root / PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays(**changes))
    return root
