"""One random stream per replica, so that a replica's result does not depend on its neighbors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import UserError, whole_numbers
from gumbel_mpnn.nn.kernels import gpu_kernels


class ReplicaRNG:
    """Random numbers for R replicas, each drawn from a generator of its own."""

    def __init__(self, seeds: Sequence[int], purpose: str, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        with torch.inference_mode(False):  # else they could not be counted on in training
            self.seeds = torch.tensor([derive_seed(seed, purpose) for seed in seeds], device=device)
            self._calls = torch.zeros((), dtype=torch.int64, device=device)
        self._generators = [torch.Generator(self.device).manual_seed(derive_seed(seed, purpose)) for seed in seeds]

    def rewind(self) -> None:
        """Start all streams anew."""
        self._calls.zero_()
        if gpu_kernels(self.device, "random") is None:  # else nothing is drawn from the generators
            for generator in self._generators:
                generator.manual_seed(generator.initial_seed())

    def __len__(self) -> int:
        return len(self._generators)

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Tensor:
        """Uniform numbers in [low, high), [R, *shape]."""
        out = torch.empty(len(self), *shape, device=self.device)
        for row, generator in zip(out, self._generators, strict=True):
            row.uniform_(low, high, generator=generator)
        return out

    def noise(self, count: int) -> Tensor:
        """`count` uniform numbers in [0, 1) for each replica, [R, count]; one kernel for all of them on a GPU."""
        if kernels := gpu_kernels(self.device, "random"):
            out: Tensor = kernels.fused_uniform(self.seeds, self.next_call(), count)
            return out
        return self.uniform((count,), 0.0, 1.0)

    def keep(self, shape: Sequence[int], probability: float) -> tuple[Tensor, float]:
        """A mask [R, *shape] that is true with about `probability`, and the exact probability it was drawn with.

        Four 16-bit numbers are cut from each 64-bit draw: several times faster than one draw for each entry.
        """
        count = int(torch.Size(shape).numel())
        words = torch.empty(len(self), (count + 3) // 4, dtype=torch.int64, device=self.device)
        for row, generator in zip(words, self._generators, strict=True):
            row.random_(-(2**63), None, generator=generator)
        threshold = round(probability * _LEVELS)
        if threshold == 0:
            return torch.zeros(len(self), *shape, dtype=torch.bool, device=self.device), 0.0
        # The numbers run from -2^15 to 2^15 - 1; `<=` so that the bound is one of them even when all are kept.
        mask = words.view(torch.int16)[:, :count] <= threshold - 1 - _LEVELS // 2
        return mask.view(len(self), *shape), threshold / _LEVELS

    def next_call(self) -> Tensor:
        """The number of the next draw of a kernel that makes its random numbers itself, int64 scalar."""
        self._calls += 1
        return self._calls.clone()

    def get_state(self) -> dict[str, Tensor]:
        """Where all streams stand."""
        generators = torch.stack([generator.get_state() for generator in self._generators])
        return {"generators": generators, "calls": self._calls.clone()}

    def set_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on where `get_state` was called."""
        self._calls.copy_(state["calls"])
        for generator, row in zip(self._generators, state["generators"], strict=True):
            generator.set_state(row.cpu().clone())  # a row of its own: torch reads from its storage's start


def replica_seeds(seeds: Sequence[int] | None, count: int) -> list[int]:
    """A seed for each of `count` replicas: the given ones, or new ones from torch's global generator."""
    if seeds is None:
        drawn: list[int] = torch.randint(2**62, (count,)).tolist()
        return drawn
    given = whole_numbers("seeds", seeds)
    if len(given) != count:
        raise UserError(f"{count} replicas need as many seeds, not {len(given)}")
    return given


def derive_seed(seed: int, purpose: str) -> int:
    """A seed for one purpose, unrelated to those of other purposes and of neighboring seeds."""
    digest = hashlib.sha256(f"{purpose}/{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


_LEVELS = 2**16
