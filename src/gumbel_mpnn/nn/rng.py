"""One random stream per replica, so that the result of a replica does not depend on the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gumbel_mpnn.nn.kernels import gpu_kernels
from gumbel_mpnn.util.errors import UserError, whole_numbers


class ReplicaRNG:
    """Random numbers for R replicas, each with its own generator.

    Args:
        seeds: One seed per replica.
        purpose: Streams of different purposes are independent, for example `init` and `train`.
        device: Device of the random numbers.
    """

    def __init__(self, seeds: Sequence[int], purpose: str, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._start = derived = [derive_seed(seed, purpose) for seed in seeds]
        with torch.inference_mode(False):  # else they could not be changed in training
            self.seeds = torch.tensor(derived, device=self.device)
            self._calls = torch.zeros((), dtype=torch.int64, device=self.device)
        self._generators = [torch.Generator(self.device).manual_seed(seed) for seed in derived]

    def rewind(self) -> None:
        """Reset all streams to their start."""
        self._calls.zero_()
        if gpu_kernels(self.device, "replica") is None:  # else the generators are not used
            for generator, seed in zip(self._generators, self._start, strict=True):
                generator.manual_seed(seed)

    def __len__(self) -> int:
        return len(self._generators)

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Tensor:
        """Uniform random numbers in [low, high), [R, *shape]."""
        out = torch.empty(len(self), *shape, device=self.device)
        for row, generator in zip(out, self._generators, strict=True):
            row.uniform_(low, high, generator=generator)
        return out

    def noise(self, count: int) -> Tensor:
        """Uniform random numbers in [0, 1), [R, count]; on a GPU one kernel draws them for all replicas."""
        if kernels := gpu_kernels(self.device, "replica"):
            out: Tensor = kernels.fused_uniform(self.seeds, self.next_call(), count)
            return out
        return self.uniform((count,), 0.0, 1.0)

    def bernoulli(self, shape: Sequence[int], probability: float) -> tuple[Tensor, float]:
        """Mask [R, *shape] that is true with about `probability`, and the exact probability that was used.

        Each 64-bit draw gives four 16-bit numbers, which is several times faster than one draw per entry.
        """
        count = int(torch.Size(shape).numel())
        words = torch.empty(len(self), (count + 3) // 4, dtype=torch.int64, device=self.device)
        for row, generator in zip(words, self._generators, strict=True):
            row.random_(-(2**63), None, generator=generator)
        threshold = round(probability * _LEVELS)
        if threshold == 0:
            return torch.zeros(len(self), *shape, dtype=torch.bool, device=self.device), 0.0
        # The numbers are -2^15 to 2^15 - 1; with `<=` the bound is in this range even for probability 1.
        mask = words.view(torch.int16)[:, :count] <= threshold - 1 - _LEVELS // 2
        return mask.view(len(self), *shape), threshold / _LEVELS

    def next_call(self) -> Tensor:
        """Number of the next draw, for kernels that generate their own random numbers, int64 scalar."""
        self._calls += 1
        return self._calls.clone()

    def get_state(self) -> dict[str, Tensor]:
        """State of all streams, for `set_state`."""
        generators = torch.stack([generator.get_state() for generator in self._generators])
        return {"generators": generators, "calls": self._calls.clone()}

    def set_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore a state returned by `get_state`."""
        self._calls.copy_(state["calls"])
        for generator, row in zip(self._generators, state["generators"], strict=True):
            generator.set_state(row.cpu().clone())  # a copy, because torch reads from the start of the storage


def replica_seeds(seeds: Sequence[int] | None, count: int) -> list[int]:
    """One seed for each of `count` replicas: the given seeds, or new ones from torch's global generator."""
    if seeds is None:
        drawn: list[int] = torch.randint(2**62, (count,)).tolist()
        return drawn
    given = whole_numbers("seeds", seeds)
    if len(given) != count:
        raise UserError(f"seeds must have one entry per replica, {count}, not {len(given)}")
    return given


def derive_seed(seed: int, purpose: str) -> int:
    """Seed for one purpose, unrelated to those of other purposes and of adjacent seeds."""
    digest = hashlib.sha256(f"{purpose}/{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


_LEVELS = 2**16
