"""A rewirer around any model that takes `(x, edge_index, edge_weight)`, such as a stack of PyG's GCNConv."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.config import rewiring_settings
from gumbel_mpnn.errors import UserError
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import Streams
from gumbel_mpnn.nn.loss import cross_entropy
from gumbel_mpnn.rewiring.beliefs import BeliefHead
from gumbel_mpnn.rewiring.rewired import RewiredGraph, as_data
from gumbel_mpnn.rewiring.rewirer import Rewirer
from gumbel_mpnn.rewiring.scorers import NodeView

OF_THE_REWIRER = ("scorer", "channels", "origin", "keep", "add", "tau", "tau_end", "hard", "evaluation")
"""Settings that mean something here; the others are those of `fit`, and of what is added to a loss."""


class Rewired(nn.Module):
    """`model` on a graph that is rewired while it trains: `Rewired(my_gcn, in_channels, out_channels)(data)`.

    The model must make good use of `edge_weight`: PyG's GCNConv does, its SAGEConv and GATConv do not take one, and
    our own backbones are wrapped already as `GumbelMPNN`.

    Args:
        model: Called as `model(x, edge_index, edge_weight)`.
        in_channels: Number of features of a node.
        out_channels: Number of classes.
        **changes: Rewiring settings, as `scorer="mixed"`, laid over the defaults: those named in `OF_THE_REWIRER`.
            Candidates are the data's, regularizers are added to your loss.
    """

    def __init__(self, model: nn.Module, in_channels: int, out_channels: int, **changes: Any) -> None:
        super().__init__()
        self.settings = rewiring_settings(changes)
        if foreign := [name for name in changes if name not in OF_THE_REWIRER]:
            raise UserError(
                f"{foreign[0]} has no effect in a loop of your own; known here: {', '.join(OF_THE_REWIRER)}"
            )
        if self.settings.evaluation == "mean_of_samples":
            raise UserError("Rewired evaluates on the 'threshold' or the 'expected' graph, not on a 'mean_of_samples'")
        self.model = model
        self.rewirer = Rewirer(in_channels, out_channels, 1, self.settings)
        uses_beliefs = self.rewirer.scorer.uses_beliefs
        self.belief_head = BeliefHead(1, in_channels, out_channels) if uses_beliefs else None
        self.seed = int(torch.randint(2**62, ()))
        self.progress = 1.0
        """Share of the epochs done, for a temperature that falls; set it in your loop."""
        self._streams: Streams | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rewirer's parameters anew; those of the model are its own."""
        streams = Streams([self.seed], "init rewiring")
        for part in (self.rewirer, self.belief_head):
            if part is not None:
                part.draw_all(streams)

    def forward(self, data: Data) -> tuple[Tensor, RewiredGraph]:
        """The model's output, and the graph it was made on, for regularizers: one draw in training."""
        graph = PairGraph.of(data)
        theta = self.rewirer(self._view(data), graph)
        rewired = (
            self.rewirer.sampled(theta, graph, self._training_streams(theta.device), self.progress)
            if self.training
            else self.rewirer.expected(theta, graph)
        )
        weight = graph.arc_weight(rewired.weight[0], data.x)
        out: Tensor = self.model(data.x, graph.edge_index, weight)
        return out, rewired

    def auxiliary_loss(self, data: Data) -> Tensor:
        """To be added to the loss: it trains the head whose class beliefs some scorers look at; else 0."""
        if self.belief_head is None:
            return torch.zeros((), device=data.x.device)
        logits: Tensor = self.belief_head(data.x, self._training_streams(data.x.device))
        return cross_entropy(logits, data.y, data.train_mask[None])[0]

    @torch.no_grad()
    def rewire(self, data: Data, threshold: float = 0.5) -> Data:
        """The learned graph, as `GumbelMPNN.rewire` gives it."""
        was_training, graph = self.training, PairGraph.of(data)
        self.eval()
        probability = self.rewirer(self._view(data), graph).sigmoid()[0]
        self.train(was_training)
        return as_data(graph, probability, data, threshold)

    def _view(self, data: Data) -> NodeView:
        given = PairGraph.of(data).is_original.to(data.x.dtype)
        if self.belief_head is None:
            return NodeView(data.x, data.x.new_empty(1, len(data.x), 0), given)
        logits = self.belief_head(data.x, self._training_streams(data.x.device))
        return NodeView(data.x, logits.detach().softmax(-1), given)

    def _training_streams(self, device: torch.device) -> Streams:
        if self._streams is None or self._streams.device != device:
            self._streams = Streams([self.seed], "train", device)
        return self._streams
