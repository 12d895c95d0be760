"""What is known of one finished run, and the summary of several."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from gumbel_mpnn._version import __version__
from gumbel_mpnn.config import Settings
from gumbel_mpnn.training import Outcome


@dataclass(frozen=True)
class Record:
    """A finished run: its settings, its figures and the machine that made them."""

    fingerprint: str
    data_hash: str
    settings: dict[str, Any]
    split: int
    seed: int
    metric: str
    val: float
    test: float
    best_epoch: int
    epochs: int
    seconds: float
    machine: dict[str, str]

    @classmethod
    def of(cls, outcome: Outcome, settings: Settings, data_hash: str, metric: str, device: torch.device) -> Record:
        """The record of `outcome`."""
        return cls(
            fingerprint=settings.fingerprint(data_hash),
            data_hash=data_hash,
            settings=settings.to_dict(),
            split=outcome.replica.split,
            seed=outcome.replica.seed,
            metric=metric,
            val=outcome.val,
            test=outcome.test,
            best_epoch=outcome.best_epoch,
            epochs=outcome.epochs,
            seconds=outcome.seconds,
            machine=describe_machine(device),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """Mean, sample standard deviation, standard error and number of some figures, as shares of 1."""

    mean: float
    std: float
    stderr: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Summary:
        """The summary of `values`; the spread of a single one is 0."""
        values = list(values)
        n, mean = len(values), math.fsum(values) / len(values)
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else 0.0
        return cls(mean=mean, std=std, stderr=std / math.sqrt(n), n=n)

    def __str__(self) -> str:
        return f"{100 * self.mean:.2f} ± {100 * self.std:.2f} (std of {self.n})"


def describe_machine(device: torch.device) -> dict[str, str]:
    """Device and versions that a figure was made with."""
    import torch_geometric

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": f"{device.type} ({name})",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "gumbel_mpnn": __version__,
    }
