"""What `gumbel-mpnn reproduce` does for one name: the rows of a table, and its page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from gumbel_mpnn._util.errors import UserError, unknown_name
from gumbel_mpnn.cli.common import note, parse_range

if TYPE_CHECKING:
    from gumbel_mpnn.paper import Analysis, Collected, Experiment, Job, Page
    from gumbel_mpnn.paper.base import Row
    from gumbel_mpnn.runs import DataReader, Monitor, Run

SUMMARY = "summary"


@dataclass(frozen=True)
class Request:
    """What a person asked for, apart from the name of the table; each is an option of the command."""

    only: str | None
    dataset: str | None
    splits: str | None
    seeds: int
    quick: bool
    overrides: Sequence[str]
    data_root: Path | None
    runs: Path
    device: str
    workers: int = 1

    @property
    def whole(self) -> bool:
        """Whether the rows are to be those of the table as it is planned, or a part of them."""
        return not self.quick and not self.overrides and self.dataset is None

    def command(self, name: str, out: Path, trains: bool = True) -> str:
        """The command line that makes the page again."""
        values = (("--only", self.only), ("--dataset", self.dataset), ("--splits", self.splits))
        options = "".join(f" {flag} {quote(value)}" for flag, value in values if value)
        options += "".join(f" --set {quote(override)}" for override in self.overrides)
        options += f" --seeds {self.seeds}" if trains else ""
        return f"gumbel-mpnn reproduce {name}{options}{' --quick' if self.quick else ''} --out {quote(str(out))}"

    def without_training(self) -> Request:
        """The same without the options that are not for an analysis."""
        return replace(self, splits=None, overrides=())

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name, on the data set that is asked for."""
        from gumbel_mpnn.paper import experiments

        return experiments[name] if self.dataset is None else experiments[name].on(self.dataset)

    def jobs(self, experiment: Experiment) -> list[Job]:
        """Those of its jobs that are asked for."""
        from gumbel_mpnn.paper.base import quick_jobs

        jobs = _select(experiment.plan(), self.only)
        return quick_jobs(jobs) if self.quick and self.only is None and self.dataset is None else jobs

    def terms(self, experiment: Experiment) -> dict[str, Any]:
        """Which runs of an experiment are asked for, as `run_jobs` and `find_jobs` take it."""
        return {
            "seeds": self.seeds,
            "runs": self.runs,
            "experiment": experiment.name,
            "splits": None if self.splits is None else parse_range(self.splits),
            "root": self.data_root,
            "overrides": self.overrides,
            "quick": self.quick,
            "from_models": experiment.from_models,
        }


@dataclass(frozen=True)
class Reproduction:
    """A table that is done."""

    experiment: Page
    rows: list[Row]
    runs: list[Run]
    trains: bool
    missing: frozenset[str] = frozenset()
    """The data sets that were looked for in vain; of an analysis, all that were looked for."""
    lead: str = ""
    remarks: str = ""

    def collected(self) -> Collected:
        """What the summary needs of it."""
        from gumbel_mpnn.paper import Collected

        return Collected(self.rows, self.missing)

    def absent(self, root: Path | None) -> set[str]:
        """The data sets that were looked for and whose files are not here."""
        from gumbel_mpnn.data import locate, specs

        presence = {name: locate(specs[name], root) for name in self.missing & specs.keys()}
        enough = {name: here.complete or (here.without_features and not self.trains) for name, here in presence.items()}
        return {name for name, is_enough in enough.items() if not is_enough}

    def write(self, out: Path, request: Request) -> None:
        """Write the page and what belongs beside it."""
        from gumbel_mpnn.paper.document import write_page

        command = request.command(self.experiment.name, out, self.trains)
        page, *beside = write_page(
            out, self.experiment, self.rows, self.runs, command, self.remarks, self.lead, request.whole
        )
        note(f"the page is in {page}, beside it {', '.join(path.name for path in beside)}")


def tell_absent(names: Collection[str], root: Path | None) -> None:
    """Say which data sets were looked for in vain, and where."""
    from gumbel_mpnn.data.files import search_roots

    if names:
        absent, folders = ", ".join(sorted(names)), ", ".join(map(str, search_roots(root)))
        note(f"no data: the files of {absent} are under none of {folders}; `gumbel-mpnn data` lists them")


def reproduction(name: str, request: Request) -> Reproduction:
    """Do what is missing of one table, and give its rows; of the summary nothing is done."""
    from gumbel_mpnn.paper import analyses, experiments

    if name == SUMMARY:
        return summarize(_found(request))
    if name in analyses:
        return _analyse(analyses[name], request)
    if name not in experiments:
        raise unknown_name("experiment", name, [*experiments, *analyses, SUMMARY, "all"])
    return _train(request.experiment(name), request)


def summarize(collected: Mapping[str, Collected]) -> Reproduction:
    """Every number of the paper beside ours, from what was collected of the tables."""
    from gumbel_mpnn.paper import SummaryTable, analyses, experiments
    from gumbel_mpnn.report import Table

    table = SummaryTable()
    rows = table.rows([*experiments.values(), *analyses.values()], collected)
    counts = table.counts(rows)
    counted = Table(list(counts[0]), [list(row.values()) for row in counts]).render("markdown")
    return Reproduction(table, rows, [], trains=True, lead=f"{table.lead(rows)}\n\n{counted}")


def _found(request: Request) -> dict[str, Collected]:
    """What is there of the tables that answer numbers of the paper: finished runs, and analyses, which need none."""
    from gumbel_mpnn.paper import analyses, experiments

    if request.only is not None or request.dataset is not None:
        raise UserError("the summary is of all tables: leave out --only and --dataset")
    found = {}
    for experiment in experiments.values():
        if experiment.numbers():
            note(f"{SUMMARY}: runs of {experiment.name}")
            found[experiment.name] = _look(experiment, request).collected()
    for analysis in analyses.values():
        if analysis.numbers():
            found[analysis.name] = _analyse(analysis, request.without_training()).collected()
    return found


def _look(experiment: Experiment, request: Request) -> Reproduction:
    """The table of an experiment from finished runs alone."""
    from gumbel_mpnn.paper.base import find_jobs

    jobs = request.jobs(experiment)
    return _collect(experiment, find_jobs(jobs, **request.terms(experiment)))


def _collect(experiment: Experiment, results: Mapping[Job, Run | None]) -> Reproduction:
    return Reproduction(
        experiment,
        experiment.collect(results),
        [run for run in results.values() if run is not None],
        trains=True,
        missing=frozenset(job.dataset for job, run in results.items() if run is None),
        remarks=experiment.remarks(results),
    )


def _train(experiment: Experiment, request: Request) -> Reproduction:
    from gumbel_mpnn.cli.progress import ProgressMonitor

    monitor = ProgressMonitor(show_test=not experiment.searches)
    try:
        results = train_jobs(experiment, request.jobs(experiment), request, monitor=monitor)
    finally:
        monitor.close()
    return _collect(experiment, results)


def train_jobs(
    experiment: Experiment,
    jobs: Sequence[Job],
    request: Request,
    monitor: Monitor | None = None,
    wait: bool = True,
    reader: DataReader | None = None,
) -> dict[Job, Run | None]:
    """Do what is missing of the jobs, with this process's share of the memory."""
    from gumbel_mpnn.paper.base import run_jobs
    from gumbel_mpnn.training import pick_device
    from gumbel_mpnn.training.free_memory import available_bytes

    memory = available_bytes(pick_device(request.device)) // request.workers if request.workers > 1 else None
    terms = request.terms(experiment)
    return run_jobs(
        jobs,
        **terms,
        device=request.device,
        memory=memory,
        monitor=monitor,
        wait=wait,
        may_diverge=experiment.searches,
        reader=reader,
    )


def _analyse(analysis: Analysis, request: Request) -> Reproduction:
    """The table of an analysis, data set by data set."""
    from gumbel_mpnn.paper.base import QUICK_DATASETS

    if request.splits is not None or request.overrides:
        raise UserError(f"{analysis.name} trains no model: leave out --splits and --set")
    if request.dataset is not None:
        raise UserError(f"the data sets of {analysis.name} are its own: choose among them with --only")
    datasets = analysis.datasets()
    words = datasets if request.only is None else [word.strip() for word in request.only.split(",")]
    for word in words:
        if word not in datasets:
            raise unknown_name("data set here", word, datasets)
    if request.quick and request.only is None:
        words = [word for word in words if word in QUICK_DATASETS]
    rows: list[Row] = []
    for dataset in (dataset for dataset in datasets if dataset in words):
        note(f"{analysis.name}: {dataset}")
        rows += analysis.rows(dataset, request.data_root)
    return Reproduction(analysis, rows, [], trains=False, missing=frozenset(words))


def _select(jobs: list[Job], only: str | None) -> list[Job]:
    """The jobs whose data set, model and preset are named, where each that is not named at all is left open."""
    if only is None:
        return jobs
    words = {word.strip() for word in only.split(",")}
    known = [{getattr(job, kind) for job in jobs} for kind in ("dataset", "model", "preset")]
    for word in sorted(words.difference(*known)):
        raise unknown_name("data set, model or preset here", word, set().union(*known))
    datasets, models, presets = (words & names or names for names in known)
    return [job for job in jobs if job.dataset in datasets and job.model in models and job.preset in presets]
