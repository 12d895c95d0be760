"""Every model that can be trained by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.baselines import BackboneModel, DropEdge, SDRFModel
from gumbel_mpnn.candidates.chosen import with_candidates
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.nn import Backbone, backbones
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.training.task import Task

Model = Backbone | GumbelMPNN | BackboneModel

models: Registry[Model] = Registry("model", reserved=("replicas", "seeds", "rewiring"))
models.include(backbones)
models.register("gumbel-mpnn", hands_on=backbones.all_defaults())(GumbelMPNN)
models.register("drop-edge", "dropedge", hands_on=backbones.all_defaults())(DropEdge)
models.register("sdrf", hands_on=backbones.all_defaults())(SDRFModel)


def prepare(data: Data, settings: Settings, progress: Callable[[int, int], None] | None = None) -> Data:
    """The data as the model of `settings` trains on them: with the graph or the candidates that it needs beforehand.

    `progress` is called with the steps done and all steps of a graph that is made.
    """
    model = models[settings.model]
    if issubclass(model, SDRFModel):
        data = model.prepare(data, settings, progress)
    return data if settings.rewiring is None else with_candidates(data, settings.rewiring)


def build_model(settings: Settings, task: Task, replicas: Sequence[Replica]) -> Model:
    """The model of `settings` with the replicas' own starts."""
    if settings.rewiring is not None and task.train_y is not None:
        raise DataError("a model that rewires trains on classes: leave out data.train_y")
    extra: dict[str, Any] = {} if settings.rewiring is None else {"rewiring": settings.rewiring}
    model = models[settings.model](
        task.num_features,
        out_channels=task.num_outputs,
        **settings.options,
        **extra,
        replicas=len(replicas),
        seeds=[replica.stream_seed for replica in replicas],
    )
    return model.to(task.y.device)
