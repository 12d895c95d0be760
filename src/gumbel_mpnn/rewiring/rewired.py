"""Rewiring for any model that takes `(x, edge_index, edge_weight)`, such as a stack of PyG's GCNConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.inputs import check_features
from gumbel_mpnn.nn.replica_rng import replica_seeds
from gumbel_mpnn.rewiring.gradient_checks import ReactionCheck
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.rewiring_model import RewiringModel, own_settings


class Rewired(RewiringModel):
    """Wraps a model and rewires the graph while the model trains: `Rewired(my_gcn, in_channels, out_channels)(data)`.

    The model must use `edge_weight`: PyG's GCNConv does, whereas its SAGEConv and GATConv do not accept one. A model
    whose output does not react to it gets a warning at its first training call. For the backbones of this package, use
    `GumbelMPNN`.

    Add `auxiliary_loss` to your loss: the default scorer, `class-space`, compares class beliefs, and nothing else
    trains the head that predicts them. Without it, edges are scored by the beliefs of an untrained head;
    `scorer="bilinear"` needs none. The prior, which `fit` has in its loss by default, is `gm.regularizers.Prior()`. Set
    `progress` if the temperature should fall.

    Args:
        model: Called as `model(x, edge_index, edge_weight)`.
        in_channels: Number of features per node.
        out_channels: Number of classes.
        seeds: A single seed, such as `seeds=[7]`, for the rewirer's parameters and the graphs drawn in training; drawn
            from torch's global generator by default.
        **changes: Rewiring settings that differ from their defaults, such as `scorer="mixed"`: `scorer`, `channels`,
            `origin`, `keep`, `add`, `sigmoids`, `tau` (constant unless `tau_end` is given), `tau_end`, `hard` and
            `evaluation`. Candidates are those of the data; add regularizers to your loss.
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
        super().__init__(own_settings(changes), replicas=None)
        if self.settings.evaluation == "mean_of_samples":
            raise UserError("Rewired has no evaluation 'mean_of_samples': use 'threshold' or 'expected'")
        self.model = model
        self._reaction_check = ReactionCheck()
        self._add_rewirer(in_channels, out_channels)
        self.seeds = replica_seeds(seeds, 1)
        self._rng: ReplicaRNG | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters of the rewirer; those of the model are left unchanged."""
        self._init_rewirer(self.seeds)

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica, on the device of the model."""
        device = self.rewirer.origin.device
        if self._rng is None or self._rng.device != device:
            self._rng = ReplicaRNG(self.seeds, "train", device)
        return self._rng

    def forward(
        self, x: Tensor | Data, edge_index: PairGraph | Tensor | None = None, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, RewiredGraph]:
        """Output of the model, and the rewired graph for regularizers.

        In training, one graph is drawn. In evaluation, the setting `evaluation` decides which graph is used.

        Args:
            x: Features [N, in], or a `Data`, with candidates if edges may be added.
            edge_index: Edges [2, E], which are treated as undirected, or a `PairGraph`; taken from the `Data` by
                default. For a directed graph, pass `PairGraph.of(data, undirected=False)`.
            edge_weight: Weights [E] of an `edge_index` [2, E]; a `Data` and a `PairGraph` have their own.
        """
        features, graph = self._read(x, edge_index, edge_weight)
        rewired = self._rewired_graph(features, graph)
        weight = WeightedGraph(graph, rewired.weight[0], features.dtype).arc_weight
        dense = check_features(x.x if isinstance(x, Data) else x, self.in_channels, features.dtype)
        out: Tensor = self.model(dense, graph.edge_index, weight)
        if self.training:
            self._reaction_check(out, weight, self.model)
        return out, rewired
