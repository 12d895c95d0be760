"""Tables in files of the user, whose form follows from the name of the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import check_writable, is_stream, write_atomically
from gumbel_mpnn._util.json_text import to_json
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.cli.common import OutputFormat
from gumbel_mpnn.cli.outputs import note_of, suffix_to_write

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".json")


PREDICTIONS = ("node", "out_of_fold", "average")
"""Columns by which predictions of the training graph are known."""
PREDICTIONS_OF_OTHERS = ("node", "prediction", "probability")
"""Columns by which predictions of another graph are known."""


def check_table_file(option: str, path: Path | None, format: OutputFormat = OutputFormat.text) -> None:
    """Raise a `UserError` if the file of an option cannot be a table, before any work is done.

    Args:
        option: Name of the option.
        path: File of the option; None if it is not given.
        format: The --format of a verb that writes its result to the file in place of printing it.
    """
    if path is None:
        return
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")
    suffix = suffix_to_write(path, format)
    if suffix not in SUFFIXES:
        raise UserError(f"{option} writes .csv and .json files, not {path}: give it another ending")
    if not is_stream(path):
        check_writable(path.resolve().parent)
    if format is not OutputFormat.text and suffix != f".{format}":
        raise UserError(f"{option} {path} is written by its ending, which is not --format {format}: leave out --format")


def write_predictions(table: pd.DataFrame, path: Path, format: OutputFormat = OutputFormat.text) -> None:
    """Write predictions to a file and say so."""
    write_table(table, path, format)
    note_of(path, f"predictions of {counted(len(table), 'node')} are")


def write_table(table: pd.DataFrame, path: Path, format: OutputFormat = OutputFormat.text) -> None:
    """Write a table to a CSV file, with four decimals, or to a JSON file, as a list of rows with null for nothing."""
    if suffix_to_write(path, format) == ".json":
        columns = list(map(str, table.columns))
        content = to_json([dict(zip(columns, row, strict=True)) for row in rows_of(table)], indent=1) + "\n"
    else:
        content = table.to_csv(index=False, float_format="%.4f", lineterminator="\n")
    write_atomically(path, content.encode())


def rows_of(table: pd.DataFrame) -> list[list[str | int | float | None]]:
    """Return the rows of a table as plain values, with None in place of NaN."""
    rows = table.astype(object).itertuples(index=False, name=None)
    return [[None if value != value else value for value in row] for row in rows]
