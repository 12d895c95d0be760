"""How models are called where people read, in place of the names that the command takes."""

from __future__ import annotations

from collections.abc import Mapping

MODEL_NAMES: Mapping[str, str] = {
    "mlp": "MLP",
    "gcn": "GCN",
    "sage": "GraphSAGE",
    "gat": "GAT",
    "drop-edge": "DropEdge",
    "sdrf": "SDRF",
    "gumbel-mpnn": "Gumbel-MPNN",
}
"""A model that is not here goes by its own name."""
MODEL_COLUMN = "model"
