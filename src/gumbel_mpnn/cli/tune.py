"""`gumbel-mpnn tune`: search for settings, based on validation results only."""

from __future__ import annotations

import re
import reprlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import is_standard_output

if TYPE_CHECKING:
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import RunSpec
    from gumbel_mpnn.runs.spec import Tables
    from gumbel_mpnn.runs.trials import Trial
    from gumbel_mpnn.runs.tuned import Tuning


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
    from gumbel_mpnn.runs import Machines
    from gumbel_mpnn.runs.progress import StudyMonitor
    from gumbel_mpnn.runs.study import without_password
    from gumbel_mpnn.runs.tuning import (
        WITHOUT_OPTUNA,
        Budget,
        baseline_specs,
        has_optuna,
        read_space,
        search_all,
    )

    names = [each.strip() for each in model.split(",")]
    source = Source(dataset, nodes, edges, graph, label, features)
    if out is not None and len(names) > 1:
        raise UserError("--out is a file for the settings of one model: use --name for those of several")
    common.check_output("--out", out, (".toml",), inputs=[*source.files, space, Path(preset)], force=force)
    limit = None if timeout is None else _seconds(timeout)
    budget = Budget(trials, limit, str(runs), storage, workers, device, seed=seed)
    given = read_space(space)
    arguments = {
        "splits": None if splits is None else common.parse_range(splits),
        "seeds": seeds,
        "preset": None if preset == "none" else preset,
        "root": data_root,
    }
    specs = _specs(source, names, given, overrides or [], arguments)
    specs += baseline_specs(specs) if baseline else []
    _check_name(name, specs, force)
    if not has_optuna():
        budget.check_without_optuna()
        common.note(WITHOUT_OPTUNA)
    with closing(StudyMonitor(quiet=quiet)) as monitor:
        found = search_all(specs, given, budget, Machines(on, workers), monitor)
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
    if found[0].search.storage:
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
    from gumbel_mpnn.runs import RunSpec
    from gumbel_mpnn.runs.spec import one_model
    from gumbel_mpnn.runs.tuning import shared
    from gumbel_mpnn.settings.files import parse_overrides
    from gumbel_mpnn.settings.plugins import load_plugins
    from gumbel_mpnn.settings.spaces import Choices, Space

    load_plugins()
    names = list(dict.fromkeys(one_model(name) for name in names))
    fixed = Space.of(space or {})
    tried = fixed.open.get("data.undirected", Choices((fixed.fixed.get("data", {}).get("undirected", True),)))
    # Directions are read if any trial needs them; trials on undirected graphs ignore them.
    never_directed = all(tried.bounds)
    given, specs = parse_overrides(overrides), list[RunSpec]()
    for name in names:
        data = specs[0].dataset if specs else lambda undirected: source.to_train_on(undirected and never_directed)
        specs.append(RunSpec.of(data, name, settings=shared(given, name, names), **arguments))
    return specs


def _table(found: list[Tuning]) -> Table:
    """All trials of all models, the best of each first."""
    from gumbel_mpnn.report import Table

    keys = list(dict.fromkeys(key for tuning in found for key in _keys(tuning)))
    several = len(found) > 1
    rows = [
        [*([tuning.model] if several else []), trial.number, trial.val, trial.std, trial.n, trial.state]
        + [_cell(_values(trial).get(key)) for key in keys]
        for tuning in found
        for trial in tuning.trials
    ]
    columns = [*(["model"] if several else []), "trial", "val", "std", "n", "state", *keys]
    return Table(columns, rows, headings={"val": "val %", "n": "runs"}, exact=keys, shares=("val", "std"))


def _keys(tuning: Tuning) -> list[str]:
    space = tuning.search.space
    return [*space.open, *(key for part in space.parts.values() for key in part)]


def _values(trial: Trial) -> dict[str, Any]:
    """Values of a trial; those of the start are in its settings."""
    from gumbel_mpnn.runs.record import flat

    if trial.chosen or trial.settings is None:
        return dict(trial.chosen)
    return flat(trial.settings.to_dict())


def _cell(value: object) -> str | int | float | None:
    return value if isinstance(value, str | int | float | None) and not isinstance(value, bool) else str(value)


def _in_words(tuning: Tuning, timeout: str | None) -> str:
    """The best trial of a model, and its budget."""
    ended = [f"{tuning.count(state)} {state}" for state in ("pruned", "diverged", "too large", "failed")]
    others = ", ".join(text for text in ended if not text.startswith("0 "))
    budget = f"{counted(len(tuning.trials), 'trial')} of {counted(tuning.search.runs_of_each, 'run')} each"
    budget += f", {timeout} at most" * (timeout is not None) + f" ({others})" * bool(others)
    if not any(trial.is_finished for trial in tuning.trials):
        return f"{tuning.model}: no trial is finished; budget {budget}"
    error = "" if tuning.best.stderr is None else f" ± {100 * tuning.best.stderr:.2f}"
    val = f"{100 * (tuning.best.val or 0):.2f}{error}"
    return f"{tuning.model}: best val {val}, trial {tuning.best.number}; budget {budget}"
