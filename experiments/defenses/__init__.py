"""Defenses against wrong edges that Gumbel-MPNN is compared with; importing them registers their models."""

from experiments.defenses.changed_graphs import JaccardModel, KNNModel
from experiments.defenses.gnn_guard import GNNGuard
from experiments.defenses.soft_median import SoftMedian

__all__ = ["GNNGuard", "JaccardModel", "KNNModel", "SoftMedian"]
