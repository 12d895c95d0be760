"""Models around a rewirer: their base class, and `Rewired`, which rewires the graph of any model.

A model that is called as `(x, edge_index, edge_weight)`, such as a stack of PyG's GCNConv, can be wrapped.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.features import check_features, features_of, model_input
from gumbel_mpnn.nn.layers import ReplicaModule, check_finite, cross_entropy, evaluating
from gumbel_mpnn.nn.replica import replica_seeds, sigmoid
from gumbel_mpnn.rewiring.decoys import ShownDecoys
from gumbel_mpnn.rewiring.gradient_checks import BeliefCheck, ReactionCheck
from gumbel_mpnn.rewiring.labels import labels_of
from gumbel_mpnn.rewiring.rewirer import RewiredGraph, Rewirer, as_data
from gumbel_mpnn.rewiring.scorers import BeliefHead, NodeView
from gumbel_mpnn.settings import RewiringSettings, rewiring_settings
from gumbel_mpnn.util.errors import UserError, check_between

OF_THE_REWIRER = ("scorer", "origin", "keep", "add", "sigmoids", "tau", "tau_end", "hard", "evaluation")
"""Settings that have an effect in the user's own training loop; the others belong to `fit` or to the loss."""


class RewiringModel(ReplicaModule, ABC):
    """A model on a graph that a rewirer chooses."""

    settings: RewiringSettings
    in_channels: int
    rewirer: Rewirer
    belief_head: BeliefHead | None

    replicas: int | None
    """Number of models R trained together, with output [R, N, out]; None for one model with output [N, out]."""

    @property
    def progress(self) -> float:
        """Share of the epochs done, 0 to 1; set it in your loop to let the temperature fall from `tau` to `tau_end`."""
        return self._progress

    @progress.setter
    def progress(self, share: float) -> None:
        share = share.item() if isinstance(share, Tensor) and share.numel() == 1 else share
        check_between(0, 1, progress=share)
        self._progress = float(share)

    @property
    @abstractmethod
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""

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

    @torch.no_grad()
    def pair_probability(self, x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
        """Probability of every pair to be an edge, computed in evaluation mode, [R, P]."""
        x, graph = self._read(x, graph)
        with evaluating(self):
            theta, _ = self._score(x, graph)
        return sigmoid(theta)

    def rewire(self, data: Data, threshold: float = 0.5, graph: PairGraph | None = None) -> Data:
        """The learned graph of `data`, which need not be the training graph.

        It has the attributes `edge_index`, `edge_probability`, `edge_weight` and `edge_origin`. `edge_weight` is the
        probability times the weight in the given graph (1 for new edges and unweighted graphs). With `threshold=0`
        this is the graph that a model with `evaluation="expected"` is evaluated on. The learned graph of a `Batch` is a
        `Batch`, which `to_data_list()` separates into the learned graphs.

        Args:
            data: A graph, with candidates if edges may be added.
            threshold: Pairs with a smaller probability are left out; with 0 there are all pairs.
            graph: Pairs of `data`, undirected by default. For a directed graph, pass
                `PairGraph.of(data, undirected=False)`.
        """
        check_finite(self)
        x, graph = self._read(data, graph)
        return as_data(graph, self.pair_probability(x, graph).mean(0), data, threshold)

    def _read(
        self,
        x: Tensor | SparseFeatures | Data,
        graph: PairGraph | Tensor | None,
        edge_weight: Tensor | None = None,
    ) -> tuple[Tensor | SparseFeatures, PairGraph]:
        """Check the input of a call; returns its features and its pairs, including candidates."""
        if edge_weight is not None and not isinstance(graph, Tensor):
            raise UserError(
                "edge_weight needs an edge_index [2, E]: set the weights of a Data or a PairGraph in the graph itself"
            )
        dtype = self.rewirer.origin.dtype
        return model_input(x, graph, edge_weight, in_channels=self.in_channels, dtype=dtype, candidates=True)[:2]

    def _add_rewirer(self, settings: RewiringSettings, in_channels: int, out_channels: int) -> None:
        count = self.replicas or 1
        self.settings, self.in_channels = settings, in_channels
        self.rewirer = Rewirer(in_channels, out_channels, count, settings)
        needs_head = self.rewirer.scorer.uses_beliefs and settings.beliefs != "graph"
        self.belief_head = BeliefHead(count, in_channels, out_channels) if needs_head else None
        self._progress = 0.0
        self._belief_check = BeliefCheck()

    def _init_rewirer(self, seeds: Sequence[int]) -> None:
        rng = ReplicaRNG(seeds, "init rewiring")
        for part in (self.rewirer, self.belief_head):
            if part is not None:
                part.init_parameters(rng)

    def _rewired_graph(self, x: Tensor | SparseFeatures, graph: PairGraph) -> RewiredGraph:
        """One draw in training, otherwise the graph of evaluation."""
        theta, _ = self._score(x, graph)
        if self.training:
            self._belief_check(theta, self.belief_head, self.settings.scorer)
            return self.rewirer.draw(theta, graph, self.rng, self.progress)
        return self.rewirer.evaluate(theta, graph)

    def _score(
        self, x: Tensor | SparseFeatures, graph: PairGraph, decoys: ShownDecoys | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """θ of every pair, [R, P], and the logits of the belief head, [R, N, C], if there is one."""
        given = (graph.is_original if decoys is None else decoys.given).to(x.dtype)
        logits: Tensor | None = None if self.belief_head is None else self.belief_head(x, self.rng)
        beliefs = self._beliefs(x, graph, given, logits, decoys)
        return self.rewirer(NodeView(x, beliefs, given), graph), logits

    def _beliefs(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        given: Tensor,
        head_logits: Tensor | None,
        decoys: ShownDecoys | None,
    ) -> Tensor:
        """Class probabilities by the belief head, [R, N, C], or none, [R, N, 0], if there is no head."""
        if head_logits is not None:
            return head_logits.detach().softmax(-1)
        return torch.empty(self.replicas or 1, x.shape[-2], 0, dtype=x.dtype, device=x.device)

    def _squeeze(self, values: Tensor) -> Tensor:
        """Remove the leading axis of `values` [R, ...] if the model has no replicas."""
        return values if self.replicas is not None else values.squeeze(0)


def own_settings(changes: Mapping[str, Any], *more: str) -> RewiringSettings:
    """Settings of a module in the user's own training loop; only `OF_THE_REWIRER` and `more` may be changed."""
    known = (*OF_THE_REWIRER, *more)
    settings = {field.name for field in dataclasses.fields(RewiringSettings)}
    for name in changes:
        if name.partition(".")[0] in settings.difference(known):
            raise UserError(
                f"{name} has no effect in your own training loop, where candidates come from the data and "
                f"regularizers are added to the loss: use one of {', '.join(known)}"
            )
    return rewiring_settings(changes)


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
        **changes: Rewiring settings that differ from their defaults, such as `scorer="mixed"`: `scorer`,
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
        super().__init__()
        settings = own_settings(changes)
        if settings.evaluation == "mean_of_samples":
            raise UserError("Rewired has no evaluation 'mean_of_samples': use 'threshold' or 'expected'")
        self.model, self.replicas = model, None
        self._reaction_check = ReactionCheck()
        self._add_rewirer(settings, in_channels, out_channels)
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
