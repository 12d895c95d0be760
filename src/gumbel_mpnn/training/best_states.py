"""How far the replicas of a group are, and the best that each of them had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BestStates:
    """Tensors with a row for each replica, written in place: work on a GPU is replayed on the same memory."""

    best_val: Tensor
    best_loss: Tensor
    best_epoch: Tensor
    last_epoch: Tensor
    running: Tensor
    """Whether patience has not ended yet."""
    history: Tensor
    """Training loss, validation value and validation loss of every evaluation, [R, E, 3]."""
    best_state: dict[str, Tensor]

    @classmethod
    def of(cls, state: Mapping[str, Tensor], replicas: int, evaluations: int, device: torch.device) -> BestStates:
        """The progress of replicas that are in `state`, before their first step; room for so many evaluations."""
        epoch = torch.zeros(replicas, dtype=torch.int64, device=device)
        return cls(
            best_val=torch.full((replicas,), -torch.inf, dtype=torch.float64, device=device),
            best_loss=torch.full((replicas,), torch.inf, device=device),
            best_epoch=epoch,
            last_epoch=epoch.clone(),
            running=torch.ones_like(epoch, dtype=torch.bool),
            # Made once: small tensors that stay, among large ones that go, keep a CPU's memory from being used again.
            history=torch.zeros(replicas, evaluations, 3, dtype=torch.float64, device=device),
            best_state={name: value.clone() for name, value in state.items()},
        )

    def update(self, val: Tensor, loss: Tensor, state: Mapping[str, Tensor], epoch: Tensor, patience: int) -> None:
        """After an evaluation: keep the state of every running replica that is better than ever, stop the tired."""
        better = (val > self.best_val) | ((val == self.best_val) & (loss < self.best_loss))
        better &= self.running & torch.isfinite(loss)
        self.last_epoch.copy_(torch.where(self.running, epoch, self.last_epoch))
        if better.device.type != "cpu" or better.any():  # a GPU would have to be waited for
            self.best_val.copy_(torch.where(better, val, self.best_val))
            self.best_loss.copy_(torch.where(better, loss, self.best_loss))
            self.best_epoch.copy_(torch.where(better, epoch, self.best_epoch))
            for name, best in self.best_state.items():
                torch.where(better.view(-1, *[1] * (best.dim() - 1)), state[name], best, out=best)
        if patience:
            self.running.logical_and_(epoch - self.best_epoch < patience)

    def rows(self, places: list[int]) -> BestStates:
        """A copy of the replicas at these places."""
        return BestStates.from_tensors({name: value[places] for name, value in self.tensors().items()})

    def put(self, places: list[int], rows: BestStates) -> None:
        """Write what `rows` gave, and what became of it, back to the same places."""
        ours = self.tensors()
        for name, value in rows.tensors().items():
            ours[name][places] = value

    def tensors(self) -> dict[str, Tensor]:
        """Everything by name; not a copy."""
        plain = {name: value for name, value in vars(self).items() if name != "best_state"}
        return plain | {f"best/{name}": value for name, value in self.best_state.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> BestStates:
        """What `tensors` gave."""
        state = {name.removeprefix("best/"): value for name, value in tensors.items() if name.startswith("best/")}
        plain = {name: value for name, value in tensors.items() if not name.startswith("best/")}
        return cls(best_state=state, **plain)
