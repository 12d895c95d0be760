"""The result of `tune`: its trials, and the best settings as a preset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gumbel_mpnn.runs.fitting import Place, find_spec
from gumbel_mpnn.runs.record import TRIALS
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.trials import PRUNED, Search, Trial
from gumbel_mpnn.settings.files import to_toml
from gumbel_mpnn.settings.presets import save_preset
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import write_atomically

WRITTEN = "Written by gumbel-mpnn tune"
"""Beginning of a settings file that `tune` writes, after the mark of a comment."""


@dataclass(frozen=True)
class Tuning:
    """Result of a search: its trials, the best validation value first."""

    search: Search
    trials: tuple[Trial, ...]
    engine: str
    """`optuna` or `random`."""
    baseline: Tuning | None = None
    """The same search for the plain backbone of a model that rewires."""
    _temporary: object = None

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.search.spec.settings.model

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.search.spec.settings.dataset

    @property
    def best(self) -> Trial:
        """The trial with the best mean validation value."""
        if not self.trials or not self.trials[0].is_finished:
            raise UserError(
                f"no trial of {self.model} on {self.dataset} is finished: give the search more time or another space"
            )
        return self.trials[0]

    @cached_property
    def run(self) -> Run:
        """The runs of the best trial."""
        spec = self.search.spec.laid_over(self.search.space.tables(self.best.chosen))
        run = find_spec(spec, Place(self.search.runs, TRIALS))
        if run is None:
            raise UserError(f"runs of the best trial are missing in {self.search.runs}: they were deleted")
        return run

    def count(self, state: str) -> int:
        """Number of trials that ended in some way, such as `pruned`."""
        return sum(trial.state == state for trial in self.trials)

    def entry(self) -> dict[str, Any]:
        """Settings of the best trial with where they come from, as in a settings file."""
        best = self.best
        assert best.settings is not None
        tables = {table: dict(values) for table, values in best.settings.to_dict().items() if table != "dataset"}
        del tables["model"]["name"]
        about = {
            "dataset": self.dataset,
            "model": self.model,
            "search": self.engine,
            "trials": len(self.trials),
            "pruned": self.count(PRUNED),
            "runs_of_each": best.n,
            "seconds": round(sum(trial.seconds for trial in self.trials), 1),
            "metric": best.metric,
            "val": best.val,
            "stderr": best.stderr,
            "rank": 1,
            "trial": best.number,
            "fingerprint": best.fingerprint,
        }
        source = f"gumbel-mpnn tune: trial {best.number}, the best of {len(self.trials)} on validation"
        return {"source": source, "tried": len(self.trials), "tuning": about, **tables}

    def to_toml(self) -> str:
        """Text of a settings file with the settings of the best trial."""
        head = f"# {WRITTEN}. Use it with: gumbel-mpnn train ... --model {self.model} --preset FILE\n"
        return head + to_toml(self.entry())

    def save(self, path: str | Path) -> Path:
        """Write the settings of the best trial to a file for `--preset`; returns its path."""
        write_atomically(Path(path), self.to_toml().encode())
        return Path(path)

    def save_as(self, name: str) -> Path:
        """Keep the settings of the best trial as a preset of the user: `--preset NAME` finds it on this data set."""
        return save_preset(name, self.dataset, self.model, self.entry())
