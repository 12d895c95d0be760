"""Convert the arguments of a model, in any form that PyG allows, to features, graph and pair weights."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.features import SparseFeatures, as_features

LARGE = 2**20
"""Entries of features below which the dense format is fast enough."""


def model_input(
    x: Tensor | SparseFeatures | Data,
    graph: PairGraph | Tensor | None = None,
    weight: Tensor | None = None,
    *,
    in_channels: int,
    dtype: torch.dtype,
    candidates: bool = False,
) -> tuple[Tensor | SparseFeatures, PairGraph, Tensor | None]:
    """Features, graph and pair weights of one call; raises a `UserError` if they do not fit together.

    Features are [N, in] (dense or sparse), or those of a `Data`. The graph is a `PairGraph`, or an `edge_index` [2, E],
    which is treated as undirected; that of the `Data`, on request with its candidates, if it is None. Weights are [E]
    with an `edge_index`, [R, P] or [P] with a `PairGraph`.
    """
    if isinstance(x, Data):
        graph = PairGraph.of(x, candidates=candidates) if graph is None else graph
        x = features_of(x, in_channels, dtype)
    x = check_features(x, in_channels, dtype)
    if isinstance(graph, Tensor):
        graph = PairGraph.of(Data(edge_index=graph, edge_weight=weight, num_nodes=x.shape[-2]))
        weight = None
    if not isinstance(graph, PairGraph):
        raise UserError(f"a graph is needed: a PairGraph or an edge_index [2, E], not {_kind(graph)}")
    if x.shape[-2] != graph.num_nodes:
        raise UserError(f"there are features for {x.shape[-2]} nodes, but the graph has {graph.num_nodes}")
    return x, graph, weight


def features_of(data: Data, in_channels: int, dtype: torch.dtype) -> Tensor | SparseFeatures:
    """Features of a graph that fit a model; large ones on a CPU in sparse format if that is faster, converted once."""
    given, x = data.x, check_features(data.x, in_channels, dtype)
    if not isinstance(x, Tensor) or x.device.type != "cpu" or x.dim() != 2 or x.numel() < LARGE:
        return x
    if given.requires_grad or given.is_inference() or given.dtype != dtype:
        return x
    found = _sparse.get(given, [given], lambda: _if_sparse(as_features(given)))
    return x if found is None else found


def _if_sparse(x: Tensor | SparseFeatures) -> SparseFeatures | None:
    return x if isinstance(x, SparseFeatures) else None  # a cached tensor would keep itself alive


def check_features(x: object, in_channels: int, dtype: torch.dtype) -> Tensor | SparseFeatures:
    """Check that features fit a model of this width and dtype, and make torch's sparse tensors dense."""
    if x is None:
        raise DataError("this graph has no features: give it data.x, floats of shape [N, F]")
    if not isinstance(x, Tensor | SparseFeatures):
        raise UserError(f"features are a tensor [N, {in_channels}] or a Data, not {_kind(x)}")
    if isinstance(x, Tensor) and x.layout is not torch.strided:
        x = x.to_dense()
    if len(x.shape) not in (2, 3) or x.shape[-1] != in_channels:
        raise UserError(f"the features must have the shape [N, {in_channels}] for this model, not {list(x.shape)}")
    if x.dtype != dtype and not (x.dtype.is_floating_point and torch.is_autocast_enabled(x.device.type)):
        raise UserError(f"the features are {x.dtype} where the model's parameters are {dtype}: give x.to({dtype})")
    return x


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


_sparse: TensorCache[SparseFeatures | None] = TensorCache()
