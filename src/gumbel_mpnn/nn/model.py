"""Base class of the models that `fit` can train, their loss, and their evaluation mode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.layers import ReplicaModule
from gumbel_mpnn.nn.replica import total
from gumbel_mpnn.nn.rng import ReplicaRNG
from gumbel_mpnn.settings import Registry, RewiringSettings, Settings
from gumbel_mpnn.util.errors import UserError

Report = Callable[[int, int], None]
"""Called with the number of steps done and the total number of steps."""


class TrainableModel(ReplicaModule, ABC):
    """A model with R replicas that `fit` can train by name.

    Register a subclass with `@models.register("my-model")`. Its constructor takes the keyword arguments `in_channels`,
    `out_channels`, `replicas` and `seeds`; its other arguments with a default are the options of the model.
    """

    rewires: ClassVar[bool] = False
    """Whether the constructor takes the settings of the table `rewiring` as the argument `rewiring`."""
    presets_of: ClassVar[tuple[str, ...]] = ()
    """Models whose preset is used if the model has none of its own, the first that has one. A backbone stands for the
    backbone that the user asks for."""
    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default, besides those of the base classes and of the backbone: a list of values
    or a range such as `{"low": 0.1, "high": 0.9}` for each. Learning rate and weight decay are searched anyway."""
    samples: int = 1
    """Number of graphs on which a training step computes predictions, which take as much memory."""

    @property
    @abstractmethod
    def rng(self) -> ReplicaRNG:
        """Random streams of training, one per replica."""

    @abstractmethod
    def training_loss(
        self,
        x: Tensor | SparseFeatures,
        graph: PairGraph,
        y: Tensor,
        train_mask: Tensor,
        progress: Tensor,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Loss of every replica, [R].

        Args:
            x: Features [N, in], or [R, N, in] if they differ by replica.
            graph: Graph to train on.
            y: Labels, [N].
            train_mask: Training nodes of every replica, [R, N].
            progress: Share of the epochs done, a scalar.
            weight: Weight of every node in the classification loss, [R, N]; None for 1.
        """

    @classmethod
    def settle(cls, rewiring: RewiringSettings) -> RewiringSettings:
        """Rewiring settings that the model uses when asked for `rewiring`: the same by default."""
        return rewiring

    @classmethod
    def prepare(cls, data: Data, settings: Settings, report: Report | None = None) -> Data:
        """Prepare the graph once before training; returns `data` by default."""
        return data

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Groups of parameters with learning rates and weight decays, in the format of torch's optimizers."""
        train = settings.train
        return [{"params": list(self.parameters()), "lr": train.lr, "weight_decay": train.weight_decay}]

    def pair_probability(self, x: Tensor | SparseFeatures, graph: PairGraph) -> Tensor | None:
        """Probability of every pair to be an edge, [R, P]; None for a model that does not learn a graph."""
        return None


models: Registry[TrainableModel] = Registry(
    "model", reserved=("in_channels", "out_channels", "replicas", "seeds", "rewiring")
)


def cross_entropy(logits: Tensor, y: Tensor, mask: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean cross-entropy over the nodes in each replica's mask: [R, N, C], [N], [R, N] → [R].

    With a `weight` of every node, [R, N], it is the weighted mean.
    """
    labels = y.clamp(min=0).expand(logits.shape[:2])  # no mask contains an unlabelled node
    each = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    counted = mask if weight is None else mask * weight
    return total(each * counted) / total(counted)


def check_finite(model: nn.Module) -> None:
    """Raise a `UserError` if a parameter or a buffer of a model is not finite: its results would mean nothing."""
    for name, value in model.state_dict().items():
        if isinstance(value, Tensor) and value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise UserError(
                f"{name} of this model has values that are NaN or infinite, so that its results mean nothing: its"
                " training diverged, so train it again with a smaller learning rate"
            )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put `model` in evaluation mode, and restore the mode of each of its modules afterwards, also after an error."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
