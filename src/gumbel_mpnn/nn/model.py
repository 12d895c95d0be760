"""What `fit` asks of a model: how it is prepared and trained, and what it learned about the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.config import Registry, Settings
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.modules import ReplicaModule
from gumbel_mpnn.nn.replica_rng import ReplicaRNG

Report = Callable[[int, int], None]
"""Called with the steps done and the number of all steps."""


@dataclass(frozen=True)
class Sizes:
    """The size of what a model trains on."""

    nodes: int
    arcs: int
    pairs: int
    given_pairs: int
    """Pairs that are edges of the given graph."""
    inputs: int
    """Numbers in the features."""
    in_16_bits: bool = False
    """Whether activations, and so the features of every replica, are in 16 bits."""


COPIES_OF_A_LAYER = 6
"""Arrays of a layer's size alive at the peak: what autograd keeps and what the step makes in passing."""


class TrainableModel(ReplicaModule, ABC):
    """A model that `fit` can train by name: a module that holds R replicas, with the hooks below.

    Register a subclass in one line, `@models.register("my-model")`. Its constructor takes `in_channels`,
    `out_channels`, `replicas` and `seeds`; its other keywords with a default are the options of the model.
    """

    rewires: ClassVar[bool] = False
    """Whether the model has the settings of the table `rewiring` and takes them as `rewiring=`."""
    default_backbone: ClassVar[str | None] = None
    """The backbone whose preset the model borrows where it has none of its own."""

    @property
    @abstractmethod
    def rng(self) -> ReplicaRNG:
        """The random numbers of training."""

    @abstractmethod
    def training_loss(
        self, x: Tensor | SparseFeatures, graph: PairGraph, y: Tensor, train_mask: Tensor, progress: Tensor
    ) -> Tensor:
        """The loss of every replica, [R].

        Args:
            x: Features [N, in].
            graph: The graph.
            y: Labels [N] or [R, N].
            train_mask: Training nodes of every replica, [R, N].
            progress: Share of the epochs done, a scalar.
        """

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """The graph that a model of these settings trains on, made once before training; by default `data` itself."""
        return data

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Groups of parameters with their learning rates and weight decays, as torch's optimizers take them."""
        train = settings.train
        return [{"params": list(self.parameters()), "lr": train.lr, "weight_decay": train.weight_decay}]

    def pair_probability(self, x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor | None:
        """How likely every pair is to be an edge, [R, P]; None for a model that learns no graph."""
        return None

    @property
    def width(self) -> int:
        """Channels of the widest layer."""
        return max((parameter.shape[-1] for parameter in self.parameters() if parameter.dim() == 3), default=1)

    def step_numbers(self, sizes: Sizes) -> int:
        """How many numbers one replica holds at the peak of a training step, beside its parameters: a bound from above.

        By default every matrix counts as a layer that keeps `COPIES_OF_A_LAYER` arrays of its output.
        """
        outputs = sum(parameter.shape[-1] for parameter in self.parameters() if parameter.dim() == 3)
        return COPIES_OF_A_LAYER * sizes.nodes * outputs + 6 * sizes.arcs


models: Registry[TrainableModel] = Registry("model", reserved=("replicas", "seeds", "rewiring"))
