"""GumbelMPNN: a message-passing network on a graph that is rewired while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, overload

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.data import Data

from gumbel_mpnn.config import RewiringSettings, rewiring_settings
from gumbel_mpnn.errors import UserError
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import SparseFeatures, Streams, backbones
from gumbel_mpnn.nn.loss import cross_entropy
from gumbel_mpnn.nn.modules import ReplicaModule
from gumbel_mpnn.rewiring.beliefs import BeliefHead
from gumbel_mpnn.rewiring.decoys import Decoys, Flood
from gumbel_mpnn.rewiring.regularizers import Agreement, Degree, Prior, Regularizer, regularizers
from gumbel_mpnn.rewiring.rewired import RewiredGraph, as_data
from gumbel_mpnn.rewiring.rewirer import Rewirer
from gumbel_mpnn.rewiring.scorers import NodeView


class GumbelMPNN(ReplicaModule):
    """A backbone and the rewirer that chooses its edges, trained together; all arguments but the first go by name.

    Args:
        in_channels: Number of features of a node.
        out_channels: Number of classes.
        backbone: `gcn`, `sage`, `gat` or `mlp`.
        hidden_channels: Width of every layer of the backbone.
        num_layers: Number of its layers before the head.
        dropout: Share of its activations dropped after every layer.
        norm: `layer`, `batch` or `none`.
        residual: Add a linear map of a layer's input to its output.
        input_layer: Begin with a linear map to `hidden_channels` and dropout.
        input_dropout: Share of the features dropped.
        heads: Of `gat`, which shares out `hidden_channels` among them; the other backbones pass it over.
        replicas: Train R models at once: the output is [R, N, out]; None is one model with output [N, out].
        seeds: One for each replica; drawn from torch's global generator when not given.
        rewiring: How the graph is rewired.
        **settings: Single settings of `RewiringSettings`, as `tau=0.5`, laid over its defaults; not together with
            `rewiring`. Options that only a backbone of one's own has go here too.
    """

    rewires: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        *,
        out_channels: int,
        backbone: str = "gcn",
        hidden_channels: int = 256,
        num_layers: int = 2,
        dropout: float = 0.5,
        norm: str = "none",
        residual: bool = False,
        input_layer: bool = False,
        input_dropout: float = 0.0,
        heads: int = 1,
        replicas: int | None = None,
        seeds: Sequence[int] | None = None,
        rewiring: RewiringSettings | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        options = {
            "hidden_channels": hidden_channels,
            "num_layers": num_layers,
            "dropout": dropout,
            "norm": norm,
            "residual": residual,
            "input_layer": input_layer,
            "input_dropout": input_dropout,
            "heads": heads,
            **settings,
        }
        known, of_all = backbones.defaults(backbone), backbones.all_defaults()
        changes = {name: value for name, value in settings.items() if name not in of_all}
        if rewiring is not None and changes:
            raise UserError(f"give {', '.join(changes)} within rewiring, or no rewiring but single settings")
        self.settings = rewiring if rewiring is not None else rewiring_settings(changes)
        self.backbone = backbones[backbone](
            in_channels,
            out_channels=out_channels,
            replicas=replicas,
            seeds=seeds,
            **{name: value for name, value in options.items() if name in known},
        )
        count = replicas or 1
        self.rewirer = Rewirer(in_channels, out_channels, count, self.settings)
        needs_head = self.rewirer.scorer.uses_beliefs and self.settings.beliefs == "features"
        self.belief_head = BeliefHead(count, in_channels, out_channels) if needs_head else None
        self.regularizers = _make_regularizers(self.settings)
        self.agreement = Agreement(self.settings.agreement)
        self._evaluation_streams: Streams | None = None
        self._decoyed: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew from the replicas' seeds."""
        self.backbone.reset_parameters()
        streams = Streams(self.backbone.seeds, "init rewiring")
        for part in (self.rewirer, self.belief_head):
            if part is not None:
                part.draw_all(streams)

    @property
    def streams(self) -> Streams:
        """The random streams of training."""
        return self.backbone.streams

    @overload
    def forward(
        self, x: Tensor | SparseFeatures | Data, graph: PairGraph | None = ..., return_graph: Literal[False] = ...
    ) -> Tensor: ...
    @overload
    def forward(
        self, x: Tensor | SparseFeatures | Data, graph: PairGraph | None = ..., *, return_graph: Literal[True]
    ) -> tuple[Tensor, RewiredGraph]: ...
    def forward(
        self, x: Tensor | SparseFeatures | Data, graph: PairGraph | None = None, return_graph: bool = False
    ) -> Tensor | tuple[Tensor, RewiredGraph]:
        """Logits of every node, and the graph they were made on if asked for.

        In training one graph is drawn; in evaluation the graph is the one that `evaluation` names.

        Args:
            x: Features [N, in] (dense or sparse), or a whole `Data` with candidates.
            graph: The pairs; taken from the `Data` where one is given.
            return_graph: Whether to give the rewired graph too.
        """
        if isinstance(x, Data):
            graph = PairGraph.of(x) if graph is None else graph
            x = x.x
        if graph is None:
            raise TypeError("a graph is needed: a PairGraph, or a Data in place of the features")
        theta = self.rewirer(self._view(x, graph)[0], graph)
        rewired = (
            self.rewirer.sampled(theta, graph, self.streams, 1.0)
            if self.training
            else self.rewirer.expected(theta, graph)
        )
        if not self.training and self.settings.evaluation == "mean_of_samples":
            logits = self._mean_of_samples(x, theta, graph)
        else:
            logits = self._on(x, rewired)
        logits = logits if self.backbone.replicas is not None else logits.squeeze(0)
        return (logits, rewired) if return_graph else logits

    def training_loss(
        self, x: Tensor | SparseFeatures, graph: PairGraph, y: Tensor, train_mask: Tensor, progress: Tensor
    ) -> Tensor:
        """Cross-entropy on drawn graphs plus the weighted penalties, for each replica, [R]."""
        flood = self._decoys(graph).draw(self.streams) if self.settings.decoys else None
        graph = graph if flood is None else flood.decoys.graph
        nodes, belief_logits = self._view(x, graph, flood)
        theta = self.rewirer(nodes, graph)
        loss: Tensor = theta.new_zeros(len(theta))
        if belief_logits is not None:
            loss = loss + cross_entropy(belief_logits, y, train_mask)
        if flood is not None:
            loss = loss + self.settings.decoy_weight * flood.loss(theta)
        outputs = []
        for _ in range(self.settings.samples):
            drawn = self.rewirer.sampled(theta, graph, self.streams, progress)
            if flood is not None:
                drawn = replace(drawn, weight=drawn.weight * flood.present)
            logits = self._on(x, drawn)
            outputs.append(logits)
            each = cross_entropy(logits, y, train_mask)
            for regularizer in self.regularizers:
                each = each + regularizer.weighted(logits, drawn, y, train_mask)
            loss = loss + each / self.settings.samples
        if self.agreement.weight and len(outputs) > 1:
            ramp = self.settings.agreement_ramp
            grown = (progress / ramp).clamp(max=1) if ramp else 1.0
            loss = loss + grown * self.agreement.weighted(torch.stack(outputs), drawn, y, train_mask)
        return loss

    @torch.no_grad()
    def pair_probability(self, x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
        """How likely every pair is to be an edge, as in evaluation, [R, P]."""
        was_training = self.training
        self.eval()
        theta: Tensor = self.rewirer(self._view(x, graph)[0], graph)
        self.train(was_training)
        return theta.sigmoid()

    def rewire(self, data: Data, threshold: float = 0.5) -> Data:
        """The learned graph: `edge_index`, `edge_weight` (probability) and `edge_origin`, also for unseen graphs.

        Args:
            data: A graph, with candidates if edges may be added.
            threshold: Pairs less likely than this are left out; 0 keeps all.
        """
        graph = PairGraph.of(data)
        return as_data(graph, self.pair_probability(data.x, graph).mean(0), data, threshold)

    def _decoys(self, graph: PairGraph) -> Decoys:
        """The graph with decoys, laid out once."""
        if graph not in self._decoyed:
            self._decoyed[graph] = Decoys.among(graph, self.settings.decoys)
        kept: Decoys = self._decoyed[graph]
        return kept

    def _view(
        self, x: Tensor | SparseFeatures, graph: PairGraph, flood: Flood | None = None
    ) -> tuple[NodeView, Tensor | None]:
        """What the scorer may look at, and the logits of the belief head where there is one."""
        given = (graph.is_original if flood is None else flood.given).to(x.dtype)
        if self.belief_head is not None:
            logits: Tensor = self.belief_head(x, self.streams)
            return NodeView(x, logits.detach().softmax(-1), given), logits
        if self.rewirer.scorer.uses_beliefs:
            return NodeView(x, self._beliefs_of_backbone(x, graph, given), given), None
        nothing = torch.empty(len(self.backbone.seeds), x.shape[0], 0, dtype=x.dtype, device=x.device)
        return NodeView(x, nothing, given), None

    @torch.no_grad()
    def _beliefs_of_backbone(self, x: Tensor | SparseFeatures, graph: PairGraph, given: Tensor) -> Tensor:
        """Class probabilities of the backbone on the given edges."""
        was_training = self.backbone.training
        self.backbone.eval()
        beliefs = self.backbone.compute(x, WeightedGraph(graph, given, x.dtype)).softmax(-1)
        self.backbone.train(was_training)
        return beliefs

    def _on(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> Tensor:
        return self.backbone.compute(x, WeightedGraph(rewired.graph, rewired.weight, x.dtype))

    def _mean_of_samples(self, x: Tensor | SparseFeatures, theta: Tensor, graph: PairGraph) -> Tensor:
        """Logarithm of the mean prediction over several graphs, the same graphs at every evaluation."""
        if self._evaluation_streams is None or self._evaluation_streams.device != theta.device:
            self._evaluation_streams = Streams(self.backbone.seeds, "evaluate", theta.device)
        self._evaluation_streams.rewind()
        total = theta.new_zeros(())
        for _ in range(self.settings.evaluation_samples):
            drawn = self.rewirer.sampled(theta, graph, self._evaluation_streams, 1.0)
            total = total + self._on(x, drawn).softmax(-1)
        return (total / self.settings.evaluation_samples).clamp(min=1e-12).log()

    def __repr__(self) -> str:
        return f"GumbelMPNN({self.backbone}, scorer={self.settings.scorer!r}, candidates={self.settings.candidates!r})"


def _make_regularizers(settings: RewiringSettings) -> list[Regularizer]:
    """The penalties that the settings ask for, with their weights."""
    chosen: list[Regularizer] = []
    if settings.regularizer != "none":
        if regularizers.canonical(settings.regularizer) in ("prior", "agreement"):
            raise UserError(f"set rewiring.{settings.regularizer} to its weight rather than naming it as regularizer")
        if settings.regularizer_weight:
            chosen.append(_named(settings))
    if settings.prior:
        chosen.append(Prior(settings.prior, keep=settings.keep, add=settings.add))
    return chosen


def _named(settings: RewiringSettings) -> Regularizer:
    """The regularizer that the settings name."""
    kind = regularizers[settings.regularizer]
    if issubclass(kind, Degree):
        return kind(settings.regularizer_weight, target=settings.target_degree)
    return kind(settings.regularizer_weight)
