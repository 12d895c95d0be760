"""One run of a setting, by its split and seed."""

from __future__ import annotations

import re
from dataclasses import dataclass

REPLICA_NAME = re.compile(r"split(\d+)-seed(-?\d+)")
"""What `str` gives a replica, and what its folder is called."""


@dataclass(frozen=True, order=True)
class Replica:
    """One training run of a setting: the split it trains on and the seed it starts from."""

    split: int
    seed: int

    def __str__(self) -> str:
        return f"split{self.split}-seed{self.seed}"

    @classmethod
    def parse(cls, name: str) -> Replica:
        """The replica that `str` gave this name."""
        match = REPLICA_NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not the name of a replica")
        return cls(int(match[1]), int(match[2]))

    @property
    def stream_seed(self) -> int:
        """The seed of its random stream, different for every split too."""
        return self.seed * 1_000_003 + self.split
