"""Processes that train on the parts of one graph together, as `torchrun` starts them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.launch import is_launched
from gumbel_mpnn.config import Settings

TIMEOUT = timedelta(hours=2)
"""Time that a process waits for the others: as long as the first one may prepare a graph. A process that ends is
noticed at once."""

T = TypeVar("T")


class LostProcessError(UserError):
    """Another process of the job has ended."""


@dataclass(frozen=True)
class Processes:
    """The processes of a job, which hold the same model and divide the parts among them; by default, this one alone."""

    rank: int = 0
    count: int = 1

    @classmethod
    def of(cls, settings: Settings) -> Processes:
        """The processes that train a setting: all of a job if there are parts to divide."""
        if settings.train.partitions == 1 or not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def share_of(self, parts: Sequence[T]) -> Sequence[T]:
        """The parts of this process."""
        return parts[self.rank :: self.count]

    def add_up(self, values: Tensor) -> None:
        """Replace `values` by their sum over all processes."""
        if self.count > 1:
            _together(lambda: dist.all_reduce(values))

    def add_up_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace the gradients by their sums over all processes."""
        if self.count == 1:
            return
        learned = [parameter for parameter in parameters if parameter.requires_grad]
        present = learned[0].new_tensor([parameter.grad is not None for parameter in learned])
        given = [torch.zeros_like(each) if each.grad is None else each.grad for each in learned]
        joined = torch.cat([present, *(gradient.flatten() for gradient in given)])
        self.add_up(joined)
        present, *sums = joined.split([len(learned), *(each.numel() for each in learned)])
        for parameter, somewhere, gradient in zip(learned, present.tolist(), sums, strict=True):
            parameter.grad = gradient.view_as(parameter) if somewhere else None

    def take_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by those of the first process."""
        if self.count > 1:
            for tensor in tensors:
                _together(lambda tensor=tensor: dist.broadcast(tensor, 0))  # type: ignore[misc]

    def text_of_first(self, text: str) -> str:
        """The text that the first process gives."""
        if self.count == 1:
            return text
        content = torch.tensor(list(text.encode()), dtype=torch.uint8)
        size = torch.tensor(len(content))
        self.take_from_first([size])
        content = content if self.is_first else torch.empty(int(size), dtype=torch.uint8)
        self.take_from_first([content])
        return bytes(content.tolist()).decode()

    def any(self, value: bool) -> bool:
        """Whether the value is true in any process."""
        if self.count == 1:
            return value
        total = torch.tensor(int(value))
        self.add_up(total)
        return bool(total)

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """Run the block in the first process, then in the others, which find its results in the cache."""
        if not self.is_first:
            self.any(False)
        yield
        if self.is_first:
            self.any(False)


ALONE = Processes()


@contextmanager
def job(device: torch.device, settings: Settings) -> Iterator[None]:
    """Join the processes that `torchrun` has started with this one, if it did, for the time of the block."""
    if not is_launched():
        yield
        return
    count, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    if settings.train.partitions < count:
        raise UserError(
            f"this job has {count} processes, which train on the parts of a graph: set --partitions to {count} or more"
        )
    if device.type == "cuda":
        if local >= torch.cuda.device_count():
            raise UserError(f"there are {torch.cuda.device_count()} GPUs here: start as many processes, or fewer")
        torch.cuda.set_device(local)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    _together(lambda: dist.init_process_group(backend, timeout=TIMEOUT))
    yield
    # Not after an error: the others may be waiting, and this process would wait for them.
    dist.destroy_process_group()


def _together(call: Callable[[], object]) -> None:
    """Communicate; what torch raises if a process is gone becomes a sentence."""
    try:
        call()
    except RuntimeError as error:
        raise LostProcessError(
            "another process of this job has ended, so that this one cannot go on: repeat the command to continue from"
            " the last checkpoint"
        ) from error
