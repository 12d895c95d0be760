"""Best states and history of a group of replicas in training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.settings import TrainSettings

MOST_LOSS = 1e10
"""Larger validation losses mean that training diverged: the scores of the classes differ by as much."""


@dataclass(frozen=True)
class BestStates:
    """Tensors with one row per replica, changed in place, since CUDA graphs use fixed memory."""

    best_val: Tensor
    best_loss: Tensor
    best_epoch: Tensor
    last_epoch: Tensor
    running: Tensor
    """Whether the replica has not run out of patience."""
    history: Tensor
    """Training loss, validation value and validation loss of every evaluation, [R, E, 3]."""
    best_state: dict[str, Tensor]

    @classmethod
    def of(cls, state: Mapping[str, Tensor], replicas: int, evaluations: int, device: torch.device) -> BestStates:
        """Best states before the first step, with memory for the history of all evaluations."""
        epoch = torch.zeros(replicas, dtype=torch.int64, device=device)
        return cls(
            best_val=torch.full((replicas,), -torch.inf, dtype=torch.float64, device=device),
            best_loss=torch.full((replicas,), torch.inf, device=device),
            best_epoch=epoch,
            last_epoch=epoch.clone(),
            running=torch.ones_like(epoch, dtype=torch.bool),
            # Allocated once: many small tensors between large temporary ones would fragment the memory of a CPU.
            history=torch.zeros(replicas, evaluations, 3, dtype=torch.float64, device=device),
            best_state={name: value.clone() for name, value in state.items()},
        )

    def update(
        self, val: Tensor, loss: Tensor, state: Mapping[str, Tensor], epoch: Tensor, train: TrainSettings
    ) -> None:
        """After an evaluation, store the states of replicas that improved and stop those out of patience.

        With `train.select="last"`, the latest state counts as an improvement. States before the epoch
        `train.select_from` are not stored.
        """
        better = (val > self.best_val) | ((val == self.best_val) & (loss < self.best_loss))
        if train.select == "last":
            better = torch.ones_like(better)
        better &= self.running & (loss < MOST_LOSS) & (epoch >= train.first_kept)  # false for NaN
        self.last_epoch.copy_(torch.where(self.running, epoch, self.last_epoch))
        if better.device.type != "cpu" or better.any():  # on a GPU, the check would wait for the device
            self.best_val.copy_(torch.where(better, val, self.best_val))
            self.best_loss.copy_(torch.where(better, loss, self.best_loss))
            self.best_epoch.copy_(torch.where(better, epoch, self.best_epoch))
            for name, best in self.best_state.items():
                torch.where(better.view(-1, *[1] * (best.dim() - 1)), state[name], best, out=best)
        if train.patience:
            self.running.logical_and_(epoch - self.best_epoch.clamp(min=train.first_kept) < train.patience)

    def rows(self, places: list[int]) -> BestStates:
        """Copy the rows at `places`."""
        return BestStates.from_tensors({name: value[places] for name, value in self.tensors().items()})

    def put(self, places: list[int], rows: BestStates) -> None:
        """Write `rows` back to `places`."""
        ours = self.tensors()
        for name, value in rows.tensors().items():
            ours[name][places] = value

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, not copied."""
        plain = {name: value for name, value in vars(self).items() if name != "best_state"}
        return plain | {f"best/{name}": value for name, value in self.best_state.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> BestStates:
        """Best states from the result of `tensors`."""
        state = {name.removeprefix("best/"): value for name, value in tensors.items() if name.startswith("best/")}
        plain = {name: value for name, value in tensors.items() if not name.startswith("best/")}
        return cls(best_state=state, **plain)
