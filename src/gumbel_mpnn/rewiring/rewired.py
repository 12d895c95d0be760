"""A rewirer around any model that takes `(x, edge_index, edge_weight)`, such as a stack of PyG's GCNConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.replica_rng import replica_seeds
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.rewiring_model import RewiringModel, own_settings


class Rewired(RewiringModel):
    """`model` on a graph that is rewired while it trains: `Rewired(my_gcn, in_channels, out_channels)(data)`.

    The model must make good use of `edge_weight`: PyG's GCNConv does, its SAGEConv and GATConv do not take one, and
    our own backbones are wrapped already as `GumbelMPNN`. Add `auxiliary_loss` to your loss, and set `progress` if the
    temperature is to fall.

    Args:
        model: Called as `model(x, edge_index, edge_weight)`.
        in_channels: Number of features of a node.
        out_channels: Number of classes.
        seeds: One, of which the rewirer's parameters and the graphs of training are drawn, as `seeds=[7]`; drawn from
            torch's global generator when not given.
        **changes: Rewiring settings, as `scorer="mixed"`, laid over the defaults: `scorer`, `channels`, `origin`,
            `keep`, `add`, `tau` (constant without a `tau_end`), `tau_end`, `hard` and `evaluation`. Candidates are the
            data's, regularizers are added to your loss.
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
            raise UserError("Rewired evaluates on the 'threshold' or the 'expected' graph, not on a 'mean_of_samples'")
        self.model = model
        self._add_rewirer(in_channels, out_channels)
        self.seeds = replica_seeds(seeds, 1)
        self._rng: ReplicaRNG | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rewirer's parameters anew; those of the model are its own."""
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
        """The model's output, and the graph it was made on, for regularizers: one draw in training.

        Args:
            x: Features [N, in], or a whole `Data`, with candidates if edges may be added.
            edge_index: The graph: edges [2, E], to drop some of, or a `PairGraph`; that of the `Data` by default, as
                undirected: for a directed graph give `PairGraph.of(data, undirected=False)`.
            edge_weight: With edges a weight for each of them, [E]; a `Data` and a `PairGraph` bring their own.
        """
        features, graph = self._read(x, edge_index, edge_weight)
        rewired = self._rewired(features, graph)
        weight = WeightedGraph(graph, rewired.weight[0], features.dtype).arc_weight
        out: Tensor = self.model(features, graph.edge_index, weight)
        return out, rewired
