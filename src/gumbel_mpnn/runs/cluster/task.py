"""What a task of the cluster does, in a process on any machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch_geometric.data import Data

from gumbel_mpnn._version import __version__
from gumbel_mpnn.runs.fitting import Place, train_here
from gumbel_mpnn.runs.spec import Workload
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.settings.plugins import load_plugins
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import digest

Files = dict[str, tuple[str, dict[str, bytes]]]
"""Checksum and files of each run, by its name."""


@dataclass(frozen=True)
class Shares:
    """Threads and memory of a task."""

    threads: int
    gpus: float
    """Share of a GPU and its memory."""

    def use(self, device: str) -> int:
        """Use as many threads in this process, with the plugins of the user; returns the bytes that it may use."""
        load_plugins()
        torch.set_num_threads(self.threads)
        where = pick_device(device)
        share = self.gpus if where.type == "cuda" else self.threads / (os.cpu_count() or 1)
        return int(available_bytes(where) * min(1.0, share))


@dataclass(frozen=True)
class Group:
    """What a task must know, besides the graph."""

    settings: Settings
    data_hash: str
    replicas: list[Replica]
    place: Place
    """Where and how it trains; without a folder, the task returns the files of its runs."""
    mark: Path | None
    """File that exists as long as the calling process lives, if the folder of runs is on a shared disk."""
    shares: Shares


def train_group(data: Data, work: Group) -> Files | None:
    """Train one group in a process of the cluster; returns the files of its runs if it has no shared folder."""
    place, memory = work.place, work.shares.use(work.place.device)
    place = replace(place, memory=memory if place.memory is None else place.memory)
    workload = Workload(work.settings, data, work.data_hash, work.replicas)
    if place.runs is not None:
        if work.mark is not None and not work.mark.exists():
            raise UserError(
                f"{socket.gethostname()} does not have the folder {place.runs}, or the calling process has ended: let"
                " the calling process write the runs (--store driver)"
            )
        train_here(workload, place.folder(workload, place.runs), place)
        return None
    with TemporaryDirectory() as runs:
        folder = place.folder(workload, runs)
        train_here(workload, folder, place)
        found = {replica: folder.files(replica) for replica in work.replicas}
        return {str(replica): (digest(files.items()), files) for replica, files in found.items()}


def call(work: Callable[[int], None], shares: Shares, device: str) -> None:
    """Work in a process of the cluster."""
    work(shares.use(device))


def versions() -> dict[str, str]:
    """Versions that must be the same on all machines."""
    return {"gumbel-mpnn": __version__, "torch": version("torch").partition("+")[0]}
