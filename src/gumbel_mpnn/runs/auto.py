"""`auto`: trains rungs of growing freedom, from plain models to free rewiring, and chooses one on validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.data.check import check_kind, has_identity_features
from gumbel_mpnn.data.noise import HostileEdges
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.nn import models
from gumbel_mpnn.runs.choice import (
    FEW_SPLITS,
    LEARNED,
    Candidate,
    Choice,
    Values,
    best_of,
    choose,
    difference,
    upper_half,
    write_choice,
)
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import Job, RunSpec, Tables, of_model, splits_without_validation
from gumbel_mpnn.settings.files import merge, parse_overrides
from gumbel_mpnn.settings.presets import Rung, read_rungs
from gumbel_mpnn.settings.registry import checked_like
from gumbel_mpnn.util.errors import DivergedError, UserError, did_you_mean, unknown_name

ROUNDS = (4, 2, 1)
"""After a quarter and after half of the splits, half of the rungs are left."""
OPTIONS: Mapping[str, Any] = {"learned": LEARNED, "wary": False}
"""Options of `auto`: the model of the rungs that learn edges, of which another, such as `frozen`, makes a control; and
whether rungs are compared on a graph with hostile edges at validation nodes."""


@dataclass(frozen=True)
class AutoSpec:
    """Description of the runs of `auto`: one spec per rung, the plainest first."""

    rungs: Mapping[str, tuple[Rung, RunSpec]]
    learned: str = LEARNED
    """Model of the rungs that learn edges."""
    wary: bool = False
    """Whether rungs are compared on a graph with hostile edges at validation nodes."""

    @classmethod
    def of(
        cls,
        dataset: str | Data,
        *,
        splits: Iterable[int] | None = None,
        seeds: int | Iterable[int] = 1,
        settings: Tables | None = None,
        overrides: Iterable[str] = (),
        **arguments: Any,
    ) -> AutoSpec:
        """Describe the runs of `fit(dataset, "auto")`; settings of the user are given to every rung that has them.

        The arguments are those of `RunSpec.of`, without a model and a preset.
        """
        check_kind(dataset)
        arguments["splits"] = list(splits) if isinstance(splits, Iterator) else splits
        arguments["seeds"] = list(seeds) if isinstance(seeds, Iterator) else seeds
        given = merge(settings, parse_overrides(overrides))
        given["model"], own = _without_own_options(given.get("model", {}))
        rungs = [replace(rung, model=own["learned"]) if rung.model == LEARNED else rung for rung in read_rungs()]
        known = {option for rung in rungs for option in models.defaults(rung.model, rung.tables.get("model"))}
        for option in given["model"]:
            if option == "backbone":
                raise UserError("model 'auto' chooses the backbone: leave out model.backbone, or name another model")
            if option not in known:
                raise UserError(f"model 'auto' has no option {option!r}: {did_you_mean(option, [*known, *OPTIONS])}")
        specs = dict[str, tuple[Rung, RunSpec]]()
        for rung in rungs:
            tables = of_model(given, rung.model, rung.tables)
            spec = RunSpec.of(dataset, rung.model, preset=None, rung=rung, settings=tables, **arguments)
            specs[rung.name] = rung, spec
        return cls(specs, **own)

    def suited_to(self, data: Data) -> AutoSpec:
        """The rungs that are tried on a graph: others than those for features if it has none."""
        has_features = not has_identity_features(data)
        return replace(self, rungs={name: each for name, each in self.rungs.items() if each[0].suits(has_features)})

    def compared(self, session: Session) -> AutoSpec:
        """What the rungs are compared on: if wary, the first split of the graph with hostile edges."""
        if not self.wary:
            return self
        split = self.plainest.read(session.reader).replicas[0].split
        besieged = HostileEdges(split, self.plainest.transform)
        each = {name: replace(spec, transform=besieged, splits=(split,)) for name, (_, spec) in self.rungs.items()}
        return replace(self, rungs={name: (rung, each[name]) for name, (rung, _) in self.rungs.items()})

    @property
    def plainest(self) -> RunSpec:
        """Spec of the plainest rung."""
        return next(spec for _, spec in self.rungs.values())

    @property
    def plain(self) -> list[str]:
        """Names of the rungs that train on the given edges alone, or on none."""
        return [name for name, (rung, _) in self.rungs.items() if not models[rung.model].rewires]


def _without_own_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the options of `auto` from those of the models of its rungs."""
    own = {
        name: checked_like(default, options.get(name, default), f"option {name!r} of model 'auto'")
        for name, default in OPTIONS.items()
    }
    if own["learned"] not in models or not models[own["learned"]].rewires:
        raise unknown_name("model that rewires", own["learned"], [name for name in models if models[name].rewires])
    return {name: value for name, value in options.items() if name not in own}, own


def fit_auto(spec: AutoSpec, session: Session) -> Run:
    """Train the rungs, of which weak ones are stopped early; returns the runs of the chosen rung with their `choice`.

    Rungs are compared on the runs of a quarter of the splits (or of the seeds, if there are fewer than three splits),
    then of half of them, then of all. After each of the first two rounds the better half goes on, with the best plain
    rung. The choice is made for the graph, on the validation values of all runs. If it is wary, rungs are compared on
    the first split of a graph with hostile edges, and the chosen rung is then trained on the graph itself.
    """
    choice, runs = _climb(spec.compared(session), session)
    run = runs[choice.chosen]
    if spec.wary:  # the runs so far were trained on another graph
        run, runs = session.fit(spec.rungs[choice.chosen][1]), {}
    choice = replace(choice, runs=tuple(str(record.replica) for record in run.records))
    write_choice(run.folder.path, choice)
    return replace(run, rungs=runs, choice=choice)


def _climb(spec: AutoSpec, session: Session) -> tuple[Choice, dict[str, Run]]:
    """Compare the rungs round by round; those that diverge are left out. Returns the choice and the runs of all."""
    job = spec.plainest.read(session.reader)
    if splits_without_validation(job):
        raise UserError(
            "model 'auto' chooses on validation, but there are splits without validation nodes: name another model, or"
            " give every split validation nodes"
        )
    spec = spec.suited_to(job.data)
    rounds, runs, running = _rounds(job), dict[str, Run](), list(spec.rungs)
    for number, (splits, seeds) in enumerate(rounds):
        title = f"round {number + 1}{f' of {len(rounds)}' * (len(rounds) > 1)}"
        names = [f"rung {name}" for name in running]
        specs = [replace(spec.rungs[name][1], splits=splits, seeds=seeds) for name in running]
        for name, run in zip(list(running), session.fit_all(specs, names, title), strict=True):
            if isinstance(run, DivergedError):
                runs.pop(name, None)
                running.remove(name)
            else:
                runs[name] = run
        if not running:
            raise UserError("training of every rung diverged: are the features of very different sizes?")
        if number < len(rounds) - 1:
            running = upper_half(_values(runs), running, spec.plain)
    return _chosen(spec, runs, running, job), runs


def _rounds(job: Job) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Splits and seeds of each round; a round has two runs of a rung or more, if there are as many."""
    splits = tuple(dict.fromkeys(replica.split for replica in job.replicas))
    seeds = tuple(dict.fromkeys(replica.seed for replica in job.replicas))
    total = len(splits) if len(splits) >= FEW_SPLITS else len(seeds)
    counts = sorted({max(min(2, total), -(-total // share)) for share in ROUNDS})
    if len(splits) >= FEW_SPLITS:
        return [(splits[:count], seeds) for count in counts]
    return [(splits, seeds[:count]) for count in counts]


def _chosen(spec: AutoSpec, runs: Mapping[str, Run], finalists: list[str], job: Job) -> Choice:
    splits = sorted({replica.split for replica in job.replicas})
    val_nodes = int(by_split(job.data.val_mask)[:, splits].float().sum(0).mean())
    values = _values(runs)
    best, chosen = best_of(values, finalists), choose(values, finalists, spec.plain, val_nodes)
    plain = [name for name in finalists if name in spec.plain] or [name for name in spec.plain if name in runs]
    best_plain = best_of(values, plain) if plain else None
    gain, gain_error = difference(values[chosen], values[best_plain], val_nodes) if best_plain else (None, None)
    ranks = {name: 1 + k for k, name in enumerate(sorted(finalists, key=lambda name: -runs[name].val.mean))}
    rungs = []
    for name, (rung, _) in spec.rungs.items():
        val, count = (runs[name].val.mean, runs[name].n) if name in runs else (None, 0)
        behind, error = difference(values[best], values[name], val_nodes) if name in runs else (None, None)
        rungs.append(Candidate(name, rung.about, name in spec.plain, val, behind, error, count, ranks.get(name)))
    return Choice(chosen, best_plain, gain, gain_error, tuple(rungs), spec.learned, (), spec.wary)


def _values(runs: Mapping[str, Run]) -> dict[str, Values]:
    return {name: {record.replica: record.val_or_nan for record in run.records} for name, run in runs.items()}
