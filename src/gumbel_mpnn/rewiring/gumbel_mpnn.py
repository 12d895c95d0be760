"""Gumbel-MPNN: a message-passing network on a graph that it rewires while it trains.

One training step (`GumbelMPNN.training_loss`) has four parts:

    score      θ = edge model(features, class beliefs) + bias by origin: a logit for every pair    edge_models, rewirer
    draw       w = binary concrete sample of θ at temperature τ: 0 or 1 forward, soft backward     sampler
    classify   logits = backbone(features, graph with weights w)                                   nn
    penalise   cross-entropy + Σ λ_k · term_k, such as the paper's regularizers of the graph       terms, regularizers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, overload

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.tensor_cache import TensorCache
from gumbel_mpnn.candidates.chosen import with_candidates
from gumbel_mpnn.config import RewiringSettings, Settings
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures, backbones, make_backbone
from gumbel_mpnn.nn.each_replica import sigmoid
from gumbel_mpnn.nn.model import (
    COPIES_OF_A_LAYER,
    FUSED_ON_CPU,
    Report,
    Sizes,
    TrainableModel,
    Work,
    models,
    work_of_products,
)
from gumbel_mpnn.nn.modules import evaluating
from gumbel_mpnn.rewiring.decoys import Decoys, Flood
from gumbel_mpnn.rewiring.edge_models import NodeView
from gumbel_mpnn.rewiring.regularizers import Prior, regularizers
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph
from gumbel_mpnn.rewiring.rewiring_model import OF_THE_REWIRER, RewiringModel, own_settings
from gumbel_mpnn.rewiring.terms import (
    Agreement,
    BeliefLoss,
    Classification,
    DecoyLoss,
    Draw,
    PairLoss,
    Regularization,
    Step,
    Term,
)

OF_SAMPLING = ("beliefs", "evaluation_samples")
"""Settings that also have an effect in the user's own training loop, besides those of the rewirer."""
SETTINGS = frozenset(field.name for field in fields(RewiringSettings)) - {"options"}


@models.register("gumbel-mpnn", passes_on=backbones.all_defaults)
class GumbelMPNN(RewiringModel, TrainableModel):
    """A backbone and a rewirer that chooses its edges, trained together.

    In your own training loop, add `auxiliary_loss` to the loss: the default scorer, `class-space`, compares class
    beliefs, and nothing else trains the head that predicts them. Without it, edges are scored by the beliefs of an
    untrained head; `scorer="bilinear"` needs none. The prior, which `fit` has in its loss by default, is
    `gm.regularizers.Prior()`. Set `progress` if the temperature should fall.

    Graphs and dropout are drawn from the model's own `rng`; save and restore it with `get_state` and `set_state`.
    Do not use `torch.utils.checkpoint` around the model: the second pass would draw a different graph.

    All arguments but the first are keyword-only.

    Args:
        in_channels: Number of features per node.
        out_channels: Number of classes.
        backbone: `gcn`, `sage`, `sage-channels`, `gat`, `appnp` or `mlp`.
        hidden_channels: Width of every layer of the backbone.
        num_layers: Number of layers of the backbone before its head.
        dropout: Dropout probability after every layer.
        norm: `layer`, `batch` or `none`.
        residual: Add a layer's input to its output, as `shortcut` says.
        shortcut: `linear`, `identity` or `inner`; see `gm.GCN`.
        input_layer: Start with a linear map to `hidden_channels` and dropout.
        input_dropout: Dropout probability of the features.
        heads: Number of attention heads of `gat`, which share `hidden_channels`; ignored by other backbones.
        steps: How often `appnp` sends logits along the edges; ignored by other backbones.
        teleport: Share of a node's own logits in every step of `appnp`; ignored by other backbones.
        replicas: Number of models R trained together, with output [R, N, out]; None for one model with output [N, out].
        seeds: One seed per replica; drawn from torch's global generator by default. If `evaluation` is
            `mean_of_samples`, the seeds also decide which graphs are drawn for evaluation and are part of the state.
        rewiring: All rewiring settings at once. Those about training (regularizers, samples, decoys) have an effect in
            `training_loss`, not in `forward`.
        **settings: Single rewiring settings that have an effect in your own training loop, such as `tau=0.5`, and
            options of backbones that are not listed above. Rewiring settings cannot be combined with `rewiring`.
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
        shortcut: str = "linear",
        input_layer: bool = False,
        input_dropout: float = 0.0,
        heads: int = 1,
        steps: int = 10,
        teleport: float = 0.1,
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
            "shortcut": shortcut,
            "input_layer": input_layer,
            "input_dropout": input_dropout,
            "heads": heads,
            "steps": steps,
            "teleport": teleport,
        }
        of_rewiring = SETTINGS - backbones.all_defaults().keys()
        changes = {name: value for name, value in settings.items() if name in of_rewiring}
        options |= {name: value for name, value in settings.items() if name not in of_rewiring}
        if rewiring is not None and changes:
            names = ", ".join(changes)
            raise UserError(f"{names} cannot be combined with rewiring: set it in rewiring, or leave out rewiring")
        rewiring = own_settings(changes, *OF_SAMPLING) if rewiring is None else rewiring
        super().__init__(self.settle(rewiring), replicas)
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
        self.terms = make_terms(self.settings)
        drawn_in_evaluation = self.settings.evaluation == "mean_of_samples"
        # Predictions then depend on the seeds, so these are part of the state.
        self.register_buffer("evaluation_seeds", torch.tensor(self.backbone.seeds) if drawn_in_evaluation else None)
        self._evaluation_rng: ReplicaRNG | None = None
        self._decoy_cache: TensorCache[Decoys] = TensorCache()
        self.reset_parameters()

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
        for flood in self._draw_floods(graph):
            if not draws or flood is not None:  # samples without decoys have the same scores
                shown = graph if flood is None else flood.decoys.graph
                theta, belief_logits = self._score(x, shown, flood)
            rewired = self._draw(theta, shown, progress, flood)
            draws.append(Draw(rewired, self._classify(x, rewired), flood))
        step = Step(draws, y, train_mask, progress, belief_logits, weight)
        loss: Tensor = theta.new_zeros(len(theta))
        for term in self.terms:
            loss = loss + term(step)
        return loss

    def _draw_floods(self, graph: PairGraph) -> list[Flood | None]:
        """Decoys of every sample, None for a sample without decoys.

        The first of several samples has none: the agreement then pulls predictions with decoys towards those without.
        """
        samples = self.settings.samples
        if not self.settings.decoys:
            return [None] * samples
        # The pairs with all decoys are laid out once per graph.
        decoys = self._decoy_cache.get(graph, [graph.pair_weight], lambda: Decoys.among(graph, self.settings.decoys))
        return [None if samples > 1 and not number else decoys.draw(self.rng) for number in range(samples)]

    def _beliefs(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        given: Tensor,
        head_logits: Tensor | None,
        flood: Flood | None,
    ) -> Tensor:
        """Class probabilities by the belief head or by the backbone, as the setting `beliefs` says, [R, N, C].

        Those of the backbone are on the given edges (`graph`), or on the graph that the head's give (`rewired`). They
        have no gradient in training; in evaluation they have one, which attacks on the model need.
        """
        beliefs = super()._beliefs(x, graph, given, head_logits, flood)
        if self.settings.beliefs == "features" or not self.rewirer.scorer.uses_beliefs:
            return beliefs
        wants_gradient = torch.is_grad_enabled() and not self.training
        with torch.set_grad_enabled(wants_gradient), evaluating(self.backbone):
            weight = given
            if self.settings.beliefs == "rewired":
                weight = sigmoid(self.rewirer(NodeView(x, beliefs, given), graph))
                weight = weight if flood is None else weight * flood.present
            return self.backbone.compute(x, WeightedGraph(graph, weight, x.dtype)).softmax(-1)

    def _draw(self, theta: Tensor, graph: PairGraph, progress: Tensor, flood: Flood | None) -> RewiredGraph:
        """One graph per replica; decoys that are not shown in this step are not drawn."""
        drawn = self.rewirer.draw(theta, graph, self.rng, progress)
        return drawn if flood is None else replace(drawn, weight=drawn.weight * flood.present)

    def _classify(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> Tensor:
        """Logits of the backbone on a rewired graph, [R, N, C]."""
        return self.backbone.compute(x, WeightedGraph(rewired.graph, rewired.weight, x.dtype))

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
        """Logarithm of the mean prediction over several graphs, the same in every evaluation, and their mean."""
        theta, count = rewired.theta, self.settings.evaluation_samples
        rng = self._evaluation_rng
        if rng is None or rng.device != theta.device:
            seeds = self.backbone.seeds if self.evaluation_seeds is None else self.evaluation_seeds.tolist()
            rng = self._evaluation_rng = ReplicaRNG(seeds, "evaluate", theta.device)
        rng.rewind()
        total, weight = theta.new_zeros(()), torch.zeros_like(theta)
        for _ in range(count):
            drawn = self.rewirer.draw(theta, rewired.graph, rng, 1.0)
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

    @property
    def width(self) -> int:
        """Width of the backbone."""
        return self.backbone.width

    def step_numbers(self, sizes: Sizes) -> int:
        """Numbers that the backbone holds for all drawn graphs, plus those of every pair and of the edge model."""
        samples, sizes = self.settings.samples, self._with_decoys(sizes)
        head = 0 if self.belief_head is None else self.belief_head.hidden.weight.shape[-1]
        copies = COPIES_OF_A_LAYER - (0 if sizes.on_gpu else FUSED_ON_CPU)
        scored = sizes.pairs * (12 + 8 * samples) + sizes.nodes * head * copies
        return (
            scored
            + self.rewirer.scorer.step_numbers(sizes) * (samples if self.settings.decoys else 1)
            + self.backbone.step_numbers(sizes, samples, weighs_arcs=True)
        )

    def step_work(self, sizes: Sizes, in_channels: int) -> Work:
        """What the backbone does on all drawn graphs, plus the scores of all pairs."""
        sizes = self._with_decoys(sizes)
        work = self.backbone.step_work(sizes, in_channels, weighs_arcs=True) * self.settings.samples
        for module in (self.rewirer, self.belief_head):
            work += Work(0, 0, 0, 0) if module is None else work_of_products(module, sizes, in_channels)
        # Each score reads a row of both nodes, and its gradient reads both again.
        return work + Work(3 * sizes.pairs, 0, 3 * sizes.pairs * self.rewirer.scorer.width, 0)

    def _with_decoys(self, sizes: Sizes) -> Sizes:
        decoys = round(self.settings.decoys * sizes.given_pairs)
        return replace(sizes, arcs=sizes.arcs + 2 * decoys, pairs=sizes.pairs + decoys)

    def reset_parameters(self) -> None:
        """Initialize all parameters from the seeds of the replicas."""
        self.backbone.reset_parameters()
        self._init_rewirer(self.backbone.seeds)

    @property
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""
        return self.backbone.rng

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Read the seeds of evaluation if the state has them; older states and other evaluations do not."""
        name = f"{prefix}evaluation_seeds"
        if self.evaluation_seeds is None:
            state_dict.pop(name, None)
        else:
            state_dict.setdefault(name, self.evaluation_seeds)
            self._evaluation_rng = None
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backbone}, scorer={self.settings.scorer!r})"


def make_terms(settings: RewiringSettings) -> list[Term]:
    """Create the terms of the loss that the settings ask for."""
    terms: list[Term] = [BeliefLoss()]
    if settings.decoys:
        terms.append(DecoyLoss(settings.decoy_weight))
    terms.append(Classification())
    if settings.regularizer.lower() in ("prior", "agreement"):
        name = settings.regularizer.lower()
        raise UserError(f"rewiring.regularizer cannot be {name!r}: set rewiring.{name} to its weight instead")
    if settings.regularizer != "none" and settings.regularizer_weight:
        options = settings.options_of("regularizer", regularizers.defaults(settings.regularizer))
        terms.append(Regularization(regularizers[settings.regularizer](**options)))
    if settings.prior:
        terms.append(Regularization(Prior(settings.prior, keep=settings.keep, add=settings.add)))
    if settings.pair_loss:
        terms.append(PairLoss(settings.pair_loss))
    if settings.agreement and settings.samples > 1:
        terms.append(Agreement(settings.agreement, settings.agreement_ramp))
    return terms
