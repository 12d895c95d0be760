"""What the tables of learned graphs share: jobs at two epochs, and means over the graphs of single runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gumbel_mpnn.paper.base import PAPER_PRESETS, PAPER_RUNS, Columns, Job, published
from gumbel_mpnn.paper.paper_numbers import SHARE, PaperNumber
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.table import Fixed
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.query import Record, Summary

GIVEN, LEARNED = "given", "learned"
CHOSEN, LAST = "chosen", "last"
EPOCHS: Mapping[str, tuple[str, ...]] = {
    CHOSEN: (),
    LAST: ("train.select=last", "train.patience=0", "train.eval_every=100"),
}
"""Epochs whose graphs are described, with the settings that keep them: validation's choice, and the end of training.

No choice is made on the way to the last epoch, so evaluations there, a quarter of the time, are left out.
"""
COMPARED = LAST
"""Epoch whose graphs are compared with the paper's numbers, which do not say their epoch; a number counts once."""
SAMPLE = 5
"""Number of splits whose graphs are described by measures that take seconds for a graph."""
HEADINGS: Mapping[str, str] = {"preset": "preset", "epoch": "epoch"}
PLUS_MINUS = "±"

Measured = Mapping[str, int | float | None]


def paper_jobs(datasets: Iterable[str], experiment: str = PAPER_RUNS, overrides: tuple[str, ...] = ()) -> list[Job]:
    """Return jobs of Gumbel-MPNN with the paper's presets, which keep the chosen epoch and the last."""
    return [
        Job(dataset, "gumbel-mpnn", preset, experiment, (*overrides, *kept))
        for dataset in datasets
        for preset in PAPER_PRESETS
        for kept in EPOCHS.values()
    ]


def by_dataset(results: Mapping[Job, Run | None]) -> dict[str, dict[Job, Run]]:
    """Return the runs of each data set; none for a data set whose files are missing."""
    found: dict[str, dict[Job, Run]] = {}
    for job, run in results.items():
        found.setdefault(job.dataset, {}).update({} if run is None else {job: run})
    return found


def epoch_of(job: Job) -> str:
    """Return the name of the epoch that a job keeps."""
    return LAST if set(EPOCHS[LAST]) <= set(job.overrides) else CHOSEN


def sample(records: Sequence[Record]) -> list[Record]:
    """Return the runs with the first seed of the first `SAMPLE` splits."""
    first = min(record.seed for record in records)
    return sorted((r for r in records if r.seed == first), key=lambda record: record.split)[:SAMPLE]


def over_runs(measured: Sequence[Measured], counts: Collection[str] = ()) -> Columns:
    """Return the mean of each measure over runs and, as `<measure>_std`, its standard deviation.

    Runs without a value are left out. A single run has no standard deviation. Means of `counts` are shown with one
    decimal.
    """
    row: Columns = {}
    for name in measured[0]:
        values = [float(value) for run in measured if (value := run[name]) is not None]
        found = Summary.of(values) if values else None
        shown = {
            name: None if found is None else found.mean,
            f"{name}_std": None if found is None or found.n == 1 else found.std,
        }
        row |= {key: Fixed(value, 1) if value is not None and name in counts else value for key, value in shown.items()}
    return row


def with_spread(headings: Mapping[str, str]) -> dict[str, str]:
    """Return the headings of measures, each followed by that of its standard deviation."""
    return {key: text for name, head in headings.items() for key, text in ((name, head), (f"{name}_std", PLUS_MINUS))}


def row_of(dataset: str, graph: str, values: Row, columns: Iterable[str], job: Job | None = None) -> Row:
    """Return a row of a graph, which a job learned or no one did."""
    of_job = {"preset": None, "epoch": None} if job is None else {"preset": job.preset, "epoch": epoch_of(job)}
    return {"dataset": dataset, "graph": graph, **of_job, **{name: values.get(name) for name in columns}}


def published_learned(table: str, headings: Mapping[str, str]) -> list[PaperNumber]:
    """Return the numbers of a published table on learned graphs, for each of the paper's presets."""
    return [
        PaperNumber(
            dataset,
            f"{headings[name]}, rewired, {COMPARED} epoch",
            value,
            {"dataset": dataset, "graph": LEARNED, "preset": preset, "epoch": COMPARED},
            name,
            "gumbel-mpnn",
            tolerance=SHARE * abs(value),
            preset=preset,
        )
        for preset in PAPER_PRESETS
        for dataset, values in published(table).items()
        for name, value in values.items()
    ]
