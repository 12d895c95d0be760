"""`gumbel-mpnn tune`: search for settings, based on validation results only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import is_standard_output

if TYPE_CHECKING:
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.tune import Tuning


@common.in_one_sentence
def tune(
    dataset: common.DatasetArgument = None,
    *,
    model: Annotated[str, typer.Option(help="Name of a model.")] = "gcn",
    trials: Annotated[int, typer.Option(help="Number of settings to try for each model.", min=1)] = 20,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds for each model; trials that were started are finished.")
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
    splits: common.SplitsOption = None,
    seeds: common.SeedsOption = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    preset: Annotated[
        str, typer.Option(help="Source of all other settings: tuned, paper, none, or a TOML file.")
    ] = "tuned",
    overrides: common.OverrideOption = None,
    own: common.OwnData,
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
    from gumbel_mpnn.runs.spec import asks_for_undirected
    from gumbel_mpnn.runs.study import read_space
    from gumbel_mpnn.runs.tune import tune as search
    from gumbel_mpnn.settings.presets import check_own_name, preset_families

    read = [*own.files, Path(preset), *([space] if space else [])]
    common.check_output("--out", out, (".toml",), inputs=read, force=force)
    if name is not None:
        check_own_name(name)
        if name in preset_families() and not force:
            raise UserError(f"--name {name}: this name is taken: give another one, or --force to add to its presets")
    given, family = read_space(space), None if preset == "none" else preset
    # Directions are read if any trial needs them; trials on undirected graphs ignore them.
    tried = (given or {}).get("data", {}).get("undirected", asks_for_undirected(family, overrides or []))
    tuned = search(
        own.to_train_on(dataset, all(tried) if isinstance(tried, list) else bool(tried)),
        model,
        trials=trials,
        timeout=timeout,
        space=given,
        baseline=baseline,
        splits=None if splits is None else common.parse_range(splits),
        seeds=seeds,
        preset=family,
        overrides=overrides or [],
        root=data_root,
        runs=runs,
        storage=storage,
        workers=workers,
        on=on,
        device=device,
        seed=seed,
        progress=not quiet,
    )
    found = [tuned, *([] if tuned.baseline is None else [tuned.baseline])]
    common.emit(_table(found), format, err=is_standard_output(out))
    for tuning in found:
        common.note(_in_words(tuning, timeout))
    if out is not None:
        common.note_of(tuned.save(out), f"the best settings of {tuned.model} are")
    if name is not None:
        for tuning in found:
            common.note_of(tuning.save_as(name), f"the best settings of {tuning.model} are")
        common.note(f"use them with --preset {name} on {tuned.dataset}")
    common.note(f"runs are in {runs / 'tune'}")


def _table(found: list[Tuning]) -> Table:
    """All trials of the model and of its backbone, the best of each first."""
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.store import flat
    from gumbel_mpnn.runs.study import searched

    keys = list(dict.fromkeys(key for tuning in found for key in searched(tuning.search.space)))
    rows = []
    for tuning in found:
        for trial in tuning.trials:
            values = flat(trial.settings.to_dict())
            val = [trial.val.mean, trial.val.std, trial.val.n] if trial.val.n else [None] * 3
            rows.append([tuning.model, trial.number, *val, trial.state, *map(values.get, keys)])
    columns = ["model", "trial", "val", "std", "n", "state", *keys]
    return Table(columns, rows, headings={"val": "val %", "n": "runs"}, exact=keys, shares=("val", "std"))


def _in_words(tuning: Tuning, timeout: float | None) -> str:
    """The best trial of a model, and its budget."""
    from gumbel_mpnn.runs.study import DIVERGED, FINISHED, PRUNED, TOO_LARGE

    others = ", ".join(f"{count} {state}" for state in (PRUNED, DIVERGED, TOO_LARGE) if (count := tuning.count(state)))
    budget = f"{counted(len(tuning.trials), 'trial')} of {counted(tuning.search.runs_of_each, 'run')} each"
    budget += ("" if timeout is None else f", {timeout:g} s at most") + f" ({others})" * bool(others)
    if not tuning.count(FINISHED):
        return f"{tuning.model}: no trial is finished; budget {budget}"
    return f"{tuning.model}: best val {tuning.best.val}, trial {tuning.best.number}; budget {budget}"
