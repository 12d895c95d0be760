"""`python -m experiments NAME`: tables and figures of the paper and our studies, our numbers beside the published."""

from __future__ import annotations

import os
import sys
import traceback
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read once, when torch is imported; waiting threads must not spin

from experiments import PAGES, paper
from experiments.experiment import QUICK_DATASETS, Analysis, Experiment, Page, Results
from experiments.pages import check_page, made_by, read_rows, write_page
from experiments.paper.summary import Summary
from experiments.training import Options, selected_jobs, train
from gumbel_mpnn.report import Row
from gumbel_mpnn.util import UserError, unknown_name

ALL = "all"
RESULTS = Path("docs/results")
"""Folder of the pages by default; the summary reads the rows of the others there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what the arguments name; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    given = _parser().parse_args(arguments)
    try:
        if given.name == ALL:
            return _make_all(given, arguments)
        if given.name not in PAGES:
            raise unknown_name("table", given.name, [*PAGES, ALL])
        _make(PAGES[given.name], given, arguments)
        return 0
    except (UserError, OSError) as error:
        _tell(f"error: {error}")
        return 2


def _parser() -> ArgumentParser:
    parser = ArgumentParser("python -m experiments", description=__doc__)
    add: Callable[..., Any] = parser.add_argument
    add("name", help="a table, such as accuracy or measures; summary; or all for every table of the paper")
    add("--only", type=_names, default=(), help="data sets, models, presets or settings of the data, with commas")
    add("--splits", type=_numbers, help="splits to use, such as 0-9; all by default")
    add("--seeds", type=_count, help="seeds for each split; 3 by default, 1 with --quick")
    add("--quick", action="store_true", help="small version, to test the setup: few epochs, small data sets")
    add("--set", action="append", default=[], metavar="TABLE.NAME=VALUE", help="setting of every model")
    add("--out", type=Path, help="Markdown file of the page; for all, the folder of the pages")
    add("--from-csv", action="store_true", help="make the page again from the rows beside it")
    add("--runs", type=Path, default=Path("runs"), help="folder of the runs; finished runs are not trained again")
    add("--device", default="auto", help="cpu, cuda, or auto for a GPU if there is one")
    add("--workers", type=_count, default=1, help="processes that train at the same time")
    add("--on", default="local", help="where to train: local, ray, or the address of a Ray cluster")
    add("-q", "--quiet", action="store_true", help="show no progress")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    """Read `0-4,7` as 0, 1, 2, 3, 4, 7."""
    ranges = [part.partition("-") for part in text.split(",")]
    try:
        return tuple(n for first, dash, last in ranges for n in range(int(first), int(last if dash else first) + 1))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a range: write it as 0-9 or 0,2,5") from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _options(given: Namespace) -> Options:
    return Options(
        only=given.only,
        splits=given.splits,
        seeds=given.seeds or (1 if given.quick else 3),
        quick=given.quick,
        overrides=tuple(given.set),
        runs=given.runs,
        device=given.device,
        workers=given.workers,
        on=given.on,
        quiet=given.quiet,
    )


def _make(page: Page, given: Namespace, arguments: Sequence[str]) -> None:
    """Make one table: print it, or write its page."""
    out, prints = given.out or RESULTS / f"{page.name}.md", given.out is None and not given.from_csv
    if not prints:
        check_page(page, out)
    if given.from_csv:
        written = write_page(page, read_rows(out.with_suffix(".csv")), out)
    else:
        options = _options(given)
        rows, results = _rows_of(page, options, out.parent)
        if missing := sorted({job.dataset for job, run in results.items() if run is None}):
            _tell(f"no data: the files of {', '.join(missing)} were not found; `gumbel-mpnn data` lists them")
        if prints:
            print(page.table(rows).render("text"))  # noqa: T201
            return
        written = write_page(page, rows, out, made_by(arguments, results), results, options.is_full)
    if not given.quiet:
        _tell(f"the page is in {written[0]}; next to it: {', '.join(file.name for file in written[1:])}")


def _rows_of(page: Page, options: Options, folder: Path) -> tuple[list[Row], Results]:
    """Return the rows of a table, and the runs that they are computed from."""
    if isinstance(page, Experiment):
        results = train(page, selected_jobs(page, options), options)
        return page.collect(results), results
    if options.splits is not None or options.overrides:
        raise UserError(f"{page.name} does not train models: leave out --splits and --set")
    if isinstance(page, Analysis):
        return [row for dataset in _datasets(page, options) for row in page.rows(dataset)], {}
    assert isinstance(page, Summary)
    if options.only:
        raise UserError("the summary covers all tables: leave out --only")
    return page.rows(PAGES.values(), folder), {}


def _datasets(page: Analysis, options: Options) -> list[str]:
    for name in options.only:
        if name not in page.datasets:
            raise unknown_name("data set in this table", name, page.datasets)
    wanted = options.only or (QUICK_DATASETS if options.quick else page.datasets)
    return [name for name in page.datasets if name in wanted]


def _make_all(given: Namespace, arguments: Sequence[str]) -> int:
    """Write the page of every table of the paper. A table that fails is reported and does not stop the others."""
    if given.only:
        raise UserError("all makes every table in full: leave out --only")
    failed = {}
    for page in paper.PAGES:
        changed = {"out": (given.out or RESULTS) / f"{page.name}.md"}
        if not isinstance(page, Experiment):
            changed |= {"splits": None, "set": []}
        _tell(f"== {page.name}")
        try:
            _make(page, Namespace(**vars(given) | changed), [page.name, *arguments[1:]])
        except (UserError, OSError) as error:
            failed[page.name] = str(error)
        except Exception as error:
            traceback.print_exc()
            failed[page.name] = f"{type(error).__name__}: {error}"
    for name, reason in failed.items():
        _tell(f"failed: {name}: {reason}")
    return 1 if failed else 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
