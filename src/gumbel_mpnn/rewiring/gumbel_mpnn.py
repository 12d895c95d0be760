"""Gumbel-MPNN: a message-passing network on a graph that it rewires while it trains.

One training step (`GumbelMPNN.training_loss`) has four parts:

    score      θ = scorer(features, class beliefs) + bias by origin: a logit for every pair       scorers, rewirer
    draw       w = binary concrete sample of θ at temperature τ: 0 or 1 forward, soft backward    rewirer
    classify   logits = backbone(features, graph with weights w)                                  nn
    penalise   cross-entropy + Σ λ_k · term_k, such as the paper's regularizers of the graph      losses, regularizers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.candidates import with_candidates
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.graph.pairs import can_be_taken_apart
from gumbel_mpnn.nn import Backbone, BackboneModel, ReplicaRNG, SparseFeatures, backbones, models
from gumbel_mpnn.nn.backbones import Report
from gumbel_mpnn.nn.features import features_of, model_input
from gumbel_mpnn.nn.layers import check_finite, cross_entropy, evaluating
from gumbel_mpnn.nn.replica import sigmoid
from gumbel_mpnn.rewiring.learned_graph import as_data
from gumbel_mpnn.rewiring.losses import Decoys, Draw, ShownDecoys, Terms
from gumbel_mpnn.rewiring.own_loop import BeliefCheck, labels_of
from gumbel_mpnn.rewiring.rewirer import RewiredGraph, Rewirer
from gumbel_mpnn.rewiring.scorers import BeliefHead, NodeView
from gumbel_mpnn.settings import RewiringSettings, Settings, rewiring_settings
from gumbel_mpnn.util.errors import UserError, check_between
from gumbel_mpnn.util.tensors import TensorCache

OF_OWN_LOOP = ("scorer", "beliefs", "origin", "keep", "add", "tau", "tau_end", "hard", "evaluation")
"""Settings that have an effect in the user's own training loop; the others belong to `fit` or to the loss."""
SETTINGS = frozenset(field.name for field in fields(RewiringSettings)) - {"options"}
GRAPHS_OF_MEAN = 8
"""Number of graphs of the evaluation `mean_of_samples`."""


@models.register("gumbel-mpnn", backbone=backbones)
class GumbelMPNN(BackboneModel):
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
        rewiring: All rewiring settings at once. Those about training (regularizers, samples) have an effect in
            `training_loss`, not in `forward`.
        **options: Single rewiring settings that have an effect in your own training loop, such as `tau=0.5`, in place
            of `rewiring`. With the name of a backbone, also its arguments: `in_channels`, `out_channels`, and if wanted
            `replicas`, `seeds` and options such as `hidden_channels=64`.
    """

    rewires: ClassVar[bool] = True
    presets_of: ClassVar[tuple[str, ...]] = ()
    more_options: ClassVar[tuple[str, ...]] = OF_OWN_LOOP

    def __init__(
        self, backbone: Backbone | str = "gcn", *, rewiring: RewiringSettings | None = None, **options: Any
    ) -> None:
        of_rewiring = SETTINGS - backbones.all_defaults().keys()
        changes = {name: options.pop(name) for name in [*options] if name.partition(".")[0] in of_rewiring}
        if rewiring is not None and changes:
            names = ", ".join(changes)
            raise UserError(f"{names} cannot be combined with rewiring: set it in rewiring, or leave out rewiring")
        super().__init__(backbone, **options)
        settings = self.settle(own_settings(changes) if rewiring is None else rewiring)
        count, width, classes = self.replicas or 1, self.backbone.in_channels, self.backbone.out_channels
        self.settings, self.in_channels, self.samples = settings, width, settings.samples
        self.rewirer = Rewirer(width, classes, count, settings)
        needs_head = self.rewirer.scorer.uses_beliefs and settings.beliefs != "graph"
        self.belief_head = BeliefHead(count, width, classes) if needs_head else None
        self.terms = Terms(settings, self.rewirer.scorer)
        self._progress = 0.0
        self._evaluation_rng: ReplicaRNG | None = None
        self._decoys: TensorCache[Decoys] = TensorCache()
        self._belief_check = BeliefCheck()
        self._init_rewirer()

    def reset_parameters(self) -> None:
        """Initialize all parameters from the seeds of the replicas."""
        self.backbone.reset_parameters()
        self._init_rewirer()

    def _init_rewirer(self) -> None:
        rng = ReplicaRNG(self.backbone.seeds, "init rewiring")
        for part in (self.rewirer, self.belief_head):
            if part is not None:
                part.init_parameters(rng)

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
                shown = graph if decoys is None else decoys.graph
                theta, belief_logits = self._score(x, shown, decoys)
            rewired = self.rewirer.draw(theta, shown, self.rng, progress)
            if decoys is not None:  # those that are not shown in this step are not drawn
                rewired = replace(rewired, weight=rewired.weight * decoys.present)
            draws.append(Draw(rewired, self._classify(x, rewired), decoys))
        terms = self.terms(draws, y, train_mask, progress, belief_logits, weight)
        return sum(terms.values(), theta.new_zeros(len(theta)))

    def _draw_decoys(self, graph: PairGraph) -> list[ShownDecoys | None]:
        """Decoys of every sample, None for a sample without decoys.

        The first of several samples has none: the agreement then pulls predictions with decoys towards those without.
        """
        samples, ratio = self.settings.samples, self.rewirer.scorer.decoys
        if not ratio:
            return [None] * samples
        # The pairs with all decoys are laid out once per graph.
        decoys = self._decoys.get(graph, [graph.pair_weight], lambda: Decoys.among(graph, ratio))
        return [None if samples > 1 and not number else decoys.draw(self.rng) for number in range(samples)]

    def _score(
        self, x: Tensor | SparseFeatures, graph: PairGraph, decoys: ShownDecoys | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """θ of every pair, [R, P], and the logits of the belief head, [R, N, C], if there is one."""
        given = (graph.is_original if decoys is None else decoys.given).to(x.dtype)
        logits: Tensor | None = None if self.belief_head is None else self.belief_head(x, self.rng)
        if logits is None:
            beliefs = torch.empty(self.replicas or 1, x.shape[-2], 0, dtype=x.dtype, device=x.device)
        else:
            beliefs = logits.detach().softmax(-1)
        if self.settings.beliefs != "features" and self.rewirer.scorer.uses_beliefs:
            beliefs = self._beliefs_of_backbone(NodeView(x, beliefs, given), graph, decoys)
        return self.rewirer(NodeView(x, beliefs, given), graph), logits

    def _beliefs_of_backbone(self, nodes: NodeView, graph: PairGraph, decoys: ShownDecoys | None) -> Tensor:
        """Class probabilities on the given edges (`graph`), or on the graph of the head's beliefs (`rewired`).

        They have no gradient in training; in evaluation they have one, which attacks on the model need. [R, N, C].
        """
        wants_gradient = torch.is_grad_enabled() and not self.training
        with torch.set_grad_enabled(wants_gradient), evaluating(self.backbone):
            weight = nodes.given
            if self.settings.beliefs == "rewired":
                weight = sigmoid(self.rewirer(nodes, graph))
                weight = weight if decoys is None else weight * decoys.present
            return self.backbone.compute(nodes.features, WeightedGraph(graph, weight, nodes.given.dtype)).softmax(-1)

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
    ) -> Any:
        """Logits of every node, [N, out] or [R, N, out], and optionally the rewired graph.

        In training, one graph is drawn. In evaluation, the setting `evaluation` decides which graph is used. With
        `mean_of_samples`, the logits are the logarithm of the mean prediction over several graphs, and the returned
        graph is their mean.

        Args:
            x: Features [N, in] (dense or sparse), or a `Data`, with candidates if edges may be added.
            edge_index: Edges [2, E], which are treated as undirected, or a `PairGraph`; taken from the `Data` by
                default. For a directed graph, pass `PairGraph.of(data, undirected=False)`.
            edge_weight: Weights [E] of an `edge_index` [2, E]; a `Data` and a `PairGraph` have their own.
            return_graph: Whether to return the `RewiredGraph` as well, for regularizers.
        """
        x, graph = self._read(x, edge_index, edge_weight)
        theta, _ = self._score(x, graph)
        if self.training:
            self._belief_check(theta, self.belief_head, self.settings.scorer)
            rewired = self.rewirer.draw(theta, graph, self.rng, self.progress)
        else:
            rewired = self.rewirer.evaluate(theta, graph)
        if not self.training and self.settings.evaluation == "mean_of_samples":
            logits, rewired = self._mean_of_samples(x, rewired)
        else:
            logits = self._classify(x, rewired)
        logits = self._squeeze(logits)
        return (logits, rewired) if return_graph else logits

    def _mean_of_samples(self, x: Tensor | SparseFeatures, rewired: RewiredGraph) -> tuple[Tensor, RewiredGraph]:
        """Logarithm of the mean prediction over several graphs, drawn alike in every evaluation, and their mean."""
        theta = rewired.theta
        if self._evaluation_rng is None or self._evaluation_rng.device != theta.device:
            self._evaluation_rng = ReplicaRNG([0] * len(theta), "evaluate", theta.device)
        self._evaluation_rng.rewind()
        total, weight = theta.new_zeros(()), torch.zeros_like(theta)
        for _ in range(GRAPHS_OF_MEAN):
            drawn = self.rewirer.draw(theta, rewired.graph, self._evaluation_rng, 1.0)
            total = total + self._classify(x, drawn).softmax(-1)
            weight = weight + drawn.weight
        mean = (total / GRAPHS_OF_MEAN).clamp(min=1e-12)
        return mean.log(), replace(rewired, weight=weight / GRAPHS_OF_MEAN)

    def auxiliary_loss(self, data: Data) -> Tensor:
        """Loss of the belief head, to be added to the loss in your own training loop.

        The belief head provides the class beliefs that some scorers use. The loss is 0 if there is no belief head: for
        scorers without beliefs (`bilinear`), and for the beliefs of the backbone (`beliefs="graph"`).

        Args:
            data: Provides `x`, `y` [N] and `train_mask` [N] or [N, R]. Only labels of training nodes are used; nodes
                without a label (y below 0) are ignored.

        Returns:
            One value per replica, [R]; a scalar if the model has no replicas.
        """
        self._belief_check.trained()
        if self.belief_head is None:
            return self._squeeze(self.rewirer.origin.new_zeros(len(self.rewirer.origin)))
        x = features_of(data, self.in_channels, self.rewirer.origin.dtype)
        logits = self.belief_head(x, self.rng)
        return self._squeeze(cross_entropy(logits, *labels_of(data, logits, needed=True)))

    @property
    def progress(self) -> float:
        """Share of the epochs done, 0 to 1; set it in your loop to let the temperature fall from `tau` to `tau_end`."""
        return self._progress

    @progress.setter
    def progress(self, share: float) -> None:
        share = share.item() if isinstance(share, Tensor) and share.numel() == 1 else share
        check_between(0, 1, progress=share)
        self._progress = float(share)

    @torch.no_grad()
    def pair_probability(self, x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
        """Probability of every pair to be an edge, computed in evaluation mode, [R, P]."""
        x, graph = self._read(x, graph)
        with evaluating(self):
            theta, _ = self._score(x, graph)
        return sigmoid(theta)

    def rewire(self, data: Data, threshold: float = 0.5, graph: PairGraph | None = None) -> Data:
        """The learned graph of `data`, which need not be the training graph.

        It has the attributes `edge_index` [2, E], with both directions of undirected edges, `edge_probability` [E],
        `edge_origin` [E], true for edges of `data`, and `edge_weight` [E]: the probability times the weight in the
        given graph (1 for new edges and unweighted graphs). With `threshold=0`
        this is the graph that a model with `evaluation="expected"` is evaluated on. The learned graph of a `Batch` is a
        `Batch`, which `to_data_list()` separates into the learned graphs.

        Args:
            data: A graph, with candidates if edges may be added.
            threshold: Pairs with a smaller probability are left out; with 0 there are all pairs.
            graph: Pairs of `data`, undirected by default. For a directed graph, pass
                `PairGraph.of(data, undirected=False)`.
        """
        check_finite(self)
        if can_be_taken_apart(data):
            undirected = graph is None or graph.undirected
            each = [(part, PairGraph.of(part, undirected=undirected)) for part in data.to_data_list()]
            return data.from_data_list([self.rewire(part, threshold, pairs) for part, pairs in each])
        x, graph = self._read(data, graph)
        return as_data(graph, self.pair_probability(x, graph).mean(0), data, threshold)

    def _read(
        self, x: Tensor | SparseFeatures | Data, graph: PairGraph | Tensor | None, edge_weight: Tensor | None = None
    ) -> tuple[Tensor | SparseFeatures, PairGraph]:
        """Check the input of a call; returns its features and its pairs, including candidates."""
        if edge_weight is not None and not isinstance(graph, Tensor):
            raise UserError(
                "edge_weight needs an edge_index [2, E]: set the weights of a Data or a PairGraph in the graph itself"
            )
        dtype = self.rewirer.origin.dtype
        return model_input(x, graph, edge_weight, in_channels=self.in_channels, dtype=dtype, candidates=True)[:2]

    def _squeeze(self, values: Tensor) -> Tensor:
        """Remove the leading axis of `values` [R, ...] if the model has no replicas."""
        return values if self.replicas is not None else values.squeeze(0)

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """The graph with the candidates that the settings ask for."""
        assert settings.rewiring is not None
        standardized = settings.data.features == "standardized"
        return with_candidates(data, settings.rewiring, standardized, settings.train.partitions)

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Groups of parameters for the optimizer; the rewirer has its own learning rate and no weight decay.

        Parameters that do not require a gradient are left out.
        """
        assert settings.rewiring is not None
        in_rewirer = set(map(id, self.rewirer.parameters()))
        learned = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rewirer = [parameter for parameter in learned if id(parameter) in in_rewirer]
        others = [parameter for parameter in learned if id(parameter) not in in_rewirer]
        groups = [(others, settings.train.lr, settings.train.weight_decay), (rewirer, settings.rewiring.lr, 0.0)]
        return [{"params": params, "lr": lr, "weight_decay": decay} for params, lr, decay in groups if params]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backbone}, scorer={self.settings.scorer!r})"


def own_settings(changes: Mapping[str, Any]) -> RewiringSettings:
    """Settings of a model in the user's own training loop; only `OF_OWN_LOOP` may be changed."""
    for name in changes:
        if name.partition(".")[0] in SETTINGS.difference(OF_OWN_LOOP):
            raise UserError(
                f"{name} has no effect in your own training loop, where candidates come from the data and "
                f"regularizers are added to the loss: use one of {', '.join(OF_OWN_LOOP)}"
            )
    return rewiring_settings(changes)
