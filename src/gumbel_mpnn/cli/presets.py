"""`gumbel-mpnn presets`: the settings that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer

from gumbel_mpnn.cli.common import FormatOption, OutputFormat, emit, in_one_sentence

app = typer.Typer(help="The settings that come with the package.", invoke_without_command=True)


@app.callback()
@in_one_sentence
def presets(context: typer.Context, format: FormatOption = OutputFormat.text) -> None:
    """List every preset."""
    if context.invoked_subcommand is not None:
        return
    from gumbel_mpnn.config import list_presets
    from gumbel_mpnn.report import Table

    emit(Table(["family", "dataset", "model"], [list(row) for row in list_presets()]), format)


@app.command()
@in_one_sentence
def show(
    dataset: Annotated[str, typer.Argument(help="Name of a data set.")],
    model: Annotated[str, typer.Argument(help="Name of a model.")],
    preset: Annotated[str, typer.Option(help="tuned or paper.")] = "tuned",
    format: FormatOption = OutputFormat.text,
) -> None:
    """Show the complete settings of one preset."""
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import make_settings

    settings = make_settings(dataset, model, preset=preset).to_dict()
    rows = [
        [f"{section}.{name}", str(value)]
        for section, values in settings.items()
        if isinstance(values, dict)
        for name, value in values.items()
    ]
    emit(Table(["setting", "value"], rows), format, settings)
