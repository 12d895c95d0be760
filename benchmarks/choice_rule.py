"""How should `auto` choose on one split? Rules of choice compared on test, after the fact.

Every rung is trained on every split of graphs that are not in the table of `auto`. Each split is then a problem of its
own, as on a graph with a single split: a rule chooses a rung by the validation values of this split, and its test value
is compared with that of the plain rung with the best validation value, and with the best rung on test.

python benchmarks/choice_rule.py --workers 2 --runs runs/choice-rule
python benchmarks/choice_rule.py --toy   # seconds; nothing is written
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.runs.choice import best_of, difference
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.settings.files import merge
from gumbel_mpnn.settings.presets import read_rungs
from gumbel_mpnn.training import models

CASES: Mapping[str, Sequence[str]] = {
    "texas": ("",),
    "cornell": ("",),
    "wisconsin": ("",),
    "cora": ("per-class-20-30",),
    "citeseer": ("per-class-20-30",),
    "wine": ("",),
    "breast-cancer": ("",),
    "digits": ("",),
}
"""Data sets, and their split protocols."""
RUNGS = [rung for rung in read_rungs() if rung.suits(has_features=True)]
PLAIN = [rung.name for rung in RUNGS if not models[rung.model].rewires]
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Shares of the error within which a plainer rung is preferred."""
SMALL = {"model": {"hidden_channels": 4}, "train": {"epochs": 3}}


class Split(NamedTuple):
    """Validation and test value of every rung on one split."""

    val: dict[str, float]
    test: dict[str, float]
    val_nodes: int


class Work(NamedTuple):
    """Runs of one rung on one graph."""

    dataset: str
    protocol: str
    rung: int


class Done(NamedTuple):
    """Validation and test value of a rung on every split, and the number of validation nodes."""

    work: Work
    values: dict[int, tuple[float, float]]
    val_nodes: int


Rule = Callable[[Split, float], str]


def train(work: Work, runs: str, toy: bool) -> Done:
    """Values of a rung on every split."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rung = RUNGS[work.rung]
    data = {"data": {"protocol": work.protocol}} if work.protocol else {}
    settings = merge(rung.tables, data, SMALL if toy else {})
    splits = range(2) if toy else None
    run = gm.fit(work.dataset, rung.model, splits=splits, preset=None, settings=settings, runs=runs, progress=False)
    values = {record.split: (record.val_or_nan, record.test_or_nan) for record in run.records}
    return Done(work, values, int(run.data.val_mask.float().sum(0).mean()))


def splits_of(found: Iterable[Done]) -> dict[str, list[Split]]:
    """The splits of every graph."""
    graphs: dict[str, dict[int, Split]] = {}
    for work, values, val_nodes in found:
        of_graph = graphs.setdefault(f"{work.dataset} {work.protocol}".strip(), {})
        for number, (val, test) in values.items():
            split = of_graph.setdefault(number, Split({}, {}, val_nodes))
            split.val[RUNGS[work.rung].name], split.test[RUNGS[work.rung].name] = val, test
    return {name: [splits[number] for number in sorted(splits)] for name, splits in graphs.items()}


def best_plain(split: Split) -> str:
    """The plain rung with the best validation value."""
    return best_of(_values(split), PLAIN)


def plainest(split: Split, share: float) -> str:
    """The plainest rung that is behind the best one by no more than a share of the error."""
    values = _values(split)
    best = best_of(values, list(values))
    return next(name for name in values if _is_within(split, best, name, share))


def plain_or_best(split: Split, share: float) -> str:
    """The best plain rung, unless the best of all is ahead by more than a share of the error: the rule of `auto`."""
    values = _values(split)
    best, plain = best_of(values, list(values)), best_plain(split)
    return plain if _is_within(split, best, plain, share) else best


RULES: Mapping[str, Rule] = {"the plainest within": plainest, "the best plain one within": plain_or_best}


def _values(split: Split) -> dict[str, dict[Replica, float]]:
    """Validation values in the order of the rungs, as those of a single run."""
    return {rung.name: {Replica(0, 0): split.val[rung.name]} for rung in RUNGS}


def _is_within(split: Split, best: str, other: str, share: float) -> bool:
    values = _values(split)
    behind, error = difference(values[best], values[other], split.val_nodes)
    return behind <= share * error


def judged(graphs: Mapping[str, Sequence[Split]], rule: Rule, share: float) -> dict[str, object]:
    """Test value of what a rule chooses, compared with the best plain rung by validation, in percent."""
    gains = {
        name: [100 * (split.test[rule(split, share)] - split.test[best_plain(split)]) for split in splits]
        for name, splits in graphs.items()
    }
    regrets = [
        100 * (max(split.test.values()) - split.test[rule(split, share)]) for of in graphs.values() for split in of
    ]
    by_graph = {name: statistics.fmean(of) for name, of in gains.items()}
    return {
        "gain": statistics.fmean(by_graph.values()),
        "worst graph": min(by_graph.values()),
        "splits below": sum(gain < 0 for of in gains.values() for gain in of),
        "behind the best on test": statistics.fmean(regrets),
        "by graph": by_graph,
    }


def main() -> None:
    """Train what is missing and print the rules."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", help="folder of the runs; finished ones are not trained again")
    parser.add_argument("--only", default="", help="data sets, separated by commas")
    options = parser.parse_args()
    chosen = (
        ["wine"] if options.toy else [name for name in CASES if not options.only or name in options.only.split(",")]
    )
    planned = [Work(name, protocol, k) for name in chosen for protocol in CASES[name] for k in range(len(RUNGS))]
    with TemporaryDirectory() as folder:
        graphs = splits_of(_train_all(planned, options, str(Path(options.runs or folder).absolute())))
    table = {name: {str(share): judged(graphs, rule, share) for share in SHARES} for name, rule in RULES.items()}
    print(f"{sum(map(len, graphs.values()))} splits of {len(graphs)} graphs")
    for name, by_share in table.items():
        for share, of in by_share.items():
            print(
                f"{name} {share} errors: {of['gain']:+.2f} over the best plain rung,"
                f" worst graph {of['worst graph']:+.2f},"
                f" {of['splits below']} splits below, {of['behind the best on test']:.2f} behind the best on test"
            )
    harness.save("choice_rule", {"rules": table}, harness.folder(options))


def _train_all(planned: Sequence[Work], options: argparse.Namespace, runs: str) -> list[Done]:
    work = partial(train, runs=runs, toy=options.toy)
    if options.workers == 1:
        return list(map(work, planned))
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        found = list[Done]()
        for done in pool.imap_unordered(work, planned):
            found.append(done)
            print(f"{len(found)} of {len(planned)}: {done.work.dataset} {RUNGS[done.work.rung].name}", flush=True)
        return found


if __name__ == "__main__":
    main()
