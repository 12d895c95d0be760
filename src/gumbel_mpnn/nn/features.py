"""Input of a model: node features, dense, sparse or standardized, with the graph and its weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, SparseLayout
from gumbel_mpnn.util.errors import DataError, UserError
from gumbel_mpnn.util.tensors import TensorCache, coalesced

SPARSE_BELOW = {"cpu": 0.25, "cuda": 0.04}
"""Share of non-zeros below which the sparse format is used. On a CPU a random matrix of PubMed's size with 10 %
non-zeros takes 8 ms instead of 35 ms, timed once. The value for CUDA is an estimate, not measured."""
LARGE = 2**20
"""Entries of features below which the dense format is fast enough."""


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A sparse feature matrix [N, F]."""

    layout: SparseLayout
    values: Tensor
    """Values of the non-zeros, [nnz] or [R, nnz]."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of nodes and features, N and F."""
        return self.layout.shape

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the features."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Device of the features."""
        return self.values.device

    def __getitem__(self, nodes: Tensor) -> SparseFeatures:
        """The features of some nodes, int64 [n], as of a dense matrix."""
        chosen, (_, width) = self.layout.positions_in(nodes), self.shape
        row = torch.arange(len(nodes), device=nodes.device).repeat_interleave(self.layout.rowptr.diff()[nodes])
        layout = SparseLayout.build(row, self.layout.col[chosen].long(), len(nodes), width)
        return SparseFeatures(layout, self.values[..., chosen])

    def to_dense(self) -> Tensor:
        """The features as a dense matrix, [N, F]."""
        dense = self.values.new_zeros(self.shape)
        dense[self.layout.row.long(), self.layout.col.long()] = self.values
        return dense

    def to(self, device: torch.device | str) -> SparseFeatures:
        """Copy the features to another device."""
        return SparseFeatures(self.layout.to(device), self.values.to(device))


Features = Tensor | SparseFeatures


def as_features(x: Tensor, device: torch.device | str = "cpu") -> Features:
    """Move `x`, dense or sparse, to `device`, in sparse format if that makes the first layer faster."""
    nonzeros = int(torch.count_nonzero(x if x.layout is torch.strided else coalesced(x).values()))
    if nonzeros >= SPARSE_BELOW.get(torch.device(device).type, 0) * x.numel():
        return x.to_dense().to(device)
    sparse = coalesced(x)
    stored = sparse.values() != 0
    (row, col), values = sparse.indices()[:, stored], sparse.values()[stored]
    return SparseFeatures(SparseLayout.build(row, col, *x.shape), values).to(device)


class Standardize(nn.Module):
    """Standardizes features by statistics of each replica, which are part of the state and so saved with it."""

    mean: Tensor
    scale: Tensor

    def __init__(self, replicas: int, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(replicas, 1, num_features, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(replicas, 1, num_features, dtype=torch.float64))

    @torch.no_grad()
    def fit(self, x: Tensor, train_mask: Tensor) -> None:
        """Take the statistics of `x` [N, F] over the training nodes [R, N] of each replica."""
        for replica, mask in enumerate(train_mask):
            self.mean[replica, 0], self.scale[replica, 0] = column_statistics(x[mask])

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """[N, F] → [R, N, F], computed in float64, one replica at a time to save memory."""
        out = x.new_empty(len(self.mean), *x.shape)
        for replica, part in enumerate(out):
            part.copy_((x.double() - self.mean[replica]) / self.scale[replica])
        return out


def column_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (of the population, 1 for a constant column) of each column of `x`, float64 [F]."""
    x = x.double()
    constant = (x == x[:1]).all(0)
    std = x.std(0, correction=0)
    return torch.where(constant, x[0], x.mean(0)), torch.where(constant | (std == 0), 1.0, std)


def model_input(
    x: Features | Data,
    graph: PairGraph | Tensor | None = None,
    weight: Tensor | None = None,
    *,
    in_channels: int,
    dtype: torch.dtype,
    candidates: bool = False,
) -> tuple[Features, PairGraph, Tensor | None]:
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


def features_of(data: Data, in_channels: int, dtype: torch.dtype) -> Features:
    """Features of a graph that fit a model; large ones on a CPU in sparse format if that is faster, converted once."""
    given, x = data.x, check_features(data.x, in_channels, dtype)
    if not isinstance(x, Tensor) or x.device.type != "cpu" or x.dim() != 2 or x.numel() < LARGE:
        return x
    if given.requires_grad or given.is_inference() or given.dtype != dtype:
        return x

    def converted() -> SparseFeatures | None:  # not a tensor, which would keep itself alive
        found = as_features(given)
        return found if isinstance(found, SparseFeatures) else None

    return _sparse.get(given, [given], converted) or x


def check_features(x: object, in_channels: int, dtype: torch.dtype) -> Features:
    """Check that features fit a model of this width and dtype, and make torch's sparse tensors dense."""
    if x is None:
        raise DataError("this graph has no features: give it data.x, floats of shape [N, F]")
    if not isinstance(x, Features):
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
