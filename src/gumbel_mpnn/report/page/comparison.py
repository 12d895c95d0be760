"""The table of a run beside its backbone, the best plain model and the control whose edges are not learned.

Only runs that are in the store are compared; for the others there is the command that trains them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config.presets import AUTO
from gumbel_mpnn.config.rungs import Rung, read_rungs
from gumbel_mpnn.data import specs
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.choice import LADDERS, read_choices
from gumbel_mpnn.runs.query import TRIALS, Record, Summary, compare, find_records, flat
from gumbel_mpnn.runs.query.paired import mean_interval
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.training.build import WITH_STRUCTURE

CONTROL = "frozen"
Records = list[Record]


def compared(run: Run) -> dict[str, Any]:
    """Rows of the table, the run first, and commands for the rows that are not there.

    All rows have the splits and seeds of the run. Among several settings of a model, that with the best validation
    value is taken.
    """
    store = _Store(run)
    own = run.settings.model
    backbone = run.settings.options.get("backbone") if run.rewires else None
    rows, absent = [_row("this run", name_of(run), run.records, None)], []
    wanted: list[tuple[str, str, Records | None]] = []
    if backbone is not None:
        wanted.append(("its backbone", str(backbone), store.best(str(backbone))))
    plain = store.best(*backbones)
    if plain is None or plain[0].fingerprint != run.records[0].fingerprint:
        wanted.append(("best plain model", "auto" if plain is None else plain[0].settings["model"]["name"], plain))
    if run.choice is not None and run.choice.learned != CONTROL:
        ladder = next(name for name, of in LADDERS.items() if of == (CONTROL, run.choice.wary))
        wanted.append(("control, edges not learned", ladder, store.ladder(ladder)))
    elif run.settings.rewiring is not None and own != CONTROL:
        wanted.append(("control, edges not learned", CONTROL, store.alike(CONTROL)))
    roles: dict[str, tuple[str, Records]] = {}
    for role, model, found in wanted:
        if found is None:
            absent.append({"role": role, "command": store.command(model)})
        else:  # the backbone may be the best plain model too
            also = f"{roles[key][0]}, " if (key := found[0].fingerprint) in roles else ""
            roles[key] = (also + role, found)
    for role, found in roles.values():
        model = found[0].settings["model"]["name"]
        rows.append(_row(role, MODEL_NAMES.get(model, model), found, run.records))
    return {"rows": rows, "absent": absent}


class _Store:
    """Finished runs on the same data as those of a run, with the same splits and seeds."""

    def __init__(self, run: Run) -> None:
        self.run, self.replicas = run, {record.replica for record in run.records}
        self.path = run.folder.path
        known = self.path.parent.name == run.settings.model and self.path.parents[1].name == run.settings.dataset
        self.root = self.path.parents[3] if known else None

    def best(self, *models: str) -> Records | None:
        """Runs of the setting of these models with the best validation value; None if there are none."""
        found = [records for model in models for _, records in self._settings(model)]
        return max(found, key=lambda records: Summary.of(record.val for record in records).mean, default=None)

    def alike(self, model: str) -> Records | None:
        """Runs of a model with the settings of the run."""
        wanted = _without_name(self.run.records[0])
        return next((found for _, found in self._settings(model) if _without_name(found[0]) == wanted), None)

    def ladder(self, ladder: str) -> Records | None:
        """Runs that another ladder of `auto` chose, with positions beside the features if the run has them."""
        names, beside = {str(replica) for replica in self.replicas}, self.run.settings.data.features == WITH_STRUCTURE
        for path, records in self._settings("*"):
            has_them = records[0].settings["data"]["features"] == WITH_STRUCTURE
            chosen = (set(choice.runs) for choice in read_choices(path) if choice.ladder == ladder)
            if has_them == beside and any(names <= runs for runs in chosen):
                return records
        return None

    def command(self, model: str) -> str:
        """The command that trains a model on the same data, splits and seeds, with what the user has set."""
        seeds = max(replica.seed for replica in self.replicas) + 1
        numbers = sorted({replica.split for replica in self.replicas})
        splits = ",".join(map(str, numbers))
        if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
            splits = f"{numbers[0]}-{numbers[-1]}"
        source, where = self._source(), [] if self.root is None else ["--runs", str(self.root)]
        overrides = self._overrides(model)
        if source is None:
            also = f", overrides={overrides}" * bool(overrides)
            return f'gm.fit(data, "{model}", splits={numbers}, seeds={seeds}, runs={str(self.root or "runs")!r}{also})'
        options = [*source, "--model", model, "--splits", splits, "--seeds", str(seeds), *where]
        return shlex.join(["gumbel-mpnn", "train", *options, *(part for each in overrides for part in ("--set", each))])

    def _overrides(self, model: str) -> list[str]:
        """Settings of the run that are not those of its preset or rung, as far as another model has them."""
        run, rung = self.run, self._rung()
        backbone = run.settings.options.get("backbone")
        usual = RunSpec.of(
            Data(name=run.settings.dataset),  # settings depend on the name alone, and the data may be gone
            run.settings.model,
            preset="tuned" if rung is None else None,
            settings={} if backbone is None or rung is not None else {"model": {"backbone": backbone}},
            rung=rung,
        ).settings
        ours, theirs = flat(run.settings.to_dict()), flat(usual.to_dict())
        changed = {key: value for key, value in ours.items() if key not in theirs or theirs[key] != value}
        ladder = model.startswith(AUTO)
        if backbone is not None and not ladder and backbone != models.defaults(run.settings.model)["backbone"]:
            changed["model.backbone"] = backbone
        if not ladder:
            options, rewires = models.defaults(model), models[model].rewires
            known = {"data": True, "train": True, "rewiring": rewires}
            changed = {
                key: value
                for key, value in changed.items()
                if known.get(key.partition(".")[0], key.partition(".")[2] in options)
            }
        changed = {key: str(value).lower() if isinstance(value, bool) else value for key, value in changed.items()}
        return [f"{key}={value}" for key, value in changed.items() if value is not None]

    def _rung(self) -> Rung | None:
        choice = self.run.choice
        return None if choice is None else next((each for each in read_rungs() if each.name == choice.chosen), None)

    def _source(self) -> list[str] | None:
        """Arguments of the command that name the data; None for a graph that was given in Python."""
        name, files = self.run.settings.dataset, self.run.trained_on.facts.source_files
        if files is None:
            return next(([key] for key, spec in specs.items() if spec.name == name), None)
        label = [] if files.get("label") is None else ["--label", str(files["label"])]
        if files["reader"] != "csv":
            return ["--graph", str(files["path"]), *label]
        edges = [] if files["edges"] is None else ["--edges", str(files["edges"])]
        return ["--nodes", str(files["nodes"]), *edges, *label]

    def _settings(self, model: str) -> Iterator[tuple[Path, Records]]:
        """Folders of settings of a model that have all these splits and seeds, with their runs."""
        if self.root is None:
            return
        digest = self.run.records[0].data_hash
        for path in sorted(self.root.glob(f"*/{escape(self.run.settings.dataset)}/{model}/*")):
            if path.parents[2].name == TRIALS:
                continue
            records = {record.replica: record for record in find_records(path) if record.data_hash == digest}
            if self.replicas <= records.keys():
                yield path, [records[record.replica] for record in self.run.records]


def _without_name(record: Record) -> dict[str, Any]:
    settings = record.settings
    return {**settings, "model": {key: value for key, value in settings["model"].items() if key != "name"}}


def _row(role: str, name: str, records: Sequence[Record], reference: Iterable[Record] | None) -> dict[str, Any]:
    """Test and validation metric with a 95 % interval, and the difference of the run to this row."""
    test, (interval, over) = Summary.of(record.test for record in records), mean_interval(records)
    row: dict[str, Any] = {
        "role": role,
        "name": name,
        "runs": len(records),
        "test": test.to_dict()["mean"],
        "interval": interval,
        "over": over,
        "values": [record.test for record in records if record.test is not None],
        "val": Summary.of(record.val for record in records).to_dict()["mean"],
        "gain": None,
    }
    if reference is not None:
        try:
            paired = compare(reference, records)
        except UserError:  # no test nodes
            return row
        row["gain"] = {
            "mean": paired.mean,
            "interval": None if paired.low is None else [paired.low, paired.high],
            "over": paired.over,
            "outcome": paired.outcome,
            "verdict": paired.verdict,
        }
    return row


def name_of(run: Run) -> str:
    """Name of the model, or `auto` with the rung that it chose."""
    if run.choice is not None:
        return f"{MODEL_NAMES[run.choice.ladder]} ({run.choice.chosen})"
    return MODEL_NAMES.get(run.settings.model, run.settings.model)
