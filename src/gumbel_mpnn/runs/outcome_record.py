"""The record of a run that has just been trained."""

from __future__ import annotations

import platform

import torch

from gumbel_mpnn._version import __version__
from gumbel_mpnn.config import Settings
from gumbel_mpnn.runs.query import Record
from gumbel_mpnn.training import Outcome


def record_of(outcome: Outcome, settings: Settings, data_hash: str, metric: str, device: torch.device) -> Record:
    """The record of `outcome`."""
    return Record(
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
