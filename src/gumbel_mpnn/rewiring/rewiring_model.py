"""What models with a rewirer share: pairs are scored, a graph is drawn or weighed, and the learned one given out."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError, check_between
from gumbel_mpnn.config import RewiringSettings, rewiring_settings
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.inputs import check_features, model_input
from gumbel_mpnn.nn.modules import ReplicaModule, cross_entropy, evaluating
from gumbel_mpnn.rewiring.decoys import Flood
from gumbel_mpnn.rewiring.edge_models import BeliefHead, NodeView
from gumbel_mpnn.rewiring.regularizers.base import labels_of
from gumbel_mpnn.rewiring.rewired_graph import RewiredGraph, as_data
from gumbel_mpnn.rewiring.rewirer import Rewirer

OF_THE_REWIRER = ("scorer", "channels", "origin", "keep", "add", "tau", "tau_end", "hard", "evaluation")
"""Settings that act in a loop of one's own; the others are those of `fit`, and of what is added to a loss."""


class RewiringModel(ReplicaModule, ABC):
    """A model whose graph a rewirer makes; `GumbelMPNN` and `Rewired` differ in what they do on that graph."""

    in_channels: int
    rewirer: Rewirer
    belief_head: BeliefHead | None

    def __init__(self, settings: RewiringSettings, replicas: int | None) -> None:
        super().__init__()
        self.settings, self.replicas = settings, replicas
        self._progress = 0.0

    @property
    def progress(self) -> float:
        """Share of the epochs done, 0 to 1: set it in your loop and the temperature falls from `tau` to `tau_end`."""
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
        """To be added to the loss of a loop of one's own: it trains the head whose class beliefs some scorers look at.

        Only `data.y` [N] of training nodes (`data.train_mask` [N] or [N, R]) is used; nodes without a label (below 0)
        are left out. A scorer that looks at no
        beliefs (`bilinear`), or at those of the backbone (`beliefs="graph"`), needs none: 0.

        Returns:
            One value for each replica, [R]; a scalar where the model has no replicas.
        """
        if self.belief_head is None:
            return self._without_axis(self.rewirer.origin.new_zeros(len(self.rewirer.origin)))
        x = check_features(data.x, self.in_channels, self.rewirer.origin.dtype)
        logits = self.belief_head(x, self.rng)
        return self._without_axis(cross_entropy(logits, *labels_of(data, logits, needed=True)))

    @torch.no_grad()
    def pair_probability(self, x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor:
        """How likely every pair is to be an edge, as in evaluation, [R, P]."""
        x, graph = self._read(x, graph)
        with evaluating(self):
            theta: Tensor = self.rewirer(self._view(x, graph)[0], graph)
        return theta.sigmoid()

    def rewire(self, data: Data, threshold: float = 0.5, graph: PairGraph | None = None) -> Data:
        """The learned graph, also of unseen graphs: `edge_index`, `edge_probability`, `edge_weight` and `edge_origin`.

        `edge_weight` is the probability times the weight that an edge was given with (1 for new edges, and where there
        were none): on that graph, with `threshold=0`, the model is evaluated if its `evaluation` is `expected`.
        Of a `Batch` it is a `Batch`, whose `to_data_list()` has the learned graph of each.

        Args:
            data: A graph, with candidates if edges may be added.
            threshold: Pairs less likely than this are left out; 0 keeps all.
            graph: Its pairs, where they are not the undirected ones: `PairGraph.of(data, undirected=False)`.
        """
        x, graph = self._read(data, graph)
        return as_data(graph, self.pair_probability(x, graph).mean(0), data, threshold)

    def _read(
        self,
        x: Tensor | SparseFeatures | Data,
        graph: PairGraph | Tensor | None,
        edge_weight: Tensor | None = None,
    ) -> tuple[Tensor | SparseFeatures, PairGraph]:
        """Features and pairs of one call, candidates among them, or a `UserError` that says what does not fit."""
        if edge_weight is not None and not isinstance(graph, Tensor):
            raise UserError(
                "edge_weight goes with an edge_index [2, E]: a Data and a PairGraph bring weights of their own"
            )
        dtype = self.rewirer.origin.dtype
        return model_input(x, graph, edge_weight, in_channels=self.in_channels, dtype=dtype, candidates=True)[:2]

    def _add_rewirer(self, in_channels: int, out_channels: int) -> None:
        count, self.in_channels = self.replicas or 1, in_channels
        self.rewirer = Rewirer(in_channels, out_channels, count, self.settings)
        needs_head = self.rewirer.scorer.uses_beliefs and self.settings.beliefs == "features"
        self.belief_head = BeliefHead(count, in_channels, out_channels) if needs_head else None

    def _init_rewirer(self, seeds: Sequence[int]) -> None:
        """Draw the parameters of the rewirer and of the belief head anew."""
        rng = ReplicaRNG(seeds, "init rewiring")
        for part in (self.rewirer, self.belief_head):
            if part is not None:
                part.init_parameters(rng)

    def _rewired(self, x: Tensor | SparseFeatures, graph: PairGraph) -> RewiredGraph:
        """One draw in training, the graph that `evaluation` names otherwise."""
        theta = self.rewirer(self._view(x, graph)[0], graph)
        if self.training:
            return self.rewirer.draw(theta, graph, self.rng, self.progress)
        return self.rewirer.evaluate(theta, graph)

    def _view(
        self, x: Tensor | SparseFeatures, graph: PairGraph, flood: Flood | None = None
    ) -> tuple[NodeView, Tensor | None]:
        """What the scorer may look at, and the logits of the belief head where there is one."""
        given = (graph.is_original if flood is None else flood.given).to(x.dtype)
        if self.belief_head is None:
            return NodeView(x, self._beliefs(x, graph, given), given), None
        logits: Tensor = self.belief_head(x, self.rng)
        return NodeView(x, logits.detach().softmax(-1), given), logits

    def _beliefs(self, x: Tensor | SparseFeatures, graph: PairGraph, given: Tensor) -> Tensor:
        """Beliefs where there is no head for them: of no class, [R, N, 0]."""
        return torch.empty(self.replicas or 1, x.shape[0], 0, dtype=x.dtype, device=x.device)

    def _without_axis(self, values: Tensor) -> Tensor:
        """Values of every replica, [R, …]; without that axis where there are no replicas."""
        return values if self.replicas is not None else values.squeeze(0)


def own_settings(changes: Mapping[str, Any], *more: str) -> RewiringSettings:
    """Settings of a module in a loop of one's own: those of `OF_THE_REWIRER` and `more`; the others are refused."""
    known = (*OF_THE_REWIRER, *more)
    for field in dataclasses.fields(RewiringSettings):
        if field.name in changes and field.name not in known:
            raise UserError(
                f"{field.name} has no effect in a loop of your own, where candidates are the data's and regularizers "
                f"are added to the loss; known here: {', '.join(known)}"
            )
    return rewiring_settings(changes)
