"""`gumbel-mpnn presets`: the presets of the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gumbel_mpnn._util.errors import UserError, unknown_name
from gumbel_mpnn.cli.common import (
    FormatOption,
    OutputFormat,
    emit,
    in_one_sentence,
    note,
    preset_in_place,
    reject_early_options,
)

app = typer.Typer(help="List the presets of the package.", invoke_without_command=True)


@app.callback()
@in_one_sentence
def presets(context: typer.Context, format: FormatOption = OutputFormat.text) -> None:
    """List all presets."""
    if context.invoked_subcommand is not None:
        reject_early_options(context)
        return
    from gumbel_mpnn.config.presets import family_base, list_presets, preset_families
    from gumbel_mpnn.report import Table

    emit(Table(["family", "dataset", "model"], [list(row) for row in list_presets()]), format)
    for family in preset_families():
        if base := family_base(family):
            note(f"where {family} has no preset, that of {base} is used")


@app.command()
@in_one_sentence
def show(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set; leave it out for own data.")] = None,
    model: Annotated[str | None, typer.Argument(help="Name of a model.")] = None,
    named: Annotated[str | None, typer.Option("--model", help="Name of a model.")] = None,
    preset: Annotated[str, typer.Option(help="Family of presets, such as tuned or paper.")] = "tuned",
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show the complete settings of a preset, or the default settings, which own data gets, if no data set is named.

    A model without a preset may use that of its backbone. For auto, show what each of its rungs sets.
    """
    from gumbel_mpnn.config.registry import normal_name
    from gumbel_mpnn.runs import LADDERS

    if model is not None and named is not None:
        raise UserError(f"the models {model!r} and {named!r} are named: name one")
    model = named if model is None else model
    if model is None:
        raise UserError(
            "name a model: `presets show cora gcn` shows a preset, `presets show --model gcn` the settings of own data"
        )
    if normal_name(model) in LADDERS:
        _show_rungs(format)
    elif dataset is None:
        _show_defaults(model, format)
    else:
        _show_preset(dataset, model, preset, format)


def _show_preset(dataset: str, model: str, family: str, format: OutputFormat) -> None:
    from torch_geometric.data import Data

    from gumbel_mpnn.config.presets import list_presets
    from gumbel_mpnn.runs import RunSpec, find_preset
    from gumbel_mpnn.training import models

    model = models.canonical(model)
    found = find_preset(family, dataset, model)
    if found is None:
        known = {name for each, name, _ in list_presets() if each == family and find_preset(each, name, model)}
        raise unknown_name(f"data set with a preset {family!r} for {model!r}", dataset, known)
    if borrowed := preset_in_place(family, dataset, model, found):
        note(borrowed)
    _show(RunSpec.of(Data(name=dataset), model, preset=family).settings.to_dict(), format)


def _show_defaults(model: str, format: OutputFormat) -> None:
    from torch_geometric.data import Data

    from gumbel_mpnn.config.plugins import load_plugins
    from gumbel_mpnn.runs import RunSpec
    from gumbel_mpnn.training import models

    load_plugins()
    model = models.canonical(model)
    note(f"no preset applies to own data: these are the default settings of {model}")
    _show(RunSpec.of(Data(), model, preset=None).settings.to_dict(), format)


def _show_rungs(format: OutputFormat) -> None:
    from gumbel_mpnn.config.rungs import read_rungs
    from gumbel_mpnn.report import Table

    note("auto uses no preset: these are the settings of its rungs, which are otherwise the defaults of their models")
    rows = [
        [rung.name, rung.model, f"{section}.{name}", str(value)]
        for rung in read_rungs()
        for section, values in rung.tables.items()
        for name, value in values.items()
    ]
    emit(Table(["rung", "model", "setting", "value"], rows), format)


def _show(settings: Mapping[str, Any], format: OutputFormat) -> None:
    from gumbel_mpnn.report import Table

    rows = [
        [f"{section}.{name}", str(value)]
        for section, values in settings.items()
        if isinstance(values, dict)
        for name, value in values.items()
    ]
    emit(Table(["setting", "value"], rows), format, settings)
