"""Replicas: runs of one setting with different splits and seeds."""

from __future__ import annotations

import re
from dataclasses import dataclass

REPLICA_NAME = re.compile(r"split(\d+)-seed(-?\d+)")
"""Name of a replica, as returned by `str`; also the name of its folder."""


@dataclass(frozen=True, order=True)
class Replica:
    """One run of a setting: a split and a seed."""

    split: int
    seed: int

    def __str__(self) -> str:
        return f"split{self.split}-seed{self.seed}"

    @classmethod
    def parse(cls, name: str) -> Replica:
        """Replica with a name that was returned by `str`."""
        match = REPLICA_NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not the name of a replica")
        return cls(int(match[1]), int(match[2]))

    @property
    def stream_seed(self) -> int:
        """Seed of the random stream, which differs between splits as well."""
        return self.seed * 1_000_003 + self.split
