"""`auto`: trains rungs of growing freedom, from plain models to free rewiring, and chooses one on validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from torch_geometric.data import Data

from gumbel_mpnn.data.check import check_kind, has_identity_features
from gumbel_mpnn.data.noise import HostileEdges
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.choice import (
    LADDERS,
    LEARNED,
    Candidate,
    Choice,
    Ladder,
    Values,
    best_of,
    choose,
    difference,
    upper_half,
    write_choice,
)
from gumbel_mpnn.runs.fitting import Place, Step, find_spec, fit_spec
from gumbel_mpnn.runs.reader import DataReader, Transform
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.spec import RunSpec, Tables, Workload, of_model, splits_without_validation
from gumbel_mpnn.runs.work_queue import BusyError
from gumbel_mpnn.settings.files import merge, parse_overrides
from gumbel_mpnn.settings.presets import AUTO, Rung, read_rungs
from gumbel_mpnn.util.errors import DivergedError, UserError, did_you_mean

RunsOf = Callable[[RunSpec, Step, bool], Run | None]
"""Trains or finds the runs of a rung; the last argument says whether to wait for other processes that train them."""
ROUNDS = (4, 2, 1)
"""After a quarter and after half of the splits, half of the rungs are left."""


@dataclass(frozen=True)
class Part:
    """Splits and seeds of a round."""

    splits: tuple[int, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class AutoSpec:
    """Description of the runs of `auto`: one spec per rung, the plainest first."""

    rungs: Mapping[str, tuple[Rung, RunSpec]]
    ladder: Ladder = LADDERS[AUTO]

    @classmethod
    def of(
        cls,
        dataset: str | Data | Callable[[bool], str | Data],
        *,
        splits: Iterable[int] | None = None,
        seeds: int | Iterable[int] = 1,
        settings: Tables | None = None,
        overrides: Iterable[str] = (),
        transform: Transform | None = None,
        root: str | Path | None = None,
        ladder: Ladder = LADDERS[AUTO],
    ) -> AutoSpec:
        """Describe the runs of `fit(dataset, "auto")`; settings of the user are given to every rung that has them."""
        check_kind(dataset)
        given = merge(settings, parse_overrides(overrides))
        if callable(dataset) and not isinstance(dataset, Data):
            dataset = dataset(bool(given.get("data", {}).get("undirected", True)))
        rungs = [replace(rung, model=ladder.learned) if rung.model == LEARNED else rung for rung in read_rungs()]
        _check_options(given, rungs)
        splits = list(splits) if isinstance(splits, Iterator) else splits
        seeds = list(seeds) if isinstance(seeds, Iterator) else seeds
        return cls(
            {
                rung.name: (
                    rung,
                    RunSpec.of(
                        dataset,
                        rung.model,
                        splits=splits,
                        seeds=seeds,
                        preset=None,
                        rung=rung,
                        settings=of_model(given, rung.model, rung.tables),
                        transform=transform,
                        root=root,
                    ),
                )
                for rung in rungs
            },
            ladder,
        )

    def suited_to(self, data: Data) -> AutoSpec:
        """The rungs that are tried on a graph: others than those for features if it has none."""
        has_features = not has_identity_features(data)
        return replace(self, rungs={name: each for name, each in self.rungs.items() if each[0].suits(has_features)})

    def compared(self, reader: DataReader | None) -> AutoSpec:
        """What the rungs are compared on: a wary ladder on its first split alone, with hostile edges."""
        if not self.ladder.wary:
            return self
        split = self.plainest.read(reader).replicas[0].split
        besieged = HostileEdges(split, self.plainest.transform)
        rungs = {
            name: (rung, replace(spec, transform=besieged, splits=(split,)))
            for name, (rung, spec) in self.rungs.items()
        }
        return replace(self, rungs=rungs)

    @property
    def plainest(self) -> RunSpec:
        """Spec of the plainest rung."""
        return next(spec for _, spec in self.rungs.values())

    @property
    def plain(self) -> list[str]:
        """Names of the rungs that train on the given edges alone, or on none."""
        return [name for name, (rung, _) in self.rungs.items() if not models[rung.model].rewires]


def fit_auto(spec: AutoSpec, place: Place) -> Run:
    """Train the rungs, of which weak ones are stopped early; returns the runs of the chosen rung with their `choice`.

    Rungs are compared on the runs of a quarter of the splits (or of the seeds, if there are fewer than three splits),
    then of half of them, then of all. After each of the first two rounds the better half goes on, with the best plain
    rung. The choice is made for the graph, on the validation values of all runs. A wary ladder is compared on the first
    split of a graph with hostile edges, and the chosen rung is then trained on the graph itself.
    """
    temporary = TemporaryDirectory() if place.runs is None else None
    place = replace(place, runs=temporary.name if temporary else place.runs, reader=place.reader or DataReader())

    def train(rung: RunSpec, step: Step, wait: bool) -> Run | None:
        if place.monitor is not None:
            place.monitor.rung(step)
        try:
            return fit_spec(rung, replace(place, models=False, wait=wait))
        except DivergedError:
            return None

    run = _climb(spec.compared(place.reader), place, train)
    if run is None or run.choice is None:
        raise UserError("training of every rung diverged: are the features of very different sizes?")
    if place.models or spec.ladder.wary:  # models of the chosen rung only
        run = _trained_on(fit_spec(spec.rungs[run.choice.chosen][1], place), run, run.choice)
    assert run.choice is not None
    write_choice(run.folder.path, run.choice)
    return replace(run, _temporary=temporary)


def find_auto(spec: AutoSpec, place: Place) -> Run | None:
    """Find the runs of `fit_auto` without training; returns None if some are missing."""
    place, missing = replace(place, reader=place.reader or DataReader()), list[str]()

    def find(rung: RunSpec, step: Step, wait: bool) -> Run | None:
        found = find_spec(rung, place)
        if found is None and not _has_diverged(rung, place):
            missing.append(step.rung)
        return found

    run = _climb(spec.compared(place.reader), place, find)
    if missing or run is None or run.choice is None:
        return None
    if spec.ladder.wary:
        found = find_spec(spec.rungs[run.choice.chosen][1], place)
        return None if found is None else _trained_on(found, run, run.choice)
    return run


def _trained_on(run: Run, compared: Run, choice: Choice) -> Run:
    """Runs of the chosen rung; those of other rungs are kept unless they were trained on another graph."""
    choice = replace(choice, runs=tuple(str(record.replica) for record in run.records))
    return replace(run, choice=choice, rungs={} if choice.wary else compared.rungs)


def _climb(spec: AutoSpec, place: Place, runs_of: RunsOf) -> Run | None:
    """Compare the rungs round by round; rungs without runs are left out. Returns the runs of the chosen rung."""
    workload = spec.plainest.read(place.reader)
    if splits_without_validation(workload.data, workload.replicas):
        raise UserError(
            "model 'auto' chooses on validation, but there are splits without validation nodes: name another model, or"
            " give every split validation nodes"
        )
    spec = spec.suited_to(workload.data)
    rounds, runs, running, done = _rounds(workload), dict[str, Run](), list(spec.rungs), 0.0
    for number, part in enumerate(rounds):
        steps = _steps(spec, running, number, rounds, done)
        for name, run in _round(spec, part, steps, place, runs_of).items():
            if run is None:
                runs.pop(name, None)
                running.remove(name)
            else:
                runs[name] = run
        done = steps[-1].before + steps[-1].share
        if not running:
            return None
        if number < len(rounds) - 1:
            running = upper_half(_values(runs), running, spec.plain)
    return _chosen(spec, runs, running, workload)


def _round(spec: AutoSpec, part: Part, steps: Sequence[Step], place: Place, runs_of: RunsOf) -> dict[str, Run | None]:
    """Runs of every rung of a round; None if there are none.

    Several processes begin with the freest rungs, which take longest, so that they end at about the same time. Rungs
    that another one is training come last.
    """
    left, found, done = list(steps), dict[str, Run | None](), steps[0].before
    if place.parts > 1:
        left.reverse()
    for is_last_try in (False, True):
        busy = []
        for step in left:
            rung = replace(spec.rungs[step.rung][1], splits=part.splits, seeds=part.seeds)
            step = replace(step, before=done, processes=place.parts)
            try:
                found[step.rung] = runs_of(rung, step, is_last_try and place.wait)
            except BusyError:
                if is_last_try:
                    raise
                busy.append(step)
            else:
                done += step.share
        left = busy
    return found


def _steps(spec: AutoSpec, running: list[str], number: int, rounds: list[Part], done: float) -> list[Step]:
    """The steps of a round; `done` is the share of the work before it.

    The work of later rounds is estimated from above: as if the costliest half of the rungs went on.
    """
    runs = [0, *(len(part.splits) * len(part.seeds) for part in rounds)]
    costs, ahead = [_cost(spec.rungs[name][1]) for name in running], 0.0
    left = sorted(costs, reverse=True)
    for later in range(number + 1, len(rounds)):
        left = left[: -(-len(left) // 2) + 1]
        ahead += sum(left) * (runs[later + 1] - runs[later])
    now = [cost * (runs[number + 1] - runs[number]) for cost in costs]
    shares = [(1 - done) * work / (sum(now) + ahead) for work in now]
    return [
        Step(name, number + 1, k + 1, len(running), done + sum(shares[:k]), shares[k]) for k, name in enumerate(running)
    ]


def _cost(spec: RunSpec) -> float:
    """Cost of an epoch of a rung compared with others: layers of all drawn graphs, twice if edges have a gradient."""
    rewiring, layers = spec.settings.rewiring, spec.settings.options["num_layers"]
    return float(layers if rewiring is None else 2 * rewiring.samples * layers)


def _chosen(spec: AutoSpec, runs: Mapping[str, Run], finalists: list[str], workload: Workload) -> Run:
    values, val_nodes = _values(runs), _val_nodes(workload)
    best, chosen = best_of(values, finalists), choose(values, finalists, spec.plain, val_nodes)
    plain = [name for name in finalists if name in spec.plain] or [name for name in spec.plain if name in runs]
    best_plain = best_of(values, plain) if plain else None
    gain, gain_error = difference(values[chosen], values[best_plain], val_nodes) if best_plain else (None, None)
    ranks = {name: 1 + k for k, name in enumerate(sorted(finalists, key=lambda name: -runs[name].val.mean))}
    rungs = []
    for name, (rung, _) in spec.rungs.items():
        if name in runs:
            behind, error = difference(values[best], values[name], val_nodes)
            val, count = runs[name].val.mean, runs[name].n
            rungs.append(Candidate(name, rung.about, name in spec.plain, val, behind, error, count, ranks.get(name)))
        else:
            rungs.append(Candidate(name, rung.about, name in spec.plain, None, None, None, 0, None))
    of = tuple(str(record.replica) for record in runs[chosen].records)
    choice = Choice(chosen, best_plain, gain, gain_error, tuple(rungs), spec.ladder.learned, of, spec.ladder.wary)
    return replace(runs[chosen], rungs=runs, choice=choice)


def _val_nodes(workload: Workload) -> int:
    """Mean number of validation nodes of the splits."""
    splits = sorted({replica.split for replica in workload.replicas})
    return int(by_split(workload.data.val_mask)[:, splits].float().sum(0).mean())


def _values(runs: Mapping[str, Run]) -> dict[str, Values]:
    return {name: {record.replica: record.val_or_nan for record in run.records} for name, run in runs.items()}


def _rounds(workload: Workload) -> list[Part]:
    """Splits and seeds of each round; a round has two runs of a rung or more, if there are as many."""
    splits = tuple(dict.fromkeys(replica.split for replica in workload.replicas))
    seeds = tuple(dict.fromkeys(replica.seed for replica in workload.replicas))
    total = len(splits) if len(splits) >= 3 else len(seeds)
    counts = sorted({max(min(2, total), -(-total // share)) for share in ROUNDS})
    if len(splits) >= 3:
        return [Part(splits[:count], seeds) for count in counts]
    return [Part(splits, seeds[:count]) for count in counts]


def _has_diverged(spec: RunSpec, place: Place) -> bool:
    workload = spec.read(place.reader)
    try:
        place.folder(workload, place.runs or "").check_diverged(workload.replicas)
    except DivergedError:
        return True
    return False


def _check_options(given: Tables, rungs: Iterable[Rung]) -> None:
    """Raise a `UserError` for an option of a model that no rung has, or one that every rung sets by itself."""
    known = {option for rung in rungs for option in models.defaults(rung.model, rung.tables.get("model"))} - {
        "backbone"
    }
    for option in given.get("model", {}):
        if option == "backbone":
            raise UserError("model 'auto' chooses the backbone: leave out model.backbone, or name another model")
        if option not in known:
            raise UserError(f"model 'auto' has no option {option!r}: {did_you_mean(option, known)}")
