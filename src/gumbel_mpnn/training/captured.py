"""What a step of training changes in place, as CUDA graphs need it: best states, moments of Adam; and their replay."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from gumbel_mpnn.settings import TrainSettings

MOST_LOSS = 1e10
"""Larger validation losses mean that training diverged: the scores of the classes differ by as much."""
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""State of Adam for each parameter."""
WARM_UP = 3
"""Ordinary calls before the capture, which compile kernels and allocate workspaces and the moments of Adam."""


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


class Adam:
    """Compute the same as `torch.optim.Adam`, whose class imports torch's compiler: a second before the first step."""

    def __init__(self, groups: Sequence[Mapping[str, Any]]) -> None:
        self.groups = groups
        self.params: list[Tensor] = [param for group in groups for param in group["params"]]
        self.on_gpu = self.params[0].is_cuda
        device = self.params[0].device  # that of the steps too, since a captured step counts on the GPU
        self.state = {
            param: {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(param, requires_grad=False),
                "exp_avg_sq": torch.zeros_like(param, requires_grad=False),
            }
            for param in self.params
        }

    @torch.no_grad()
    def step(self) -> None:
        """Change all parameters that have gradients."""
        for group in self.groups:
            params = [param for param in group["params"] if param.grad is not None]
            steps, means, squares = ([self.state[param][name] for param in params] for name in MOMENTS)
            adam(
                params,
                [param.grad for param in params if param.grad is not None],
                means,
                squares,
                [],
                steps,
                fused=self.on_gpu,
                foreach=not self.on_gpu,
                capturable=self.on_gpu,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=1e-8,
                maximize=False,
            )

    def tensors(self) -> dict[str, Tensor]:
        """State by the number of the parameter and by name, such as `0/exp_avg`."""
        return {f"{k}/{name}": self.state[param][name] for k, param in enumerate(self.params) for name in MOMENTS}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from `tensors` of an optimizer with the same parameters."""
        for key, value in self.tensors().items():
            value.copy_(tensors[key])


class Replay:
    """Calls `body`; on a GPU, from the fourth call on, as a CUDA graph.

    `body` has no arguments and returns nothing: it changes tensors in place.
    """

    def __init__(self, body: Callable[[], None], device: torch.device) -> None:
        self.body = body
        self.stream = _stream(device) if device.type == "cuda" else None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.calls = 0

    def __call__(self) -> None:
        """Run the body once."""
        if self.stream is None:
            self.body()
            return
        if self.graph is None and self.calls < WARM_UP:
            self.calls += 1
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.body()
            torch.cuda.current_stream().wait_stream(self.stream)
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with _no_garbage_collection(), torch.cuda.graph(self.graph, stream=self.stream):
                self.body()
        self.graph.replay()


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One stream per device, since torch allocates a cuBLAS workspace for every stream and never frees it."""
    return torch.cuda.Stream(device)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect garbage now and not in the block: freeing an old CUDA graph or event during a capture breaks it."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
