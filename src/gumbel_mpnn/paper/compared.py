"""Rows of experiments that compare defenses: the best plain model, the control, and settings chosen on validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from gumbel_mpnn.config.presets import AUTO
from gumbel_mpnn.config.rungs import read_rungs
from gumbel_mpnn.paper.base import PAIRED, Columns, Job, differences, figures, override
from gumbel_mpnn.report import Row
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import Run, Transform
from gumbel_mpnn.runs.choice import LADDERS
from gumbel_mpnn.training.build import WITH_STRUCTURE

PLAIN = ("mlp", "gcn", "sage", "gat")
DEFENSES = ("drop-edge", "jaccard", "gnn-guard", "soft-median")
REWIRED = ("frozen", "gumbel-mpnn")
OURS = (*REWIRED, "auto-frozen", "auto")
"""Gumbel-MPNN and `auto`, each after its control."""
MODELS = (*PLAIN, *DEFENSES, *OURS)
WARY = ("auto-wary-frozen", "auto-wary")
"""`auto` for nodes that were attacked, after its control."""
POSITIONS = override("data.features", WITH_STRUCTURE)
"""Setting with which all rungs of `auto` see positions among communities beside the features."""
WITH_POSITIONS, EITHER = ", positions", ", either"
"""Ends of the names of such models, and of the better on validation of those with and without positions."""
CONTROL_OF: dict[str, str] = {
    "gumbel-mpnn": "frozen",
    "auto": "auto-frozen",
    f"auto{WITH_POSITIONS}": f"auto-frozen{WITH_POSITIONS}",
    f"auto{EITHER}": f"auto-frozen{EITHER}",
    "auto-wary": "auto-wary-frozen",
    "robust": "robust, frozen",
}
"""Models with the same settings whose edges are not learned."""
ROBUST = "robust"
"""Preset for graphs with random edges at test time."""
ROBUST_NAMES = {"gumbel-mpnn": "robust", "frozen": "robust, frozen"}
COMMON, REWIRING = "gcn-regular", "judged-appnp"
"""Rungs of `auto` whose settings the baselines and Gumbel-MPNN have; they differ in rewiring and in the backbone."""
AGREEING = ("model.samples=2", "model.agreement=1.0", "model.agreement_ramp=0.2")
"""Settings of DropEdge with the agreement loss of Gumbel-MPNN."""
TRIED: Mapping[str, tuple[str, ...]] = {
    "jaccard": tuple(override("model.threshold", value) for value in (0.01, 0.03, 0.05, 0.1, 0.15)),
    "gnn-guard": tuple(override("model.threshold", value) for value in (0.1, 0.2, 0.3)),
    "knn": tuple(override("model.neighbors", value) for value in (5, 10, 20)),
}
"""Settings that are chosen on validation."""
PERCENT = (
    "val",
    "test",
    "stderr",
    "plain_test",
    "difference",
    "low",
    "high",
    "learned_difference",
    "learned_low",
    "learned_high",
)
HEADINGS: Mapping[str, str] = {
    "chosen": "chosen on validation",
    "plain": "best plain model",
    "plain_test": "its test %",
    "p": "corrected p",
    "learned_difference": "learned",
    "learned_low": "95 % from",
    "learned_high": "to",
    "learned_p": "corrected p",
    "learned_over": "tested over",
    "learned_verdict": "verdict",
}
"""Headings of the columns of `compared`."""

Case = tuple[tuple[str, str | int | float], ...]
"""Columns that identify a case, such as a data set and an attack, with their values."""


class Entry(NamedTuple):
    """Runs of a model in one case."""

    run: Run
    chosen: str = ""
    """What validation chose."""

    @classmethod
    def of(cls, run: Run, variant: str) -> Entry:
        """Return the entry of runs of a variant; `auto` has the name of the rung that it chose."""
        return cls(run, variant if run.choice is None else run.choice.chosen)

    def with_results(self, tests: Sequence[float | None], vals: Sequence[float | None]) -> Entry:
        """Return the entry with other results in place of those on its own graph, and without the rungs of `auto`."""
        results = zip(self.run.records, tests, vals, strict=True)
        records = tuple(replace(record, test=test, val=val) for record, test, val in results)
        return self._replace(run=replace(self.run, records=records, choice=None, rungs={}))


def accuracy_chart(x: str, x_label: str, title: str, log_x: bool = False, **where: tuple[str, ...]) -> Chart:
    """Return a panel with the test accuracy of every model over the column `x`."""
    return Chart(x, "test", ("model",), x_label, "test accuracy, %", title, where=where, log_x=log_x)


@cache
def of_rung(name: str) -> tuple[str, ...]:
    """Return overrides with the settings of a rung of `auto`."""
    tables = next(rung.tables for rung in read_rungs() if rung.name == name)
    return tuple(override(f"{table}.{key}", value) for table, of in tables.items() for key, value in of.items())


def jobs_of(
    models: Iterable[str],
    dataset: str,
    *,
    data: tuple[str, ...] = (),
    transform: Transform | None = None,
    seeds: int = 0,
) -> Iterator[Job]:
    """Yield jobs of models without presets: baselines, Gumbel-MPNN and its control with common settings, and `auto`.

    Models in `TRIED` have a job for each setting. `data` are overrides of the data settings, and `seeds` is the number
    of seeds for data sets with one split. Runs of `auto` are stored with those of its own table.
    """
    for model in models:
        if model in LADDERS:
            yield Job(dataset, model, "", AUTO, overrides=data, transform=transform, seeds=seeds)
            continue
        own = of_rung(REWIRING if model in REWIRED else COMMON)
        own += AGREEING if model == "drop-edge" else ()
        for variant in TRIED.get(model, ("",)):
            overrides = (*data, *own, *((variant,) if variant else ()))
            yield Job(dataset, model, "", overrides=overrides, transform=transform, seeds=seeds)


def robust_jobs(dataset: str, *, data: tuple[str, ...] = (), seeds: int = 0) -> Iterator[Job]:
    """Yield the jobs of the preset `robust` and of its control."""
    for model in ROBUST_NAMES:
        yield Job(dataset, model, ROBUST, overrides=data, seeds=seeds)


def name_of(job: Job) -> str:
    """Return the name of a job's model in the table."""
    name = ROBUST_NAMES[job.model] if job.preset == ROBUST else job.model
    return name + WITH_POSITIONS * (POSITIONS in job.overrides)


def variant_of(job: Job) -> str:
    """Return the setting of a job that is chosen on validation, without its table."""
    tried = TRIED.get(job.model, ())
    return next((each.partition(".")[2] for each in job.overrides if each in tried), "")


def best_in_each(results: Mapping[Job, Run | None], case: Callable[[Job], Case]) -> dict[Case, dict[str, Entry | None]]:
    """Return the entries of each case and model, with the settings that validation chooses."""
    found: dict[Case, dict[str, list[tuple[str, Run | None]]]] = {}
    for job, run in results.items():
        found.setdefault(case(job), {}).setdefault(name_of(job), []).append((variant_of(job), run))
    return {case: {model: best_of(of) for model, of in models.items()} for case, models in found.items()}


def best_of(variants: Iterable[tuple[str, Run | None]]) -> Entry | None:
    """Return the variant with the best mean validation value."""
    done = [Entry.of(run, name) for name, run in variants if run is not None]
    return max(done, key=lambda entry: entry.run.val.mean, default=None)


def with_either(entries: Mapping[str, Entry | None]) -> dict[str, Entry | None]:
    """Return the entries of a case, and the better on validation of each ladder with and without positions."""
    found = dict(entries)
    for ladder in LADDERS:
        both = [
            entry._replace(chosen=entry.chosen + end)
            for end in ("", WITH_POSITIONS)
            if (entry := found.get(ladder + end)) is not None
        ]
        if len(both) == 2:
            found[ladder + EITHER] = max(both, key=lambda entry: entry.run.val.mean)
    return found


def compared(cases: Mapping[Case, Mapping[str, Entry | None]], within: str = "") -> list[Row]:
    """Return a row for each model in each case.

    A model is compared with the plain model that has the best validation value, and with its control if it has one.
    The p-values of a model are corrected for the number of cases, or for those with the same value in the column
    `within`: ten splits or seeds cannot show any difference after a correction for more than 25 cases.
    """
    plain = {case: _best_plain(entries) for case, entries in cases.items()}
    names = dict.fromkeys(model for entries in cases.values() for model in entries)
    gains = {
        model: _differences({case: _pair(cases[case], model, plain[case]) for case in cases}, within) for model in names
    }
    learned = {
        model: _differences({case: (_run(cases[case], model), _run(cases[case], control)) for case in cases}, within)
        for model, control in CONTROL_OF.items()
    }
    return [
        _row(case, model, entry, plain[case], gains[model][case], learned.get(model, {}).get(case))
        for case, entries in cases.items()
        for model, entry in entries.items()
    ]


def _differences(pairs: Mapping[Case, tuple[Run | None, Run | None]], within: str) -> dict[Case, Columns]:
    """Return the paired difference of each case, corrected among cases with the same value in a column."""
    families: dict[object, dict[Case, tuple[Run | None, Run | None]]] = {}
    for case, pair in pairs.items():
        families.setdefault(dict(case).get(within), {})[case] = pair
    return {case: columns for family in families.values() for case, columns in differences(family).items()}


def _run(entries: Mapping[str, Entry | None], model: str) -> Run | None:
    entry = entries.get(model)
    return None if entry is None else entry.run


def _best_plain(entries: Mapping[str, Entry | None]) -> tuple[str, Run] | None:
    """Return the plain model with the best validation value, among the models and the plain rungs of `auto`."""
    runs = {name: run for name in PLAIN if (run := _run(entries, name)) is not None}
    for end in ("", WITH_POSITIONS):
        auto = _run(entries, f"auto{end}")
        if auto is not None and auto.choice is not None and auto.choice.best_plain in auto.rungs:
            rung = auto.rungs[str(auto.choice.best_plain)]
            if rung.n == auto.n:
                runs[f"rung {auto.choice.best_plain}{end}"] = rung
    return max(runs.items(), key=lambda item: item[1].val.mean, default=None)


def _pair(
    entries: Mapping[str, Entry | None], model: str, plain: tuple[str, Run] | None
) -> tuple[Run | None, Run | None]:
    """Return the runs of a model and of the best plain one, unless they are the same."""
    return _run(entries, model), None if plain is None or plain[0] == model else plain[1]


def _row(
    case: Case,
    model: str,
    entry: Entry | None,
    plain: tuple[str, Run] | None,
    gain: Columns,
    learned: Columns | None,
) -> Row:
    row: Columns = {
        **dict(case),
        "model": model,
        **dict.fromkeys(("chosen", "val", "test", "stderr", "n")),
        "plain": None if plain is None else plain[0],
        "plain_test": None if plain is None else figures(plain[1])["test"],
        **gain,
        **{f"learned_{name}": None if learned is None else learned[name] for name in PAIRED},
    }
    if entry is None:
        return row | {"verdict": "no data"}
    values = figures(entry.run)
    return row | {
        "chosen": entry.chosen,
        "val": 100 * entry.run.val.mean,
        **{name: values[name] for name in ("test", "stderr", "n")},
    }
