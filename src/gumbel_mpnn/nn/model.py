"""Base class of the models that `fit` can train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from gumbel_mpnn.config import Registry, RewiringSettings, Settings
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.features import SparseFeatures
from gumbel_mpnn.nn.modules import ReplicaModule
from gumbel_mpnn.nn.replica_rng import ReplicaRNG

Report = Callable[[int, int], None]
"""Called with the number of steps done and the total number of steps."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a graph, to estimate the memory of a training step."""

    nodes: int
    arcs: int
    pairs: int
    given_pairs: int
    """Number of pairs that are edges of the given graph."""
    inputs: int
    """Number of feature entries."""
    on_gpu: bool = False
    """Whether kernels of our own walk along the arcs: they hold next to nothing of them."""
    in_16_bits: bool = False
    """Whether activations, and therefore the features of every replica, have 16 bits."""


@dataclass(frozen=True)
class Work:
    """What one replica does in a training step, to estimate its time."""

    rows: int
    """Rows of arrays that are fetched along arcs and pairs."""
    numbers: int
    """Numbers in these rows that are messages, or gradients of messages."""
    weighed: int
    """Numbers in these rows from which scores and gradients of weights are computed."""
    products: int
    """Operations of products with matrices."""

    def __add__(self, other: Work) -> Work:
        return Work(*(mine + more for mine, more in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: int) -> Work:
        return Work(*(times * mine for mine in astuple(self)))


def work_of_products(module: Module, sizes: Sizes, in_channels: int) -> Work:
    """Products of nodes with all matrices of `module`, forward and backward; features have no gradient."""
    matrices = [parameter.shape[-2:] for parameter in module.parameters() if parameter.dim() == 3]
    operations = (
        4 * sizes.inputs * wide if narrow == in_channels else 6 * sizes.nodes * narrow * wide
        for narrow, wide in matrices
        if narrow > 1  # not a bias
    )
    return Work(0, 0, 0, sum(operations))


COPIES_OF_A_LAYER = 6
"""Arrays of the size of a layer in use at the peak: those that autograd stores, and temporary ones."""
FUSED_ON_CPU = 2
"""As many fewer for a layer with dropout on a CPU: of ReLU and dropout, the result alone is kept."""


class TrainableModel(ReplicaModule, ABC):
    """A model with R replicas that `fit` can train by name.

    Register a subclass with `@models.register("my-model")`. Its constructor takes `in_channels`, `out_channels`,
    `replicas` and `seeds`; its other keyword arguments with a default are the options of the model.
    """

    rewires: ClassVar[bool] = False
    """Whether the constructor takes the settings of the table `rewiring` as the argument `rewiring`."""
    presets_of: ClassVar[tuple[str, ...]] = ()
    """Models whose preset is used if the model has none of its own, the first that has one. A backbone stands for the
    backbone that the user asks for."""
    space: ClassVar[Mapping[str, Any]] = {}
    """Options that `tune` searches by default, besides those of the base classes and of the backbone: a list of values
    or a range such as `{"low": 0.1, "high": 0.9}` for each. Learning rate and weight decay are searched anyway."""

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
            y: Labels [N] or [R, N].
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

    @property
    def width(self) -> int:
        """Number of channels of the widest layer."""
        return max((parameter.shape[-1] for parameter in self.parameters() if parameter.dim() == 3), default=1)

    def step_numbers(self, sizes: Sizes) -> int:
        """Upper bound on the numbers that one replica stores at the peak of a training step, besides its parameters.

        By default, every matrix counts as a layer that stores `COPIES_OF_A_LAYER` arrays of the size of its output.
        """
        outputs = sum(parameter.shape[-1] for parameter in self.parameters() if parameter.dim() == 3)
        return COPIES_OF_A_LAYER * sizes.nodes * outputs + 6 * sizes.arcs

    def step_work(self, sizes: Sizes, in_channels: int) -> Work:
        """What one replica does in a training step; by default, every matrix counts as a layer with messages."""
        outputs = [parameter.shape[-1] for parameter in self.parameters() if parameter.dim() == 3]
        along_arcs = Work(2 * sizes.arcs * len(outputs), 2 * sizes.arcs * sum(outputs), 0, 0)
        return along_arcs + work_of_products(self, sizes, in_channels)


models: Registry[TrainableModel] = Registry("model", reserved=("replicas", "seeds", "rewiring"))
