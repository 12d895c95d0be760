"""What lets learned edges beat those that are not learned? Options of rewiring with their controls, on validation.

Every option is trained on every graph: with a scorer that learns, with one that never learns (`frozen`), and with
edges drawn at random (`random`), all with the same settings and seeds. The tables show the mean validation value and
the paired differences between learned edges and the better control of the option, and between learned edges and the
best of all that learns no edges, plain models included. No test value is read.

python benchmarks/learning.py --workers 14 --minutes 8 --runs runs/learning
python benchmarks/learning.py --only cora,actor --options free,judged
python benchmarks/learning.py --toy   # seconds; nothing is written
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.config.files import merge, parse_overrides
from gumbel_mpnn.config.rungs import read_rungs
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes

LAST_SECONDS = 45
"""After the time is over, what has begun may go on for so long."""
LEARNED, CONTROLS = "gumbel-mpnn", ("frozen", "random")


class Case(NamedTuple):
    """A graph, with the splits and the number of seeds that are trained."""

    dataset: str
    setting: str = ""
    splits: int = 10
    seeds: int = 1

    @property
    def name(self) -> str:
        """The data set and what is set."""
        return f"{self.dataset} {self.setting.partition('=')[2]}".strip()


ONE_SPLIT = {"splits": 1, "seeds": 10}
CASES = (
    Case("attacked-cora", "attack=meta-0.25", **ONE_SPLIT),
    Case("attacked-citeseer", "attack=meta-0.25", **ONE_SPLIT),
    Case("attacked-cora", **ONE_SPLIT),
    Case("attacked-polblogs", "attack=meta-0.25", **ONE_SPLIT),
    Case("cora"),
    Case("citeseer"),
    Case("cora", "protocol=per-class-20-30"),
    Case("chameleon"),
    Case("actor"),
    Case("squirrel"),
    Case("minesweeper", splits=6),
    Case("blogcatalog", "protocol=per-class-20-30", splits=6),
    Case("amazon-computers", "protocol=per-class-20-30", splits=3),
    Case("tolokers", splits=3),
)


@dataclass(frozen=True)
class Option:
    """A rung of `auto` with other settings."""

    rung: str
    overrides: tuple[str, ...] = ()
    controls: str = ""
    """Option whose controls are also those of this one, since it differs in nothing but learning; its own if empty."""
    beliefs: bool = False
    """Whether candidates are neighbors in class beliefs, with the labels of training nodes put in."""


PLAIN = ("mlp-regular", "gcn-regular", "sage-regular", "gcn-deep", "steady-gcn")
"""Rungs of `auto` that learn no edges: what a control of `auto` may choose as well."""
PAIRS, FOLDS = ("rewiring.pair_loss=1",), ("rewiring.belief_folds=4",)
FACTS = ("rewiring.scorer=class-facts",)
ORIGIN = ("rewiring.origin=learned", "rewiring.keep=0.5", "rewiring.add=0.5")
OWN_ORIGIN = ("rewiring.origin=learned",)
CONFIDENT = ("rewiring.pair_labels=confident",)
CHANNELS = ("model.backbone=sage-channels",)
CONSISTENT = ("rewiring.regularizer=label-consistency", "rewiring.regularizer_weight=0.5")
JUDGED = (*FACTS, *PAIRS, *ORIGIN)
CAUTIOUS = (*FACTS, *PAIRS, *OWN_ORIGIN)
OPTIONS = {
    **{name: Option(name) for name in PLAIN},
    "free": Option("free-gcn"),
    "judged": Option("free-gcn", JUDGED, "free"),
    "cautious": Option("cautious-gcn"),
    "cautious-judged": Option("cautious-gcn", CAUTIOUS, "cautious"),
    "free-sage": Option("free-sage"),
    "sage-judged": Option("free-sage", JUDGED, "free-sage"),
    "channels": Option("free-sage", CHANNELS),
    "channels-judged": Option("free-sage", (*CHANNELS, *JUDGED), "channels"),
    "two-hop": Option("two-hop-gcn"),
    "two-hop-judged": Option("two-hop-gcn", JUDGED, "two-hop"),
    "judged-confident": Option("free-gcn", (*JUDGED, *CONFIDENT), "free"),
    "judged-folds": Option("free-gcn", (*JUDGED, *FOLDS)),
    "judged-rewired": Option("free-gcn", (*JUDGED, "rewiring.beliefs=rewired")),
    "cautious-sage": Option("cautious-sage"),
    "cautious-sage-judged": Option("cautious-sage", CAUTIOUS, "cautious-sage"),
    "facts": Option("free-gcn", FACTS, "free"),
    "pairs": Option("free-gcn", PAIRS, "free"),
    "judged-drop": Option("free-gcn", (*JUDGED, "rewiring.drop=0.3")),
    "consistent": Option("free-gcn", CONSISTENT, "free"),
    "cautious-folds": Option("cautious-gcn", (*CAUTIOUS, *FOLDS)),
    "neighborhood": Option("free-gcn", (*PAIRS, *ORIGIN, *CONFIDENT, "rewiring.scorer=neighborhood")),
    "beliefs": Option("free-gcn", beliefs=True),
    "beliefs-judged": Option("free-gcn", JUDGED, "beliefs", beliefs=True),
}
"""The most promising first, for the time may end before all are trained."""


class Fit(NamedTuple):
    """Runs of one model on one graph."""

    case: Case
    option: str
    model: str


class Values(NamedTuple):
    """Validation value of every split and seed."""

    of: Fit
    values: dict[str, float] | None
    """None if training failed."""
    seconds: float


@dataclass(frozen=True)
class Limits:
    """Where the fits run and when the last one may begin."""

    runs: str
    memory: int | None
    until: float
    toy: bool = False


def fits(cases: Iterable[Case], options: Iterable[str]) -> list[Fit]:
    """All fits, each once, the most promising options first."""
    cases, found = list(cases), dict[Fit, None]()
    for name in options:
        if name in PLAIN:
            found |= {Fit(case, name, model_of(name)): None for case in cases}
            continue
        of_controls = OPTIONS[name].controls or name
        for case in cases:
            for option, model in ((name, LEARNED), *((of_controls, control) for control in CONTROLS)):
                found[Fit(case, option, model)] = None
    return list(found)


def model_of(rung: str) -> str:
    """Model of a rung of `auto`."""
    return next(each.model for each in read_rungs() if each.name == rung)


def train(fit: Fit, limits: Limits) -> Values | None:
    """Validation values of a fit; None if the time is over."""
    if time.time() > limits.until:
        return None
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    begin, option, case = time.time(), OPTIONS[fit.option], fit.case
    tables = merge(_tables(option.rung), _data(case), parse_overrides(option.overrides), _small(limits))
    of_all = {"preset": None, "runs": limits.runs, "memory": limits.memory, "progress": False}
    try:
        if option.beliefs:
            runs = [
                gm.fit(
                    _with_belief_candidates(case, split, of_all, limits),
                    fit.model,
                    splits=[split],
                    seeds=case.seeds,
                    settings=_without_setting(tables),
                    **of_all,
                )
                for split in range(case.splits)
            ]
        else:
            runs = [
                gm.fit(case.dataset, fit.model, splits=range(case.splits), seeds=case.seeds, settings=tables, **of_all)
            ]
    except Exception as error:  # one setting that fails must not end all others
        print(f"{fit.case.name} {fit.option} {fit.model}: {error}", flush=True)
        return Values(fit, None, time.time() - begin)
    values = {str(record.replica): float(record.val) for run in runs for record in run.records}
    return Values(fit, values, time.time() - begin)


def _tables(rung: str) -> dict[str, Any]:
    """Settings of a rung without those of the model's name."""
    return merge(next(each.tables for each in read_rungs() if each.name == rung))


def _data(case: Case) -> dict[str, Any]:
    name, _, value = case.setting.partition("=")
    return {"data": {name: value}} if name else {}


def _small(limits: Limits) -> dict[str, Any]:
    return {"model": {"hidden_channels": 4}, "train": {"epochs": 3}} if limits.toy else {}


def _without_setting(tables: dict[str, Any]) -> dict[str, Any]:
    """Settings for a graph that was read with its attack or protocol, and has its candidates."""
    rewiring = {**tables["rewiring"], "candidates": "data"}
    return {**{name: table for name, table in tables.items() if name != "data"}, "rewiring": rewiring}


def _with_belief_candidates(case: Case, split: int, of_all: dict[str, Any], limits: Limits) -> Any:
    """The graph with candidates for one split: neighbors in the class beliefs of an MLP that this split trained.

    Candidates of a split must not be seen by others: their training nodes are validation nodes of this one.
    """
    settings = merge(_tables("mlp-regular"), _data(case), _small(limits))
    run = gm.fit(case.dataset, "mlp", splits=[split], seeds=1, settings=settings, models=True, **of_all)
    name, _, value = case.setting.partition("=")
    data = gm.load(case.dataset, **({name: value} if name else {}))
    mask = data.train_mask if data.train_mask.dim() == 1 else data.train_mask[:, split]
    beliefs = run.predict_proba()
    beliefs[mask] = torch.nn.functional.one_hot(data.y[mask], beliefs.shape[1]).float()
    x = torch.nn.functional.normalize(data.x.to_dense().float(), dim=1)
    data.beliefs = torch.cat([beliefs, 0.3 * x], dim=1)  # features break ties
    data = gm.candidates.Local(per_node=10, on="beliefs")(data)
    del data.beliefs
    return data


def compare(ours: Values, theirs: Values) -> tuple[float, float]:
    """Mean paired difference in percent, and its standard error."""
    assert ours.values is not None
    assert theirs.values is not None
    pairs = [100 * (value - theirs.values[replica]) for replica, value in ours.values.items()]
    error = statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan
    return statistics.fmean(pairs), error


def mean(values: Values) -> float:
    """Mean validation value in percent."""
    return 100 * statistics.fmean((values.values or {"": math.nan}).values())


def tables(found: Sequence[Values]) -> list[str]:
    """Lines of a table for every graph."""
    done = {each.of: each for each in found if each.values}
    lines, gains = [], dict[str, list[str]]()
    for case in dict.fromkeys(each.of.case for each in found):
        here = {(fit.option, fit.model): each for fit, each in done.items() if fit.case == case}
        best = max((each for (_, model), each in here.items() if model != LEARNED), key=mean, default=None)
        plain = [f"{option} {mean(each):.2f}" for (option, _), each in here.items() if option in PLAIN]
        lines.append(f"\n{case.name}: {', '.join(plain)}")
        if best is not None:
            lines.append(f"  best without learned edges: {best.of.option} {best.of.model} {mean(best):.2f}")
        lines.append(f"  {'option':20s} {'learned':>8s} {'frozen':>8s} {'random':>8s}  over its control  over the best")
        for option, about in OPTIONS.items():
            learned = here.get((option, LEARNED))
            own = [here.get((about.controls or option, model)) for model in CONTROLS]
            shown = "".join(f" {mean(each):8.2f}" if each else f" {'':8s}" for each in (learned, *own))
            better = max((each for each in own if each), key=mean, default=None)
            if learned is None:
                continue
            over = [compare(learned, other) for other in (better, best) if other is not None]
            lines.append(f"  {option:20s}{shown}" + "".join(f"  {gain:+6.2f} ± {error:4.2f}  " for gain, error in over))
            if over:
                gains.setdefault(option, []).append(f"{over[0][0]:+5.1f}|{over[-1][0]:+5.1f}")
    lines.append("\nover its own control | over the best control of any option, graph by graph in the order above")
    return lines + [f"  {option:20s} {'  '.join(each)}" for option, each in gains.items()]


def main() -> None:
    """Train what is missing and print the tables."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--only", default="", help="data sets, separated by commas")
    parser.add_argument("--options", default=",".join(OPTIONS), help="options, separated by commas")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="no fit begins later than this")
    parser.add_argument("--runs", help="folder of the runs; finished ones are not trained again")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or case.dataset in options.only.split(",")]
    names = options.options.split(",")
    if options.toy:
        cases, names = [Case("demo", splits=2), Case("wine", splits=2)], ["gcn-regular", "free", "judged", "beliefs"]
    planned = fits(cases, names)
    print(f"{len(planned)} fits on {len(cases)} graphs, {options.workers} workers", flush=True)
    with TemporaryDirectory() as folder:
        found = _train_all(planned, options, folder)
    print("\n".join(tables(found)))
    result = {
        "values": [{**each.of._asdict(), "case": each.of.case.name, **each._asdict(), "of": None} for each in found]
    }
    harness.save("learning", result, harness.folder(options))


def _train_all(planned: list[Fit], options: argparse.Namespace, folder: str) -> list[Values]:
    """Train in several processes, and say what is done."""
    memory = available_bytes(pick_device("auto")) // options.workers if options.workers > 1 else None
    limits = Limits(
        str(Path(options.runs or folder).absolute()), memory, time.time() + 60 * options.minutes, options.toy
    )
    work, begin, found = partial(train, limits=limits), time.time(), list[Values]()
    if options.workers == 1:
        return [each for each in map(work, planned) if each]
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        results = pool.imap_unordered(work, planned)
        while time.time() < limits.until + LAST_SECONDS:
            try:
                each = results.next(timeout=10)
            except StopIteration:
                break
            except multiprocessing.TimeoutError:
                continue
            if each is not None:
                found.append(each)
                print(
                    f"{time.time() - begin:5.0f} s  {len(found):4d}  {each.of.case.name:32s} {each.of.option:20s} "
                    f"{each.of.model:12s} {mean(each):6.2f}  {each.seconds:5.1f} s",
                    flush=True,
                )
    return found


if __name__ == "__main__":
    main()
