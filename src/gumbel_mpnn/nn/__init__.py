"""Layers and models with a replica axis."""

from gumbel_mpnn.nn.backbones import (
    APPNP,
    GAT,
    GCN,
    MLP,
    Backbone,
    BackboneModel,
    GraphSAGE,
    TrainableModel,
    backbones,
    models,
)
from gumbel_mpnn.nn.convs import GCNConv
from gumbel_mpnn.nn.features import Features, SparseFeatures, as_features
from gumbel_mpnn.nn.layers import linear_sum
from gumbel_mpnn.nn.replica import ReplicaRNG

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "MLP",
    "Backbone",
    "BackboneModel",
    "Features",
    "GCNConv",
    "GraphSAGE",
    "ReplicaRNG",
    "SparseFeatures",
    "TrainableModel",
    "as_features",
    "backbones",
    "linear_sum",
    "models",
]
