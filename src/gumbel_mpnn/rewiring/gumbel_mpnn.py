"""Gumbel-MPNN: a message-passing network on a graph that it rewires while it trains.

One training step (`GumbelMPNN.training_loss`) has four parts:

    score      θ = scorer(features, class beliefs) + bias by origin: a logit for every pair       scorers, rewirer
    draw       w = binary concrete sample of θ at temperature τ: 0 or 1 forward, soft backward    sampler
    classify   logits = backbone(features, graph with weights w)                                  nn
    penalise   cross-entropy + Σ λ_k · term_k, such as the paper's regularizers of the graph      losses, regularizers
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.candidates import with_candidates
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import Backbone, BackboneModel, ReplicaRNG, SparseFeatures, backbones, models
from gumbel_mpnn.nn.backbones import Report
from gumbel_mpnn.nn.layers import evaluating
from gumbel_mpnn.nn.replica import sigmoid
from gumbel_mpnn.rewiring.decoys import Decoys, ShownDecoys
from gumbel_mpnn.rewiring.losses import Draw, Step, make_terms
from gumbel_mpnn.rewiring.rewirer import RewiredGraph
from gumbel_mpnn.rewiring.scorers import NodeView
from gumbel_mpnn.rewiring.wrap import OF_THE_REWIRER, RewiringModel, own_settings
from gumbel_mpnn.settings import RewiringSettings, Settings
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.tensors import TensorCache

OF_SAMPLING = ("beliefs", "evaluation_samples")
"""Settings that also have an effect in the user's own training loop, besides those of the rewirer."""
SETTINGS = frozenset(field.name for field in fields(RewiringSettings)) - {"options"}


@models.register("gumbel-mpnn", backbone=backbones)
class GumbelMPNN(RewiringModel, BackboneModel):
    """A backbone and a rewirer that chooses its edges, trained together.

    In your own training loop, add `auxiliary_loss` to the loss: the default scorer, `class-space`, compares class
    beliefs, and nothing else trains the head that predicts them. Without it, edges are scored by the beliefs of an
    untrained head; `scorer="bilinear"` needs none. The prior, which `fit` has in its loss by default, is
    `gm.regularizers.Prior()`. Set `progress` if the temperature should fall.

    Graphs and dropout are drawn from the model's own `rng`; save and restore it with `get_state` and `set_state`.
    Do not use `torch.utils.checkpoint` around the model: the second pass would draw a different graph.

    Args:
        backbone: A backbone, such as `gm.GCN(data.num_features, out_channels=7)`, or the name of one: `gcn`, `sage`,
            `sage-channels`, `gat`, `appnp` or `mlp`. Its replicas and seeds are those of the model.
        rewiring: All rewiring settings at once. Those about training (regularizers, samples, decoys) have an effect in
            `training_loss`, not in `forward`.
        **options: Single rewiring settings that have an effect in your own training loop, such as `tau=0.5`, in place
            of `rewiring`. With the name of a backbone, also its arguments: `in_channels`, `out_channels`, and if wanted
            `replicas`, `seeds` and options such as `hidden_channels=64`.
    """

    rewires: ClassVar[bool] = True
    presets_of: ClassVar[tuple[str, ...]] = ()
    more_options: ClassVar[tuple[str, ...]] = (*OF_THE_REWIRER, *OF_SAMPLING)

    def __init__(
        self, backbone: Backbone | str = "gcn", *, rewiring: RewiringSettings | None = None, **options: Any
    ) -> None:
        of_rewiring = SETTINGS - backbones.all_defaults().keys()
        changes = {name: options.pop(name) for name in [*options] if name.partition(".")[0] in of_rewiring}
        if rewiring is not None and changes:
            names = ", ".join(changes)
            raise UserError(f"{names} cannot be combined with rewiring: set it in rewiring, or leave out rewiring")
        super().__init__(backbone, **options)
        settings = self.settle(own_settings(changes, *OF_SAMPLING) if rewiring is None else rewiring)
        self._add_rewirer(settings, self.backbone.in_channels, self.backbone.out_channels)
        self._init_rewirer(self.backbone.seeds)
        self.samples, self.terms = settings.samples, make_terms(settings)
        self._evaluation_rng: ReplicaRNG | None = None
        self._decoys: TensorCache[Decoys] = TensorCache()

    def training_loss(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Score all pairs, draw graphs, classify on each of them and penalise.

        Returns:
            The loss of every replica, [R].
        """
        draws: list[Draw] = []
        for decoys in self._draw_decoys(graph):
            if not draws or decoys is not None:  # samples without decoys have the same scores
                shown = graph if decoys is None else decoys.decoys.graph
                theta, belief_logits = self._score(x, shown, decoys)
            rewired = self._draw(theta, shown, progress, decoys)
            draws.append(Draw(rewired, self._classify(x, rewired), decoys))
        step = Step(draws, y, train_mask, progress, belief_logits, weight)
        loss: Tensor = theta.new_zeros(len(theta))
        for term in self.terms:
            loss = loss + term(step)
        return loss

    def _draw_decoys(self, graph: PairGraph) -> list[ShownDecoys | None]:
        """Decoys of every sample, None for a sample without decoys.

        The first of several samples has none: the agreement then pulls predictions with decoys towards those without.
        """
        samples = self.settings.samples
        if not self.settings.decoys:
            return [None] * samples
        # The pairs with all decoys are laid out once per graph.
        decoys = self._decoys.get(graph, [graph.pair_weight], lambda: Decoys.among(graph, self.settings.decoys))
        return [None if samples > 1 and not number else decoys.draw(self.rng) for number in range(samples)]

    def _beliefs(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        given: Tensor,
        head_logits: Tensor | None,
        decoys: ShownDecoys | None,
    ) -> Tensor:
        """Class probabilities by the belief head or by the backbone, as the setting `beliefs` says, [R, N, C].

        Those of the backbone are on the given edges (`graph`), or on the graph that the head's give (`rewired`). They
        have no gradient in training; in evaluation they have one, which attacks on the model need.
        """
        beliefs = super()._beliefs(x, graph, given, head_logits, decoys)
        if self.settings.beliefs == "features" or not self.rewirer.scorer.uses_beliefs:
            return beliefs
        wants_gradient = torch.is_grad_enabled() and not self.training
        with torch.set_grad_enabled(wants_gradient), evaluating(self.backbone):
            weight = given
            if self.settings.beliefs == "rewired":
                weight = sigmoid(self.rewirer(NodeView(x, beliefs, given), graph))
                weight = weight if decoys is None else weight * decoys.present
            return self.backbone.compute(x, WeightedGraph(graph, weight, x.dtype)).softmax(-1)

    def _draw(self, theta: Tensor, graph: PairGraph, progress: Tensor, decoys: ShownDecoys | None) -> RewiredGraph:
        """One graph per replica; decoys that are not shown in this step are not drawn."""
        drawn = self.rewirer.draw(theta, graph, self.rng, progress)
        return drawn if decoys is None else replace(drawn, weight=drawn.weight * decoys.present)

    def _classify(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> Tensor:
        """Logits of the backbone on a rewired graph, [R, N, C]."""
        return self.backbone.compute(x, WeightedGraph(rewired.graph, rewired.weight, x.dtype))

    def forward(
        self,
        x: Tensor | SparseFeatures | Data,
        edge_index: PairGraph | Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        return_graph: bool = False,
    ) -> Tensor | tuple[Tensor, RewiredGraph]:
        """Logits of every node, [N, out] or [R, N, out], and optionally the rewired graph.

        In training, one graph is drawn. In evaluation, the setting `evaluation` decides which graph is used. With
        `mean_of_samples`, the logits are the logarithm of the mean prediction over several graphs, and the returned
        graph is their mean.

        Args:
            x: Features [N, in] (dense or sparse), or a `Data`, with candidates if edges may be added.
            edge_index: Edges [2, E], which are treated as undirected, or a `PairGraph`; taken from the `Data` by
                default. For a directed graph, pass `PairGraph.of(data, undirected=False)`.
            edge_weight: Weights [E] of an `edge_index` [2, E]; a `Data` and a `PairGraph` have their own.
            return_graph: Whether to return the rewired graph as well.
        """
        x, graph = self._read(x, edge_index, edge_weight)
        rewired = self._rewired_graph(x, graph)
        if not self.training and self.settings.evaluation == "mean_of_samples":
            logits, rewired = self._mean_of_samples(x, rewired)
        else:
            logits = self._classify(x, rewired)
        logits = self._squeeze(logits)
        return (logits, rewired) if return_graph else logits

    def _mean_of_samples(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> tuple[Tensor, RewiredGraph]:
        """Logarithm of the mean prediction over several graphs, drawn alike in every evaluation, and their mean."""
        theta, count = rewired.theta, self.settings.evaluation_samples
        if self._evaluation_rng is None or self._evaluation_rng.device != theta.device:
            self._evaluation_rng = ReplicaRNG([0] * len(theta), "evaluate", theta.device)
        self._evaluation_rng.rewind()
        total, weight = theta.new_zeros(()), torch.zeros_like(theta)
        for _ in range(count):
            drawn = self.rewirer.draw(theta, rewired.graph, self._evaluation_rng, 1.0)
            total = total + self._classify(x, drawn).softmax(-1)
            weight = weight + drawn.weight
        return (total / count).clamp(min=1e-12).log(), replace(rewired, weight=weight / count)

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """The graph with the candidates that the settings ask for."""
        assert settings.rewiring is not None
        standardized = settings.data.features == "standardized"
        return with_candidates(data, settings.rewiring, standardized, settings.train.partitions)

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Groups of parameters for the optimizer; the rewirer has its own learning rate and weight decay.

        Parameters that do not require a gradient are left out.
        """
        assert settings.rewiring is not None
        in_rewirer = set(map(id, self.rewirer.parameters()))
        learned = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rewirer = [parameter for parameter in learned if id(parameter) in in_rewirer]
        others = [parameter for parameter in learned if id(parameter) not in in_rewirer]
        groups = [(others, settings.train.lr, settings.train.weight_decay)]
        groups += [(rewirer, settings.rewiring.lr, settings.rewiring.weight_decay)]
        return [{"params": params, "lr": lr, "weight_decay": decay} for params, lr, decay in groups if params]

    def reset_parameters(self) -> None:
        """Initialize all parameters from the seeds of the replicas."""
        self.backbone.reset_parameters()
        self._init_rewirer(self.backbone.seeds)

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""
        return self.backbone.rng

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backbone}, scorer={self.settings.scorer!r})"
