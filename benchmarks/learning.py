"""What do learned edges add on validation? Rungs of `auto` and variants of them, each with its controls.

Every option is trained on every graph: with a scorer that learns, with one that never learns (`frozen`), and with
edges drawn at random (`random`), all with the same settings and seeds. The tables show the mean validation value and
the paired differences between learned edges and the better control of the option, and between learned edges and the
best of all that learns no edges, plain models included. No test value is read.

python benchmarks/learning.py --workers 14 --minutes 8 --runs runs/learning
python benchmarks/learning.py --only cora,actor --options 'gcn;judged-appnp'
python benchmarks/learning.py --summary
python benchmarks/learning.py --toy   # seconds; nothing is written
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from gumbel_mpnn.config.rungs import NO_FEATURES, read_rungs
from gumbel_mpnn.training import pick_device
from gumbel_mpnn.training.device import available_bytes

LAST_SECONDS = 45
"""After the time is over, what has begun may go on for so long."""
SMALL = {"model": {"hidden_channels": 4}, "train": {"epochs": 3}}
LEARNED, CONTROLS = "gumbel-mpnn", ("frozen", "random")
MODELS = ("learned", *CONTROLS)


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
    Case("attacked-cora", **ONE_SPLIT),
    Case("attacked-cora", "attack=meta-0.25", **ONE_SPLIT),
    Case("attacked-cora", "attack=meta-0.1", **ONE_SPLIT),
    Case("attacked-citeseer", **ONE_SPLIT),
    Case("attacked-citeseer", "attack=meta-0.25", **ONE_SPLIT),
    Case("blogcatalog", "protocol=per-class-20-30", splits=4),
    Case("blogcatalog", "protocol=random-48-32-20", splits=3),
    Case("cora"),
    Case("citeseer"),
    Case("chameleon"),
    Case("squirrel", splits=6),
    Case("actor", splits=5),
    Case("cora", "protocol=per-class-20-30"),
    Case("amazon-computers", "protocol=per-class-20-30", splits=3),
    Case("pubmed", "protocol=per-class-20-30", splits=4),
)


class Option(NamedTuple):
    """A rung of `auto` with other settings."""

    rung: str
    overrides: tuple[str, ...] = ()
    controls: str = ""
    """Option whose controls are also those of this one, since it differs in nothing but learning; its own if empty."""

    @property
    def model(self) -> str:
        """The model of the rung."""
        return RUNGS[self.rung].model


RUNGS = {rung.name: rung for rung in read_rungs() if rung.needs != NO_FEATURES}
SLOW = ("train.lr=0.003", "train.epochs=500", "train.patience=100")
WIDE = ("model.hidden_channels=256",)
OF_ALL = {
    "256 channels": WIDE,
    "weight decay 0.02": ("train.weight_decay=0.02",),
    "weight decay 0.01": ("train.weight_decay=0.01",),
    "input dropout 0.8": ("train.weight_decay=0.001", "model.input_dropout=0.8", "model.dropout=0.8"),
    "slow": SLOW,
    "slow, 256 channels": (*SLOW, *WIDE),
}
LAYERS = {
    "3 layers, batch norm": ("model.num_layers=3", "model.norm=batch", "model.residual=true", *WIDE),
    "2 layers, layer norm": ("model.norm=layer", "model.dropout=0.7", *WIDE),
    "3 layers, layer norm": ("model.num_layers=3", "model.norm=layer", "model.residual=true"),
}
TELEPORTS = {f"teleport {value}": (f"model.teleport={value}",) for value in (0.05, 0.2, 0.3)}
BACKBONES = {f"{name} in place of it": (f"model.backbone={name}",) for name in ("gcn", "sage")}
OF_SCORERS = {
    "no pair loss": Option("judged-channels", ("rewiring.pair_loss=0",), "judged-channels"),
    "no facts": Option("judged-channels", ("rewiring.scorer=class-space",), "judged-channels"),
    "one channel": Option("judged-channels", ("model.backbone=sage",)),
    "beliefs of features": Option("judged-channels", ("rewiring.beliefs=features",)),
}


def _variants(rung: str, *tables: Mapping[str, tuple[str, ...]]) -> dict[str, Option]:
    """A rung with each of some settings."""
    return {f"{rung}, {name}": Option(rung, overrides) for table in tables for name, overrides in table.items()}


OPTIONS = {
    **{name: Option(name) for name in RUNGS},
    **_variants("mlp-regular", OF_ALL),
    **_variants("gcn-regular", OF_ALL, LAYERS),
    **_variants("sage", OF_ALL, LAYERS),
    **_variants("appnp-regular", OF_ALL, TELEPORTS),
    **_variants("steady-appnp", OF_ALL),
    **_variants("judged-appnp", OF_ALL, BACKBONES),
    **_variants("judged-channels", OF_ALL),
    **{f"judged-channels, {name}": option for name, option in OF_SCORERS.items()},
}
UNLEARNED = [name for name, option in OPTIONS.items() if option.model != LEARNED]
"""Options that learn no edges, which the controls of `auto` may choose as well."""


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
    """All fits, each once."""
    cases, found = list(cases), dict[Fit, None]()
    for name in options:
        if name in UNLEARNED:
            found |= {Fit(case, name, OPTIONS[name].model): None for case in cases}
            continue
        of_controls = OPTIONS[name].controls or name
        for case in cases:
            for option, model in ((name, LEARNED), *((of_controls, control) for control in CONTROLS)):
                found[Fit(case, option, model)] = None
    return list(found)


def train(fit: Fit, limits: Limits) -> Values | None:
    """Validation values of a fit; None if the time is over."""
    if time.time() > limits.until:
        return None
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    begin, option, case = time.time(), OPTIONS[fit.option], fit.case
    try:
        run = gm.fit(
            case.dataset,
            fit.model,
            splits=range(case.splits),
            seeds=case.seeds,
            preset=None,
            settings=merge(
                RUNGS[option.rung].tables, _data(case), parse_overrides(option.overrides), SMALL if limits.toy else {}
            ),
            runs=limits.runs,
            memory=limits.memory,
            progress=False,
        )
    except Exception as error:  # one setting that fails must not end all others
        print(f"{fit.case.name} {fit.option} {fit.model}: {error}", flush=True)
        return Values(fit, None, time.time() - begin)
    values = {str(record.replica): float(record.val) for record in run.records}
    return Values(fit, values, time.time() - begin)


def _data(case: Case) -> dict[str, Any]:
    name, _, value = case.setting.partition("=")
    return {"data": {name: value}} if name else {}


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


def compared(found: Sequence[Values]) -> dict[str, Any]:
    """For every graph, the best that learns no edges, the values of such rungs, and the options compared with it."""
    done, result = {each.of: each for each in found if each.values}, dict[str, Any]()
    for case in dict.fromkeys(fit.case for fit in done):
        here = {(fit.option, fit.model): each for fit, each in done.items() if fit.case == case}
        best = max((each for (_, model), each in here.items() if model != LEARNED), key=mean, default=None)
        result[case.name] = {
            "best": None if best is None else [best.of.option, best.of.model, mean(best)],
            "unlearned": {option: mean(each) for (option, _), each in here.items() if option in UNLEARNED},
            "options": {
                option: _row(learned, [here.get((OPTIONS[option].controls or option, name)) for name in CONTROLS], best)
                for (option, model), learned in here.items()
                if model == LEARNED
            },
        }
    return result


def _row(learned: Values, controls: Sequence[Values | None], best: Values | None) -> dict[str, Any]:
    """Means, and the differences to the better control of the option and to the best of all, each with its error."""
    better = max((each for each in controls if each is not None), key=mean, default=None)
    means = [None if each is None else mean(each) for each in (learned, *controls)]
    over = [None if other is None else compare(learned, other) for other in (better, best)]
    return dict(zip(("learned", *CONTROLS, "over its control", "over the best"), (*means, *over), strict=True))


def lines(result: dict[str, Any]) -> Iterator[str]:
    """A table for every graph."""
    for graph, about in result.items():
        yield f"\n{graph}: " + ", ".join(f"{name} {value:.2f}" for name, value in about["unlearned"].items())
        if about["best"]:
            yield "  best without learned edges: {} {} {:.2f}".format(*about["best"])
        yield f"  {'option':46s} {'learned':>8s} {'frozen':>8s} {'random':>8s}  over its control  over the best"
        for option, row in about["options"].items():
            means = "".join(f" {row[name]:8.2f}" if row[name] is not None else " " * 9 for name in MODELS)
            over = [row[name] for name in ("over its control", "over the best")]
            shown = "".join(f"   {pair[0]:+6.2f} ± {pair[1]:4.2f} " for pair in over if pair is not None)
            yield f"  {option:46s}{means}{shown}"


def summary(result: dict[str, Any]) -> Iterator[str]:
    """Lines of a Markdown table: on every graph, the best with learned edges and the best without."""
    titles = ("graph", "best without learned edges", "val %", "best with", "val %", "difference")
    yield f"| {' | '.join(titles)} | `judged-channels` over its control |"
    yield "| --- | --- | --: | --- | --: | --: | --: |"
    for graph, about in result.items():
        (option, model, value), options = about["best"], about["options"]
        best = max(options, key=lambda name: options[name]["learned"])
        gain, error = options[best]["over the best"]
        own = options.get("judged-channels", {}).get("over its control")
        shown = "–" if own is None else f"{own[0]:+.2f} ± {own[1]:.2f}"
        yield (
            f"| {graph} | {option}{f' ({model})' if model in CONTROLS else ''} | {value:.2f} | {best} |"
            f" {options[best]['learned']:.2f} | {gain:+.2f} ± {error:.2f} | {shown} |"
        )


def main() -> None:
    """Train what is missing and print the tables."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--only", default="", help="data sets, separated by commas")
    parser.add_argument("--options", default=";".join(OPTIONS), help="options, separated by semicolons")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="no fit begins later than this")
    parser.add_argument("--runs", help="folder of the runs; finished ones are not trained again")
    parser.add_argument(
        "--summary", action="store_true", help="print the table of docs/results/auto.md from the result file"
    )
    options = parser.parse_args()
    if options.summary:
        print("\n".join(summary(json.loads((harness.RESULTS / "learning.json").read_text())["validation"])))
        return
    cases = [case for case in CASES if not options.only or case.dataset in options.only.split(",")]
    names = options.options.split(";")
    if options.toy:
        cases, names = (
            [Case("demo", splits=2), Case("wine", splits=2)],
            ["gcn", "judged-appnp", "judged-appnp, gcn in place of it"],
        )
    planned = fits(cases, names)
    print(f"{len(planned)} fits on {len(cases)} graphs, {options.workers} workers", flush=True)
    with TemporaryDirectory() as folder:
        found = _train_all(planned, options, folder)
    result = compared(found)
    print("\n".join(lines(result)))
    harness.save("learning", {"validation": result}, harness.folder(options))


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
                    f"{time.time() - begin:5.0f} s  {len(found):4d}  {each.of.case.name:32s} {each.of.option:46s} "
                    f"{each.of.model:12s} {mean(each):6.2f}  {each.seconds:5.1f} s",
                    flush=True,
                )
    return found


if __name__ == "__main__":
    main()
