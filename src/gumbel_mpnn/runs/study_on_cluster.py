"""A search whose trials are trained by a cluster.

If the machines share the folder of runs, each task works on the study as any process does. Otherwise threads of the
calling process work on it, and a task trains the runs of a trial; such trials are not pruned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gumbel_mpnn.runs.fitting import Crew, Place
from gumbel_mpnn.runs.machines import run_at_once
from gumbel_mpnn.runs.reader import DataReader
from gumbel_mpnn.runs.record import TRIALS
from gumbel_mpnn.runs.study import Watch, results, standing, work_on
from gumbel_mpnn.runs.trials import Search
from gumbel_mpnn.util.errors import MissingDataError

if TYPE_CHECKING:
    import optuna


def search_on_cluster(search: Search, study: optuna.Study, crew: Crew, watch: Watch | None, reader: DataReader) -> None:
    """Train the trials of a study that are missing; `watch` is called before the first and after each of them."""
    crew, count = crew.branch(), max(1, min(crew.slots, search.wanted))
    tell = _teller(search, study, watch)
    if crew.shares_disk:
        settings = search.spec.settings
        task = partial(_work_on, _everywhere(search))
        crew.call(f"{settings.model} on {settings.dataset}", task, search.device, count, tell)
    else:
        place = Place(search.runs, TRIALS, search.device, search.memory, reader=reader).on(crew, count)
        run_at_once(lambda _: work_on(search, watch=lambda _: tell(), place=place), range(count), crew)
    tell()


def _work_on(search: Search, memory: int) -> None:
    try:
        work_on(replace(search, memory=memory if search.memory is None else search.memory))
    except MissingDataError as error:
        raise MissingDataError(f"a machine of the cluster lacks the data: {error}") from None


def _everywhere(search: Search) -> Search:
    """The search with paths that do not depend on the working folder."""
    storage = search.storage if "://" in search.storage else str(Path(search.storage).absolute())
    root = None if search.spec.root is None else Path(search.spec.root).absolute()
    return replace(
        search, storage=storage, runs=str(Path(search.runs).absolute()), spec=replace(search.spec, root=root)
    )


def _teller(search: Search, study: optuna.Study, watch: Watch | None) -> Callable[[], None]:
    """Return a function that reports the trials that ended since its last call, from any thread."""
    lock, seen = threading.Lock(), {trial.number for trial in results(study, search)}
    if watch is not None:
        watch(standing(study, search))

    def tell() -> None:
        with lock:
            for trial in results(study, search) if watch is not None else ():
                if trial.number not in seen and watch is not None:
                    seen.add(trial.number)
                    watch(replace(standing(study, search), latest=trial))

    return tell
