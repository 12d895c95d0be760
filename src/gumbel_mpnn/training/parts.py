"""Parts of a task: mini-batches of nodes that are trained on one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gumbel_mpnn.graph import partition, subgraphs

if TYPE_CHECKING:
    from gumbel_mpnn.training.task import Task


@dataclass(frozen=True, eq=False)
class Part:
    """Some nodes of a task, the nodes that they receive messages from (the halo), and all pairs among them."""

    number: int
    task: Task
    """Task of these nodes; nodes of the halo are in no mask."""
    nodes: Tensor
    """int64 [n], the number of each node in the whole task."""
    own: Tensor
    """bool [n], false for nodes of the halo."""
    pairs: Tensor
    """int64 [P], the number of each pair in the whole task."""
    own_pairs: Tensor
    """bool [P], true in one part for each pair of the whole task."""


def cut(task: Task, count: int) -> tuple[Part, ...]:
    """Cut a task on the CPU into at most `count` parts, with as few pairs between them as possible."""
    return tuple(
        Part(
            number,
            replace(
                task,
                features=task.features[found.nodes],
                graph=found.graph,
                y=task.y[found.nodes],
                train_mask=task.train_mask[:, found.nodes] & found.own,
                val_mask=task.val_mask[:, found.nodes] & found.own,
                test_mask=task.test_mask[:, found.nodes] & found.own,
                train_y=None if task.train_y is None else task.train_y[:, found.nodes],
            ),
            found.nodes,
            found.own,
            found.pairs,
            found.own_pairs,
        )
        for number, found in enumerate(subgraphs(task.graph, partition(task.graph, count)))
    )


@dataclass(frozen=True, eq=False)
class Batch:
    """What one backward pass of a group of replicas is computed from."""

    seen: Task
    """Features and graph; a part is still in the memory of the CPU."""
    targets: Tensor
    """Labels, [N] or [R, N]."""
    train_mask: Tensor
    """Training nodes, [R, N]."""
    weight: Tensor | None
    """Weights of the nodes in the classification loss, [R, N]; None for 1."""
    share: Tensor | None = None
    """Share of the training nodes of each replica that are in this part, [R]; None for the whole task."""
    number: int = 0

    def of_part(self, part: Part) -> Batch | None:
        """The batch of a part of this whole task; None if no replica has a training node there."""
        nodes, own = part.nodes, part.own
        mask = self.train_mask[:, nodes] & own
        if not mask.any():
            return None
        weights = torch.ones_like(self.train_mask, dtype=torch.float32) if self.weight is None else self.weight
        weight = weights[:, nodes]
        here, everywhere = (mask * weight).double().sum(-1), (self.train_mask * weights).double().sum(-1)
        # The mean of a replica without a training node here would be NaN. It is taken over another node, and its share
        # is 0, so that it counts nothing.
        without, first = ~mask.any(-1), own.nonzero()[0]
        mask[without, first], weight[without, first] = True, 1.0
        return Batch(
            seen=part.task,
            targets=self.targets[..., nodes],
            train_mask=mask,
            weight=None if self.weight is None else weight,
            share=(here / everywhere).float(),
            number=part.number,
        )

    def to(self, device: torch.device) -> Batch:
        """The batch on another device."""
        return replace(
            self,
            seen=self.seen.to(device),
            targets=self.targets.to(device),
            train_mask=self.train_mask.to(device),
            weight=None if self.weight is None else self.weight.to(device),
            share=None if self.share is None else self.share.to(device),
        )
