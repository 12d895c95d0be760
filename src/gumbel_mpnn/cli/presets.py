"""`gumbel-mpnn presets`: the presets of the package."""

from __future__ import annotations

from typing import Annotated

import typer

from gumbel_mpnn._util.errors import unknown_name
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
    dataset: Annotated[str, typer.Argument(help="Name of a data set.")],
    model: Annotated[str, typer.Argument(help="Name of a model.")],
    preset: Annotated[str, typer.Option(help="Family of presets, such as tuned or paper.")] = "tuned",
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show the complete settings of a preset. A model without a preset may use that of its backbone."""
    from torch_geometric.data import Data

    from gumbel_mpnn.config.presets import list_presets
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import RunSpec, find_preset
    from gumbel_mpnn.training import models

    model = models.canonical(model)
    found = find_preset(preset, dataset, model)
    if found is None:
        known = {name for family, name, _ in list_presets() if family == preset and find_preset(family, name, model)}
        raise unknown_name(f"data set with a preset {preset!r} for {model!r}", dataset, known)
    if borrowed := preset_in_place(preset, dataset, model, found):
        note(borrowed)
    settings = RunSpec.of(Data(name=dataset), model, preset=preset).settings.to_dict()
    rows = [
        [f"{section}.{name}", str(value)]
        for section, values in settings.items()
        if isinstance(values, dict)
        for name, value in values.items()
    ]
    emit(Table(["setting", "value"], rows), format, settings)
