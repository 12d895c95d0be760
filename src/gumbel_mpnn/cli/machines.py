"""Options that say where runs are trained: on this machine or on a Ray cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.launch import is_launched

if TYPE_CHECKING:
    from gumbel_mpnn.runs import Machines


class Store(StrEnum):
    """Who writes runs that a cluster trains."""

    auto = "auto"
    shared = "shared"
    driver = "driver"


OnOption = Annotated[
    str,
    typer.Option(
        "--on",
        help="local; ray for a Ray cluster that is started here, or that RAY_ADDRESS names; or one that is running:"
        " ray:auto, ray:HOST:PORT or ray://HOST:PORT.",
    ),
]
WorkersOption = Annotated[
    int,
    typer.Option(help="Number of processes of this machine that train at once; limited by the number of cores.", min=1),
]
CpusOption = Annotated[float | None, typer.Option("--cpus-per-task", help="With Ray: CPUs of each task; 1 by default.")]
GpusOption = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-task",
        help="With Ray: share of a GPU for each task, such as 0.25; 1 by default if the cluster has GPUs.",
    ),
]
StoreOption = Annotated[
    Store | None,
    typer.Option(
        "--store",
        help="With Ray: shared if every machine has the folder of runs, driver if this process writes what tasks"
        " return; by default the cluster is asked (auto).",
    ),
]


def machines_of(on: str, workers: int, cpus: float | None, gpus: float | None, store: Store | None) -> Machines:
    """The machines of these options; options of the other kind of machines are refused."""
    from gumbel_mpnn.runs import Machines

    given = {"--cpus-per-task": cpus, "--gpus-per-task": gpus, "--store": store}
    if on == "local":
        for option, value in given.items():
            if value is not None:
                raise UserError(f"{option} is for tasks of Ray: leave it out, or name a cluster with --on")
    return Machines(
        on,
        workers,
        cpus=1 if cpus is None else cpus,
        gpus=gpus,
        store=Store.auto.value if store is None else store.value,
    )


def check_torchrun(machines: Machines) -> None:
    """Raise a `UserError` if `torchrun` and an option both share the work among processes."""
    if is_launched() and (machines.workers > 1 or not machines.is_local):
        raise UserError("torchrun shares the parts of a graph already: leave out --workers and --on")


def refuse_torchrun() -> None:
    """Raise a `UserError` if `torchrun` has started a command other than `train`."""
    if is_launched():
        raise UserError("torchrun is for train only: start this command without it, and use --workers or --on")
