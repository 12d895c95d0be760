"""Rows of experiments that compare defenses: the best plain model, the control, and settings chosen on validation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from torch_geometric.data import Data

from experiments.experiment import LADDERS, PLAIN, Job, Results
from experiments.rows import (
    MODEL_NAMES,
    NO_DATA,
    PAIRED,
    Columns,
    differences,
    figures,
    grid,
    override,
    paragraphs,
    percent,
    score,
    verdicts,
)
from gumbel_mpnn.report import Cell, Markdown, Row
from gumbel_mpnn.runs import Run
from gumbel_mpnn.settings import read_rungs

DEFENSES = ("drop-edge", "jaccard", "gnn-guard", "soft-median")
REWIRED = ("frozen", "gumbel-mpnn")
OURS = (*REWIRED, "auto-frozen", "auto")
"""Gumbel-MPNN and `auto`, each after its control."""
MODELS = (*PLAIN, *DEFENSES, *OURS)
WARY = ("auto-wary-frozen", "auto-wary")
"""`auto` for nodes that were attacked, after its control."""
POSITIONS = "data.features=with-structure"
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
HEADINGS: Mapping[str, str] = {
    "plain": "best plain model",
    "plain_test": "its test %",
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
    transform: Callable[[Data], Data] | None = None,
    seeds: int = 0,
) -> Iterator[Job]:
    """Yield jobs of models without presets: baselines, Gumbel-MPNN and its control with common settings, and `auto`.

    Models in `TRIED` have a job for each setting. `data` are overrides of the data settings, and `seeds` is the number
    of seeds for data sets with one split. Runs of `auto` are stored with those of its own table.
    """
    for model in models:
        if model in LADDERS:
            yield Job(dataset, model, "", "auto", overrides=data, transform=transform, seeds=seeds)
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


def best_in_each(results: Results, case: Callable[[Job], Case]) -> dict[Case, dict[str, Entry | None]]:
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
        "plain_test": None if plain is None else percent(plain[1]),
        **gain,
        **{f"learned_{name}": None if learned is None else learned[name] for name in PAIRED},
    }
    if entry is None:
        return row | {"verdict": NO_DATA}
    own = figures(entry.run, with_std=False)
    return row | {"chosen": entry.chosen, "val": 100 * entry.run.val.mean, **own}


def table_of_cases(rows: Sequence[Row], case: Sequence[str], models: Collection[str]) -> str:
    """Return a table with a line for each case and a column for the best plain model and for each of these models."""
    order = list(dict.fromkeys(_key(row, case) for row in rows))
    best: dict[tuple[Cell, ...], Row] = {}
    for row in rows:
        if row["difference"] is not None:
            name, test = str(row["plain"]).removeprefix("rung "), float(row["test"] or 0) - float(row["difference"])
            text = f"{test:.2f} ({MODEL_NAMES.get(name, name)})"
            best[_key(row, case)] = {**row, "model": "best plain model", "text": text}
    mine = [{**row, "text": _result(row)} for row in rows if row["model"] in models]
    lines = sorted([*best.values(), *mine], key=lambda row: order.index(_key(row, case)))
    return paragraphs(
        "Test accuracy in percent ± standard error. Bold: better than the best plain model by a paired test, corrected"
        " for the cases of a graph; †: also better than its control, whose edges are not learned.",
        grid(lines, case, "model", lambda row: Markdown(row["text"]), HEADINGS),
    )


def _key(row: Row, case: Sequence[str]) -> tuple[Cell, ...]:
    return tuple(row[name] for name in case)


def _result(row: Row) -> str:
    better, learned = (str(row[name]).startswith("better") for name in ("verdict", "learned_verdict"))
    return score(row, bold=better) + "†" * (better and learned)


def gains(rows: Sequence[Row], noun: str = "case") -> list[str]:
    """Return how often Gumbel-MPNN and `auto` are better than the best plain model and than their controls."""
    lines = []
    for model in ("gumbel-mpnn", "auto"):
        control = CONTROL_OF[model]
        mine = [row for row in rows if row["model"] == model]
        name, other = (MODEL_NAMES.get(each, each) for each in (model, control))
        lines.append(verdicts(name, "the best plain model", mine, noun=noun))
        lines.append(verdicts(name, f"its control {other} (what is learned)", mine, "learned_verdict", noun))
    return lines


def tests_of(rows: Iterable[Row], *columns: str) -> dict[tuple[str, str], dict[tuple[Cell, ...], float]]:
    """Return test results in per cent: data set and model → values of these columns → result."""
    found: dict[tuple[str, str], dict[tuple[Cell, ...], float]] = {}
    for row in rows:
        if row["test"] is not None:
            key = tuple(row[column] for column in columns)
            found.setdefault((str(row["dataset"]), str(row["model"])), {})[key] = float(row["test"])
    return found


def table_of(what: str, values: Mapping[tuple[str, str], float | None], models: Collection[str]) -> str:
    """Return a number of each data set (lines) and of each of these models (columns), such as a mean over cases.

    Args:
        what: What the numbers are.
        values: Data set and model → number.
        models: Models that are shown.
    """
    rows = [
        {"dataset": dataset, "model": model, "test": value}
        for (dataset, model), value in values.items()
        if model in models
    ]
    table = grid(rows, ("dataset",), "model", score)
    return paragraphs(f"{what}:", table) if table else ""
