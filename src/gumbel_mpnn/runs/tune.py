"""`tune`: search for the settings of a model with the best validation value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.progress import Monitor, in_notebook, on_terminal
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.session import Session, open_workers
from gumbel_mpnn.runs.spec import DataReader, RunSpec, Tables, Transform, of_model
from gumbel_mpnn.runs.store import TRIALS
from gumbel_mpnn.runs.workers import LOCAL
from gumbel_mpnn.settings.files import to_toml
from gumbel_mpnn.settings.presets import AUTO, save_preset
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import write_atomically

try:
    from gumbel_mpnn.runs.space import read_space
    from gumbel_mpnn.runs.study import FINISHED, PRUNED, Follower, Search, Trial, results, work_on, work_together
except ImportError:
    raise UserError("tune needs Optuna, which is not installed: pip install 'gumbel-mpnn[tune]'") from None


@dataclass(frozen=True)
class Tuning:
    """Result of a search: its trials, the best validation value first."""

    search: Search
    trials: tuple[Trial, ...]
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
        if not self.count(FINISHED):
            raise UserError(
                f"no trial of {self.model} on {self.dataset} is finished: give the search more time or another space"
            )
        return self.trials[0]

    @cached_property
    def run(self) -> Run:
        """The runs of the best trial."""
        run = Session(self.search.runs, TRIALS).find(self.search.spec_of(self.best.chosen))
        if run is None:
            raise UserError(f"runs of the best trial are missing in {self.search.runs}: they were deleted")
        return run

    def count(self, state: str) -> int:
        """Number of trials that ended in some way, such as `pruned`."""
        return sum(trial.state == state for trial in self.trials)

    def entry(self) -> dict[str, Any]:
        """Settings of the best trial with where they come from, as in a settings file."""
        best = self.best
        tables = {table: dict(values) for table, values in best.settings.to_dict().items() if table != "dataset"}
        del tables["model"]["name"]
        about = {
            "dataset": self.dataset,
            "model": self.model,
            "trials": len(self.trials),
            "pruned": self.count(PRUNED),
            "runs_of_each": best.val.n,
            "seconds": round(sum(trial.seconds for trial in self.trials), 1),
            "metric": self.run.metric,
            "val": best.val.mean,
            "stderr": best.val.stderr if best.val.n > 1 else None,
            "trial": best.number,
            "fingerprint": self.run.folder.path.name,
        }
        source = f"gumbel-mpnn tune: trial {best.number}, the best of {len(self.trials)} on validation"
        return {"source": source, "tried": len(self.trials), "tuning": about, **tables}

    def save(self, path: str | Path) -> Path:
        """Write the settings of the best trial to a file for `--preset`; returns its path."""
        head = f"# Written by gumbel-mpnn tune. Use it with: gumbel-mpnn train ... --model {self.model} --preset FILE\n"
        write_atomically(Path(path), (head + to_toml(self.entry())).encode())
        return Path(path)

    def save_as(self, name: str) -> Path:
        """Keep the settings of the best trial as a preset of the user: `--preset NAME` finds it on this data set."""
        return save_preset(name, self.dataset, self.model, self.entry())


def tune(
    dataset: str | Data,
    model: str = "gcn",
    *,
    trials: int = 20,
    timeout: float | None = None,
    space: Tables | str | Path | None = None,
    baseline: bool = True,
    splits: Iterable[int] | None = None,
    seeds: int | Iterable[int] = 1,
    preset: str | Path | None = "tuned",
    settings: Tables | None = None,
    overrides: Iterable[str] = (),
    transform: Transform | None = None,
    root: str | Path | None = None,
    runs: str | Path | None = None,
    storage: str | None = None,
    workers: int = 1,
    on: str = LOCAL,
    device: str = "auto",
    memory: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Tuning:
    """Search for the settings of a model with the best mean validation value.

    Trials train all splits and seeds at once. Trials that are worse than the median after an eighth, a quarter or half
    of the epochs are stopped. Test results are not used.

    Args:
        dataset: Name of a data set, or a `Data`, as in `fit`.
        model: Name of a model.
        trials: Number of settings to try. A search that was interrupted, or had fewer trials, is continued.
        timeout: Seconds after which no trial is started; trials that were started are finished.
        space: Settings to search: tables, or a TOML file, in which a value is a list of choices or a range such as
            `{"low": 0.001, "high": 0.1, "log": True}`. By default what the model and its components declare, around the
            settings of the preset, which are the first trial.
        baseline: Whether to search for the plain backbone of a model that rewires as well, with the same budget.
        splits: Splits to train on; all by default.
        seeds: Number of seeds per split, or the seeds themselves.
        preset: Source of all other settings: a family of presets, a TOML file, or None for the defaults.
        settings: Tables that override the preset; by default, these settings are not searched.
        overrides: Settings such as `["train.epochs=200"]`, which override both.
        transform: Applied to the data after reading and splitting.
        root: Folder with the files of the data sets.
        runs: Folder of the runs and of the study; None for a temporary folder that is deleted with the result.
        storage: Address of the study: a journal file, or a database as SQLAlchemy names it. By default a journal file
            in `runs`.
        workers: Number of processes that try settings at once.
        on: `local`, or a Ray cluster among whose machines the runs of a trial are divided, as in `fit`.
        device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        memory: Bytes that training may use; all free memory by default.
        seed: Seed of the search.
        progress: Whether to show progress on standard error; by default on a terminal and in a notebook.

    Returns:
        The trials, the best first: see `Tuning.best`, `Tuning.run`, `Tuning.save` and `Tuning.baseline`.
    """
    spec = RunSpec.of(
        dataset,
        check_model(model),
        splits=splits,
        seeds=seeds,
        preset=preset,
        settings=settings,
        overrides=overrides,
        transform=transform,
        root=root,
    )
    temporary = TemporaryDirectory() if runs is None else None
    shown = on_terminal() or in_notebook() if progress is None else progress
    found = tune_specs(
        [spec, *(plain_spec(spec) if baseline else [])],
        read_space(space),
        workers,
        on,
        quiet=not shown,
        trials=trials,
        timeout=timeout,
        runs=str(temporary.name if temporary else runs),
        storage=storage,
        seed=seed,
        device=device,
        memory=memory,
    )
    return replace(found, _temporary=temporary)


def check_model(model: str) -> str:
    """Return the name of a model; `auto`, which trains several, raises a `UserError`."""
    if isinstance(model, str) and normal_name(model) == AUTO:
        raise UserError("'auto' chooses among settings by itself: name a model to tune, such as 'gumbel-mpnn'")
    return model


def plain_spec(spec: RunSpec) -> list[RunSpec]:
    """The plain backbone of a model that rewires, with those of the given settings that it has."""
    backbone = str(spec.settings.options.get("backbone", ""))
    return [spec.with_model(backbone)] if models[spec.settings.model].rewires and backbone else []


def tune_specs(
    specs: Sequence[RunSpec], given: Tables | None, workers: int, on: str, quiet: bool, **options: Any
) -> Tuning:
    """Search for the settings of a model, and of its baseline if it is given; the options are those of `Search.of`."""
    found, reader, device = list[Tuning](), DataReader(), options["device"]
    monitor = Monitor(quiet, show_test=False)
    with closing(monitor), open_workers(workers, on, device) as several:
        for spec in specs:
            space = given if given is None or not found else of_model(given, spec.settings.model)
            search = Search.of(spec, space, reader=reader, **options)
            follower = Follower(search, monitor)
            if several is not None and on == LOCAL:
                work_together(search, several, follower)
            else:  # a cluster trains the runs of one trial after another
                place: dict[str, Any] = {"monitor": monitor, "workers": several, "reader": reader}
                work_on(search, Session(search.runs, TRIALS, device, search.memory, **place), follower)
            found.append(Tuning(search, tuple(results(search, reader))))
    return found[0] if len(found) == 1 else replace(found[0], baseline=found[1])
