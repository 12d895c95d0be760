"""Files that verbs write for the user: tables, and which of those that exist may be overwritten."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn._util.files import check_writable, is_stream, suffix_of, write_atomically
from gumbel_mpnn._util.json_text import to_json
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.cli.common import OutputFormat, note

if TYPE_CHECKING:
    import pandas as pd

ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that this command has not written.")]

_BEGINNING = 2**16
"""Bytes of a file that are looked at to tell its kind."""
SUFFIXES = (".csv", ".json")
PREDICTIONS = ("node", "out_of_fold", "average")
"""Columns by which predictions of the training graph are known."""
PREDICTIONS_OF_OTHERS = ("node", "prediction", "probability")
"""Columns by which predictions of another graph are known."""


def check_output(
    option: str,
    path: Path | None,
    is_ours: Callable[[Path], bool],
    inputs: Iterable[Path | None] = (),
    force: bool = False,
) -> None:
    """Raise a `UserError` if a file must not be overwritten, before any work is done.

    Files of stored runs and `inputs`, which are read, never are. With `force`, files that are not of the kind that will
    be written are.
    """
    if path is None or not path.is_file() or is_stream(path):  # a folder is reported by those who know what it is for
        return
    if _is_of_a_run(path):
        raise UserError(f"{option} {path} is a file of a stored run: give another name")
    for each in inputs:
        if each is not None and each.exists() and path.samefile(each):
            raise UserError(f"{option} {path} is a file that is read: give another name")
    if not force and path.stat().st_size and not is_ours(path):
        raise UserError(
            f"{option} {path} exists and was not written by this command: give another name, or --force to overwrite it"
        )


def note_of(path: Path, what: str) -> None:
    """Say which file a result was written to; nothing for standard output, devices and pipes."""
    if not is_stream(path):
        note(f"{what} in {path}")


def _is_of_a_run(path: Path) -> bool:
    """Whether a file lies in the folder of a run or of a setting, by the name of the folder."""
    from gumbel_mpnn.config.replica import REPLICA_NAME
    from gumbel_mpnn.runs.query import FINGERPRINT

    folder = path.resolve().parent.name
    return bool(REPLICA_NAME.fullmatch(folder) or FINGERPRINT.fullmatch(folder))


def suffix_to_write(path: Path, format: OutputFormat = OutputFormat.text) -> str:
    """Suffix that tells the form of a file; standard output, devices and pipes have that of --format, or `.csv`."""
    if suffix_of(path) or not is_stream(path):
        return suffix_of(path)
    return ".csv" if format is OutputFormat.text else f".{format}"


def is_table(*alternatives: Sequence[str]) -> Callable[[Path], bool]:
    """Return a function that tells whether a CSV or JSON file has all columns of one of the alternatives."""

    def check(path: Path) -> bool:
        found = _columns(path)
        return any(found.issuperset(columns) for columns in alternatives)

    return check


def is_learned_graph(path: Path) -> bool:
    """Whether a file is a graph with probabilities of edges, as `rewire` writes it."""
    if suffix_of(path) == ".csv":
        return is_table(("source", "target", "probability", "given"))(path)
    if suffix_of(path) == ".npz":
        try:
            with zipfile.ZipFile(path) as archive:
                return {"edges.npy", "probability.npy", "given.npy"} <= set(archive.namelist())
        except (OSError, zipfile.BadZipFile):
            return False
    content = _beginning(path)
    return b"<graphml" in content and b'attr.name="probability"' in content


def is_page(path: Path) -> bool:
    """Whether a file is a page that `reproduce` writes."""
    return b"\ngumbel-mpnn reproduce " in _beginning(path)


def is_tuned(path: Path) -> bool:
    """Whether a file is a settings file that `tune` writes."""
    return _beginning(path).startswith(b"# Written by gumbel-mpnn tune")


def is_report(path: Path) -> bool:
    """Whether a file is a page that `report` writes."""
    return b'content="gumbel-mpnn report"' in _beginning(path)


def check_page(option: str, path: Path, force: bool) -> None:
    """Check the file of a page; files of its name next to it belong to it, if it exists."""
    check_output(option, path, is_page, force=force)
    if not path.exists() and not is_stream(path):
        for beside in (path.with_suffix(suffix) for suffix in (".csv", ".png", ".pdf")):
            check_output(option, beside, lambda _: False, force=force)


def _columns(path: Path) -> set[str]:
    text = _beginning(path).decode(errors="replace")
    if suffix_of(path) == ".json":
        row = text.partition("{")[2].partition("}")[0]
        return set(row.split('"')[1::2]) if text.lstrip().startswith("[") else set()
    return set(next(csv.reader(text.splitlines()[:1]), []))


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_BEGINNING)


def check_table_file(option: str, path: Path | None, format: OutputFormat = OutputFormat.text) -> None:
    """Raise a `UserError` if the file of an option cannot be a table, before any work is done.

    `format` is the --format of a verb that writes its result to the file in place of printing it.
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
