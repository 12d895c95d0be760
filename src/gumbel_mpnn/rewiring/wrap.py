"""`Rewired`: rewires the graph of any model that is called as `(x, edge_index, edge_weight)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import Backbone, ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.features import check_features
from gumbel_mpnn.nn.replica import replica_seeds
from gumbel_mpnn.rewiring.gumbel_mpnn import GumbelMPNN, own_settings
from gumbel_mpnn.rewiring.own_loop import ReactionCheck
from gumbel_mpnn.util.errors import UserError


class Rewired(GumbelMPNN):
    """Wraps a model and rewires the graph while the model trains: `Rewired(my_gcn, in_channels, out_channels)(data)`.

    The model must use `edge_weight`: PyG's GCNConv does, whereas its SAGEConv and GATConv do not accept one. A model
    whose output does not react to it gets a warning at its first training call. For the backbones of this package, use
    `GumbelMPNN`, whose methods and attributes this class has.

    As there, add `auxiliary_loss` to your loss, and set `progress` if the temperature should fall.

    Args:
        model: Called as `model(x, edge_index, edge_weight)`; returns logits [N, out_channels].
        in_channels: Number of features per node.
        out_channels: Number of classes.
        seeds: A single seed, such as `seeds=[7]`, for the rewirer's parameters and the graphs drawn in training; drawn
            from torch's global generator by default.
        **changes: Rewiring settings that differ from their defaults, such as `scorer="mixed"`: `scorer`, `beliefs`,
            `origin`, `keep`, `add`, `tau` (constant unless `tau_end` is given), `tau_end`, `hard` and `evaluation`.
            Candidates are those of the data; add regularizers to your loss.
    """

    def __init__(
        self,
        model: nn.Module,
        in_channels: int,
        out_channels: int,
        *,
        seeds: Sequence[int] | None = None,
        **changes: Any,
    ) -> None:
        wrapped = WrappedModel(model, in_channels, out_channels, replica_seeds(seeds, 1))
        super().__init__(cast(Backbone, wrapped), rewiring=own_settings(changes))
        self._rng: ReplicaRNG | None = None

    def _made(self, backbone: Backbone | str, options: Mapping[str, Any]) -> Backbone:
        return cast(Backbone, backbone)

    def _read(self, x: Any, graph: Any, edge_weight: Tensor | None = None) -> tuple[Tensor | SparseFeatures, PairGraph]:
        _, pairs = super()._read(x, graph, edge_weight)
        x = x.x if isinstance(x, Data) else x  # the model gets the features as they are, not in sparse format
        return check_features(x, self.in_channels, self.rewirer.origin.dtype), pairs

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, on the device of the rewirer."""
        device = self.rewirer.origin.device
        if self._rng is None or self._rng.device != device:
            self._rng = ReplicaRNG(self.backbone.seeds, "train", device)
        return self._rng

    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        return_graph: bool = True,
    ) -> Any:
        """Output of the model and the rewired graph, for regularizers; takes the arguments of `GumbelMPNN`."""
        return super().forward(x, edge_index, edge_weight, return_graph=return_graph)


class WrappedModel(nn.Module):
    """A model of the user in the place of a backbone."""

    replicas = None

    def __init__(self, model: nn.Module, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.model, self.in_channels, self.out_channels, self.seeds = model, in_channels, out_channels, seeds
        self._reaction_check = ReactionCheck()

    def reset_parameters(self) -> None:
        """Leave the parameters of the model as they are."""

    def compute(self, x: Tensor | SparseFeatures, graph: WeightedGraph) -> Tensor:
        """Output of the model, [1, N, C]."""
        weight = graph.arc_weight.view(-1)
        out: object = self.model(x, graph.graph.edge_index, weight)
        if not isinstance(out, Tensor):
            raise UserError(f"{type(self.model).__name__} must return a tensor [N, C], not {type(out).__name__}")
        if self.training:
            self._reaction_check(out, weight, self.model)
        return out[None]
