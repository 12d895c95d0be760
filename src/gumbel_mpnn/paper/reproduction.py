"""`reproduce`: the tables of the paper, one by one or all."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gumbel_mpnn._util.errors import UserError, check_at_least, unknown_name, whole_numbers
from gumbel_mpnn._util.files import check_writable, is_stream, suffix_of
from gumbel_mpnn.data.files import search_roots
from gumbel_mpnn.paper import tables
from gumbel_mpnn.paper.base import QUICK_DATASETS, Job
from gumbel_mpnn.paper.page import Analysis, Experiment
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.result import Reproduction
from gumbel_mpnn.paper.summary import Collected, SummaryTable, read_rows
from gumbel_mpnn.paper.work import find_jobs, run_jobs, take_from_models
from gumbel_mpnn.paper.workers import start_workers
from gumbel_mpnn.report import Row, Table
from gumbel_mpnn.runs import Machines, Monitor, Run
from gumbel_mpnn.runs.machines import LOCAL

SUMMARY, ALL = "summary", "all"
SEEDS, QUICK_SEEDS = 3, 1

Note = Callable[[str], None]


def reproduce(
    name: str,
    *,
    only: str | Iterable[str] | None = None,
    dataset: str | None = None,
    splits: Iterable[int] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    overrides: Iterable[str] = (),
    root: str | Path | None = None,
    runs: str | Path = "runs",
    device: str = "auto",
    workers: int = 1,
    on: str | Machines = LOCAL,
    out: str | Path | None = None,
    monitor: Monitor | None = None,
    note: Note | None = None,
) -> Reproduction:
    """Reproduce a table of the paper, and compare our numbers with the published ones.

    Runs that are finished are not trained again.

    Args:
        name: Name of a table, such as `accuracy` or `measures`. `summary` compares every published number with ours and
            trains nothing. `all` writes the pages of all tables of the paper, and the summary, to a folder; it leaves
            out `budget` and the `readings`, which search for the settings that the other tables use.
        only: Data sets, models, presets or settings of the data to select (such as `meta-0.25`; `default` for none), as
            a list or as text separated by commas; all by default.
        dataset: Data set to use in place of the default one, in tables that allow it, such as `components`.
        splits: Indices of the splits; all splits by default.
        seeds: Number of seeds for each split: 3 by default, 1 if `quick`.
        quick: Whether to make a small version that shows that everything works: few epochs, two splits, small data
            sets.
        overrides: Settings applied to every model, such as `"train.epochs=100"`.
        root: Folder of data files, searched before `GUMBEL_MPNN_DATA` and the cache.
        runs: Folder in which runs are stored.
        device: `"cpu"`, `"cuda"`, or `"auto"` for a GPU if there is one.
        workers: Number of processes that train at the same time. It is limited by the number of jobs and of CPU cores.
            A script must call this function inside `if __name__ == "__main__":` if it uses more than one, because the
            processes import the script.
        on: Where to train: `local`, `ray` or the address of a Ray cluster, or `gm.Machines` with its options.
        out: Markdown file to which the page is written. For `all`, the folder of the pages, `results` by default.
        monitor: Receives the progress of training.
        note: Called with messages, such as which page was written and which data sets are missing. Messages are
            discarded by default.

    Returns:
        The rows and runs of the table. For `all`, those of the summary, with the names of tables that failed.
    """
    check_at_least(1, workers=workers)
    machines = Machines.of(on) if workers == 1 else replace(Machines.of(on), workers=workers)
    request = Request(
        only=None if only is None else _names(only),
        dataset=dataset,
        splits=None if splits is None else tuple(whole_numbers("splits", splits)),
        seeds=(QUICK_SEEDS if quick else SEEDS) if seeds is None else seeds,
        quick=quick,
        overrides=tuple(overrides),
        root=None if root is None else Path(root),
        runs=Path(runs),
        device=device,
        workers=machines.workers,
        machines=machines,
    )
    check_at_least(1, seeds=request.seeds)
    if request.only == ():
        raise UserError("`only` is empty: name data sets, models, presets or settings, or leave it out for all of them")
    note = note or _discard
    if name == ALL:
        return _reproduce_all(request, Path("results" if out is None else out), monitor, note)
    if out is not None:
        _check_page(Path(out))
    with start_workers([name] if name in tables.experiments else [], request) as request:
        done = _reproduce_one(name, request, monitor, note, None if out is None else Path(out).parent)
    if out is not None:
        done = replace(done, pages=(_write(done, Path(out), note),))
    _note_absent(done.absent_datasets(), request, note)
    return done


def _names(only: str | Iterable[str]) -> tuple[str, ...]:
    names = only.split(",") if isinstance(only, str) else only
    return tuple(name.strip() for name in names)


def _discard(_: str) -> None:
    """Ignore a message."""


def _check_page(out: Path) -> None:
    """Raise a `UserError` if `out` cannot be the file of a page; called before training."""
    if is_stream(out):
        return
    if suffix_of(out) != ".md" or out.is_dir():
        raise UserError(f"{out} is not a Markdown file: give the page a name that ends in .md")
    check_writable(out.parent)


def _reproduce_one(
    name: str, request: Request, monitor: Monitor | None, note: Note, pages: Path | None = None
) -> Reproduction:
    """Train what is missing of one table and compute its rows.

    The summary trains nothing. It reads tables without stored runs from the folder `pages`, if they are there.
    """
    if name == SUMMARY:
        return _summarize(_find_tables(request, note, pages), request)
    if name in tables.analyses:
        return _analyse(tables.analyses[name], request, note)
    if name not in tables.experiments:
        raise unknown_name("table", name, [*tables.experiments, *tables.analyses, SUMMARY, ALL])
    experiment = tables.requested_experiment(name, request)
    jobs = tables.requested_jobs(experiment, request)
    results = run_jobs(experiment, jobs, request, monitor=monitor)
    take_from_models(experiment, results)  # before rows wait for what other processes are computing
    return _collect(experiment, request, results)


def _reproduce_all(request: Request, folder: Path, monitor: Monitor | None, note: Note) -> Reproduction:
    """Write the page of every table. A table that fails is reported and does not stop the others."""
    if request.only is not None or request.dataset is not None:
        raise UserError("all makes every table in full: leave out `only` and `dataset`")
    check_writable(folder)
    collected, absent, pages, failed = dict[str, Collected](), set[str](), list[Path](), dict[str, str]()
    experiments = [name for name, one in tables.experiments.items() if one.of_paper and not one.searches]
    with start_workers(experiments, request) as request:
        for name in (*experiments, *tables.analyses):
            note(f"== {name}")
            options = request.without_training_options() if name in tables.analyses else request
            try:
                done = _reproduce_one(name, options, monitor, note)
                collected[name] = done.collected()
                absent |= done.absent_datasets()
                pages.append(_write(done, folder / f"{name}.md", note))
            except (UserError, OSError) as error:
                failed[name] = str(error)
            except Exception as error:
                note(traceback.format_exc())
                failed[name] = f"{type(error).__name__}: {error}"
    note(f"== {SUMMARY}")
    summary = _summarize(collected, request)
    pages.append(_write(summary, folder / f"{SUMMARY}.md", note))
    _note_absent(absent, request, note)
    for name, reason in failed.items():
        note(f"failed: {name}: {reason}")
    return replace(summary, pages=tuple(pages), failed=failed)


def _write(done: Reproduction, path: Path, note: Note) -> Path:
    page, *others = done.write(path)
    if others:
        note(f"the page is in {page}; next to it: {', '.join(other.name for other in others)}")
    return page


def _note_absent(names: Iterable[str], request: Request, note: Note) -> None:
    """Report the data sets whose files were not found, and where they were searched for."""
    if absent := ", ".join(sorted(names)):
        folders = ", ".join(map(str, search_roots(request.root)))
        note(f"no data: the files of {absent} were not found in {folders}; `gumbel-mpnn data` lists them")


def _summarize(collected: Mapping[str, Collected], request: Request) -> Reproduction:
    """Compare every number of the paper with ours, from the rows of the tables."""
    page = SummaryTable()
    rows = page.rows([*tables.experiments.values(), *tables.analyses.values()], collected)
    lead, counts = [page.lead(rows), page.sources(collected)], page.counts(rows)
    if counts:
        lead.append(Table(list(counts[0]), [list(row.values()) for row in counts]).render("markdown"))
    return Reproduction(page, rows, request=request, lead="\n\n".join(filter(None, lead)))


def _find_tables(request: Request, note: Note, pages: Path | None) -> dict[str, Collected]:
    """Return the rows of all tables with published numbers, from finished runs or from the files beside their pages.

    Tables that train nothing are computed only if there is no page: mixtures take half an hour.
    """
    if request.only is not None or request.dataset is not None:
        raise UserError("the summary covers all tables: leave out `only` and `dataset`")
    found = {}
    for experiment in tables.experiments.values():
        if experiment.numbers():
            note(f"{SUMMARY}: runs of {experiment.name}")
            jobs = tables.requested_jobs(experiment, request)
            done = find_jobs(experiment, jobs, request)
            found[experiment.name] = collected = _collect(experiment, request, done).collected()
            if len(done) < len(jobs) and (page := _page_of(experiment.name, request, pages)):
                note(f"{SUMMARY}: {experiment.name} is read from {page}, because some of its runs are not stored")
                found[experiment.name] = replace(collected, rows=read_rows(page), page=page.name)
    for analysis in tables.analyses.values():
        if not analysis.numbers():
            continue
        if page := _page_of(analysis.name, request.without_training_options(), pages, trains=False):
            note(f"{SUMMARY}: {analysis.name} is read from {page}")
            found[analysis.name] = Collected(read_rows(page), frozenset(analysis.datasets), page.name)
        else:
            found[analysis.name] = _analyse(analysis, request.without_training_options(), note).collected()
    return found


def _page_of(name: str, request: Request, pages: Path | None, trains: bool = True) -> Path | None:
    """Return the rows beside the page of a table, if the page was made by a command with the options of `request`."""
    if pages is None:
        return None
    page = pages / f"{name}.md"
    command = request.command(name, page, trains).removesuffix(str(page))
    made_so = page.is_file() and f"\n{command}" in page.read_text(encoding="utf-8")
    return page.with_suffix(".csv") if made_so and page.with_suffix(".csv").is_file() else None


def _collect(experiment: Experiment, request: Request, results: Mapping[Job, Run | None]) -> Reproduction:
    rows = experiment.collect(results)
    return Reproduction(
        experiment,
        rows,
        [run for run in results.values() if run is not None],
        request,
        missing=frozenset(job.dataset for job, run in results.items() if run is None),
        remarks=experiment.remarks(results, rows),
    )


def _analyse(analysis: Analysis, request: Request, note: Note) -> Reproduction:
    if request.splits is not None or request.overrides:
        raise UserError(f"{analysis.name} does not train models: leave out splits and overrides (--splits, --set)")
    if request.dataset is not None:
        raise UserError(f"the data sets of {analysis.name} are fixed: select some of them with `only`")
    datasets = list(analysis.datasets)
    if request.only is not None:
        tables.check_known("data set in this table", request.only, datasets)
        datasets = [dataset for dataset in datasets if dataset in request.only]
    elif request.quick:
        datasets = [dataset for dataset in datasets if dataset in QUICK_DATASETS]
    rows: list[Row] = []
    for dataset in datasets:
        note(f"{analysis.name}: {dataset}")
        rows += analysis.rows(dataset, request.root)
    return Reproduction(analysis, rows, request=request, missing=frozenset(datasets))
