"""GumbelMPNN: a message-passing network on a graph that is rewired while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, overload

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures, backbones, make_backbone
from gumbel_mpnn.nn.modules import cross_entropy, evaluating
from gumbel_mpnn.rewiring.decoys import Decoys
from gumbel_mpnn.rewiring.regularizers import Degree, Prior, Regularizer, agreement, regularizers
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.rewiring_model import OF_THE_REWIRER, RewiringModel, own_settings

OF_SAMPLING = ("beliefs", "evaluation_samples")
"""Settings that act in a loop of one's own beside those of the rewirer."""
SETTINGS = frozenset(field.name for field in fields(RewiringSettings))


class GumbelMPNN(RewiringModel):
    """A backbone and the rewirer that chooses its edges, trained together; all arguments but the first go by name.

    In a loop of your own add `auxiliary_loss` to your loss, and set `progress` if the temperature is to fall. Graphs
    and dropout are drawn from the model's own `rng`, whose `get_state` and `set_state` save and rewind them; what
    computes a pass twice, as `torch.utils.checkpoint` does, draws another graph the second time.

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
        seeds: One for each replica; drawn from torch's global generator when not given. Of those the graphs of a
            `mean_of_samples` are drawn, so that they are part of such a model's state.
        rewiring: How the graph is rewired, all settings at once as `fit` has them; what is about training in them
            (penalties, samples, decoys) acts through `training_loss`, not through `forward`.
        **settings: Single settings of `RewiringSettings` that act in a loop of your own, as `tau=0.5`, laid over its
            defaults; not together with `rewiring`. Options that only a backbone of one's own has go here too.
    """

    rewires: ClassVar[bool] = True
    evaluation_seeds: Tensor | None

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
        options = {
            "hidden_channels": hidden_channels,
            "num_layers": num_layers,
            "dropout": dropout,
            "norm": norm,
            "residual": residual,
            "input_layer": input_layer,
            "input_dropout": input_dropout,
            "heads": heads,
        }
        of_rewiring = SETTINGS - backbones.all_defaults().keys()
        changes = {name: value for name, value in settings.items() if name in of_rewiring}
        options |= {name: value for name, value in settings.items() if name not in of_rewiring}
        if rewiring is not None and changes:
            raise UserError(f"give {', '.join(changes)} within rewiring, or no rewiring but single settings")
        super().__init__(own_settings(changes, *OF_SAMPLING) if rewiring is None else rewiring, replicas)
        self.backbone = make_backbone(
            self,
            backbone,
            in_channels,
            options,
            out_channels=out_channels,
            replicas=replicas,
            seeds=seeds,
            also=(*OF_THE_REWIRER, *OF_SAMPLING),
        )
        self._add_rewirer(in_channels, out_channels)
        self.regularizers = _make_regularizers(self.settings)
        drawn_in_evaluation = self.settings.evaluation == "mean_of_samples"
        # Predictions then depend on the seeds: they are part of the state.
        self.register_buffer("evaluation_seeds", torch.tensor(self.backbone.seeds) if drawn_in_evaluation else None)
        self._evaluation_rng: ReplicaRNG | None = None
        self._decoyed: TensorCache[Decoys] = TensorCache()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew from the replicas' seeds."""
        self.backbone.reset_parameters()
        self._init_rewirer(self.backbone.seeds)

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""
        return self.backbone.rng

    @overload
    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = ...,
        edge_weight: Tensor | None = ...,
        *,
        return_graph: Literal[False] = ...,
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = ...,
        edge_weight: Tensor | None = ...,
        *,
        return_graph: Literal[True],
    ) -> tuple[Tensor, RewiredGraph]: ...
    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        return_graph: bool = False,
    ) -> Tensor | tuple[Tensor, RewiredGraph]:
        """Logits of every node, and the graph they were made on if asked for.

        In training one graph is drawn; in evaluation the graph is the one that `evaluation` names. A
        `mean_of_samples` is the logarithm of the mean prediction over several graphs, and the graph is their mean.

        Args:
            x: Features [N, in] (dense or sparse), or a whole `Data` with candidates.
            edge_index: The graph: edges [2, E], to drop some of, or a `PairGraph`; that of the `Data` by default, as
                undirected: for a directed graph give `PairGraph.of(data, undirected=False)`.
            edge_weight: With edges a weight for each of them, [E]; a `Data` and a `PairGraph` bring their own.
            return_graph: Whether to give the rewired graph too.
        """
        x, graph = self._read(x, edge_index, edge_weight)
        rewired = self._rewired(x, graph)
        if not self.training and self.settings.evaluation == "mean_of_samples":
            logits, rewired = self._mean_of_samples(x, rewired)
        else:
            logits = self._on(x, rewired)
        logits = self._without_axis(logits)
        return (logits, rewired) if return_graph else logits

    def training_loss(
        self, x: Tensor | SparseFeatures, graph: PairGraph, y: Tensor, train_mask: Tensor, progress: Tensor
    ) -> Tensor:
        """Cross-entropy on drawn graphs plus the weighted penalties, for each replica, [R]."""
        flood = self._decoys(graph).draw(self.rng) if self.settings.decoys else None
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
            drawn = self.rewirer.sampled(theta, graph, self.rng, progress)
            if flood is not None:
                drawn = replace(drawn, weight=drawn.weight * flood.present)
            logits = self._on(x, drawn)
            outputs.append(logits)
            each = cross_entropy(logits, y, train_mask)
            for regularizer in self.regularizers:
                each = each + regularizer.weighted(logits, drawn, y, train_mask)
            loss = loss + each / self.settings.samples
        if self.settings.agreement and len(outputs) > 1:
            ramp = self.settings.agreement_ramp
            grown = (progress / ramp).clamp(max=1) if ramp else 1.0
            loss = loss + grown * (self.settings.agreement * agreement(outputs))
        return loss

    def _decoys(self, graph: PairGraph) -> Decoys:
        """The graph with decoys, laid out once."""
        return self._decoyed.get(graph, [graph.pair_weight], lambda: Decoys.among(graph, self.settings.decoys))

    @torch.no_grad()
    def _beliefs(self, x: Tensor | SparseFeatures, graph: PairGraph, given: Tensor) -> Tensor:
        """Class probabilities of the backbone on the given edges, where the scorer looks at them."""
        if not self.rewirer.scorer.uses_beliefs:
            return super()._beliefs(x, graph, given)
        with evaluating(self.backbone):
            return self.backbone.compute(x, WeightedGraph(graph, given, x.dtype)).softmax(-1)

    def _on(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> Tensor:
        return self.backbone.compute(x, WeightedGraph(rewired.graph, rewired.weight, x.dtype))

    def _mean_of_samples(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> tuple[Tensor, RewiredGraph]:
        """Logarithm of the mean prediction over several graphs, the same at every evaluation, and their mean."""
        theta, count = rewired.theta, self.settings.evaluation_samples
        rng = self._evaluation_rng
        if rng is None or rng.device != theta.device:
            seeds = self.backbone.seeds if self.evaluation_seeds is None else self.evaluation_seeds.tolist()
            rng = self._evaluation_rng = ReplicaRNG(seeds, "evaluate", theta.device)
        rng.rewind()
        total, weight = theta.new_zeros(()), torch.zeros_like(theta)
        for _ in range(count):
            drawn = self.rewirer.sampled(theta, rewired.graph, rng, 1.0)
            total = total + self._on(x, drawn).softmax(-1)
            weight = weight + drawn.weight
        return (total / count).clamp(min=1e-12).log(), replace(rewired, weight=weight / count)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take the seeds of evaluation from a state that has them; older ones, and other evaluations, do without."""
        name = f"{prefix}evaluation_seeds"
        if self.evaluation_seeds is None:
            state_dict.pop(name, None)
        else:
            state_dict.setdefault(name, self.evaluation_seeds)
            self._evaluation_rng = None
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return f"GumbelMPNN({self.backbone}, scorer={self.settings.scorer!r})"


def _make_regularizers(settings: RewiringSettings) -> list[Regularizer]:
    """The penalties that the settings ask for, with their weights."""
    chosen: list[Regularizer] = []
    if settings.regularizer != "none":
        if settings.regularizer.lower() in ("prior", "agreement"):
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
