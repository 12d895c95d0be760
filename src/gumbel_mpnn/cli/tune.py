"""`gumbel-mpnn tune`: search for settings, based on validation results only."""

from __future__ import annotations

import re
import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import is_standard_output

if TYPE_CHECKING:
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.spec import RunSpec, Tables
    from gumbel_mpnn.runs.tune import Tuning


@common.in_one_sentence
def tune(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`), or demo.")] = None,
    model: Annotated[str, typer.Option(help="Name of a model, or of several, separated by commas.")] = "gcn",
    trials: Annotated[int, typer.Option(help="Number of settings to try for each model.", min=1)] = 20,
    timeout: Annotated[
        str | None,
        typer.Option(help="Time for each model, such as 600, 10m or 2h; trials that were started are finished."),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of settings to search, as lists or ranges {low, high, log, step}; by default those that the"
            " model declares."
        ),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option(help="Whether to tune the plain backbone of a model that rewires too, with the same budget."),
    ] = True,
    splits: Annotated[str | None, typer.Option(help="Splits to use, such as 0-9; all by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds for each split.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    preset: Annotated[
        str,
        typer.Option(help="Source of all other settings: tuned, paper, none, or a TOML file."),
    ] = "tuned",
    overrides: common.OverrideOption = None,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    out: Annotated[
        Path | None, typer.Option(help="TOML file for the best settings, which train --preset FILE reads.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name for the best settings, which train --preset NAME finds on this data set.")
    ] = None,
    force: common.ForceOption = False,
    on: common.OnOption = "local",
    workers: Annotated[
        int, typer.Option(help="Number of processes of this machine that try settings at once.", min=1)
    ] = 1,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Optuna storage: a journal file, or the address of a database; by default a file in the runs folder."
        ),
    ] = None,
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    device: common.DeviceOption = "auto",
    quiet: common.QuietOption = False,
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Search for the settings with the best validation result. Test results are not used and not shown.

    The same command continues a search that was interrupted, or adds trials to it. Several commands at once share one.
    """
    from gumbel_mpnn.runs.space import read_space
    from gumbel_mpnn.runs.study import without_password
    from gumbel_mpnn.runs.tune import Budget, baseline_specs, search_all

    names = [each.strip() for each in model.split(",")]
    source = Source(dataset, nodes, edges, graph, label, features)
    if out is not None and len(names) > 1:
        raise UserError("--out is a file for the settings of one model: use --name for those of several")
    common.check_output("--out", out, (".toml",), inputs=[*source.files, space, Path(preset)], force=force)
    limit = None if timeout is None else _seconds(timeout)
    budget = Budget(trials, limit, str(runs), storage, device, seed=seed)
    given, family = read_space(space), None if preset == "none" else preset
    arguments = {
        "splits": None if splits is None else common.parse_range(splits),
        "seeds": seeds,
        "preset": family,
        "root": data_root,
    }
    specs = _specs(source, names, given, overrides or [], arguments)
    specs += baseline_specs(specs) if baseline else []
    _check_name(name, specs, force)
    found = search_all(specs, given, budget, workers, on, quiet)
    common.emit(_table(found), format, err=is_standard_output(out))
    for tuning in found:
        common.note(_in_words(tuning, timeout))
    if out is not None:
        common.note_of(found[0].save(out), f"the best settings of {found[0].model} are")
    if name is not None:
        for tuning in found:
            common.note_of(tuning.save_as(name), f"the best settings of {tuning.model} are")
        common.note(f"use them with --preset {name} on {found[0].dataset}")
    common.note(f"runs are in {runs / 'tune'}")
    common.note(f"see the trials with: optuna-dashboard {without_password(found[0].search.storage)}")


def _seconds(text: str) -> float:
    """Convert text to seconds: `"600"`, `"10m"` → 600; the units are s, m, h and d."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smhd]?)\s*", text, re.ASCII)
    if match is None or not float(match[1]):
        raise UserError(f"{reprlib.repr(text)} is not a time above 0: write it as 600, 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def _check_name(name: str | None, specs: list[RunSpec], force: bool) -> None:
    from gumbel_mpnn.settings.presets import check_own_name, list_presets

    if name is not None:
        check_own_name(name)
        for model, dataset in [(spec.settings.model, spec.settings.dataset) for spec in specs]:
            if (name, dataset, model) in list_presets() and not force:
                raise UserError(
                    f"--name {name}: there is such a preset for {model} on {dataset}: give another name, or --force"
                )


def _specs(
    source: Source, names: list[str], space: Tables | None, overrides: list[str], arguments: dict[str, Any]
) -> list[RunSpec]:
    """Describe the runs of every model, on data that is read once."""
    from gumbel_mpnn.runs.spec import RunSpec, asks_for_undirected
    from gumbel_mpnn.runs.tune import check_model, shared
    from gumbel_mpnn.settings.files import parse_overrides

    names = list(dict.fromkeys(map(check_model, names)))
    tried = (space or {}).get("data", {}).get("undirected", asks_for_undirected(arguments["preset"], overrides))
    # Directions are read if any trial needs them; trials on undirected graphs ignore them.
    data, given = source.to_train_on(all(tried) if isinstance(tried, list) else bool(tried)), parse_overrides(overrides)
    return [RunSpec.of(data, name, settings=shared(given, name, names), **arguments) for name in names]


def _table(found: list[Tuning]) -> Table:
    """All trials of all models, the best of each first."""
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.records import flat

    keys = list(dict.fromkeys(name.partition(" of ")[0] for tuning in found for name in tuning.search.space.searched))
    several = len(found) > 1
    rows = []
    for tuning in found:
        for trial in tuning.trials:
            values = flat(trial.settings.to_dict())
            val = [trial.val.mean, trial.val.std, trial.val.n] if trial.val.n else [None] * 3
            cells = [_cell(values.get(key)) for key in keys]
            rows.append([*([tuning.model] if several else []), trial.number, *val, trial.state, *cells])
    columns = [*(["model"] if several else []), "trial", "val", "std", "n", "state", *keys]
    return Table(columns, rows, headings={"val": "val %", "n": "runs"}, exact=keys, shares=("val", "std"))


def _cell(value: object) -> str | int | float | None:
    return value if isinstance(value, str | int | float | None) and not isinstance(value, bool) else str(value)


def _in_words(tuning: Tuning, timeout: str | None) -> str:
    """The best trial of a model, and its budget."""
    from gumbel_mpnn.runs.study import DIVERGED, FAILED, FINISHED, PRUNED, TOO_LARGE

    ended = {state: tuning.count(state) for state in (PRUNED, DIVERGED, TOO_LARGE, FAILED)}
    others = ", ".join(f"{count} {state}" for state, count in ended.items() if count)
    budget = f"{counted(len(tuning.trials), 'trial')} of {counted(tuning.search.runs_of_each, 'run')} each"
    budget += f", {timeout} at most" * (timeout is not None) + f" ({others})" * bool(others)
    if not tuning.count(FINISHED):
        return f"{tuning.model}: no trial is finished; budget {budget}"
    val = tuning.best.val
    error = "" if val.n == 1 else f" ± {100 * val.stderr:.2f}"
    return f"{tuning.model}: best val {100 * val.mean:.2f}{error}, trial {tuning.best.number}; budget {budget}"
