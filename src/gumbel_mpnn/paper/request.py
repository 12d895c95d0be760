"""The options of a reproduction, bundled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.runs import Machines
from gumbel_mpnn.runs.fitting import Crew


@dataclass(frozen=True)
class Request:
    """Options of `gumbel_mpnn.reproduce`, whose docstring describes them, apart from the name of the table."""

    only: tuple[str, ...] | None = None
    dataset: str | None = None
    splits: tuple[int, ...] | None = None
    seeds: int = 3
    quick: bool = False
    overrides: tuple[str, ...] = ()
    root: Path | None = None
    runs: Path = Path("runs")
    device: str = "auto"
    workers: int = 1
    machines: Machines = field(default_factory=Machines)
    crew: Crew | None = None
    """The cluster that trains, while there is a connection."""
    from_models: Mapping[Job, tuple[str, ...]] = field(default_factory=dict)
    """Names of what the tables to be made take from the models of each job, which are kept for all of them."""

    @property
    def is_standard(self) -> bool:
        """Whether the rows and settings are those of the whole published table."""
        return not self.quick and not self.overrides and self.dataset is None and self.only is None

    def without_training_options(self) -> Request:
        """Return the request without the options that an analysis rejects."""
        return replace(self, splits=None, overrides=())

    def command(self, name: str, out: Path, trains: bool = True) -> str:
        """Return the command line that writes the page of the table `name` to `out`."""
        words = ["gumbel-mpnn", "reproduce", name]
        words += [] if self.only is None else ["--only", ",".join(self.only)]
        words += [] if self.dataset is None else ["--dataset", self.dataset]
        words += [] if self.splits is None else ["--splits", _as_range(self.splits)]
        for override in self.overrides:
            words += ["--set", override]
        words += ["--seeds", str(self.seeds)] if trains else []
        words += ["--quick"] if self.quick else []
        return " ".join(quote(word) for word in [*words, "--out", str(out)])


def _as_range(numbers: Sequence[int]) -> str:
    """Write numbers as the command line takes them: `0-9` if they are consecutive, else `0,2,5`."""
    if len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(map(str, numbers))
