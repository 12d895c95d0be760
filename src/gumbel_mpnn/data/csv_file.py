"""Reading one CSV or Parquet file: its header, its cells as text or numbers, and their line numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError, did_you_mean, reason
from gumbel_mpnn.data.arrow_tables import LINE, is_parquet, parquet_columns, parquet_table, plain_csv_table
from gumbel_mpnn.data.input_file import InputFile
from gumbel_mpnn.data.names import chosen_name, known_name

if TYPE_CHECKING:
    import pandas as pd

Header = Mapping[str, str]
"""Maps the name of each column in the table to its name in the file: pandas calls a second `x` `x.1`."""

NO_NUMBER = ["", "nan", "NaN", "NA", "null"]
MOST_COLUMNS = 100_000
"""Reading a table takes minutes for ten times as many columns."""
_HEADER_LINES = 1
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_LINE_BREAK = re.compile(r"\r\n?|\n")
_DECIMAL = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


def read_header(path: InputFile) -> Header:
    """Read the names of the columns."""
    if is_parquet(path):
        names = parquet_columns(path)
        _check_count(path, len(names))
        return dict(zip(names, names, strict=True))
    _check_width(path)
    header = dict(zip(_parse(path, nrows=0), _parse(path, nrows=1, header=None, dtype=str).iloc[0], strict=True))
    for separator, word in _OTHER_SEPARATORS.items():
        if len(header) == 1 and separator in next(iter(header)):
            raise DataError(f"the cells of {path} are separated by {word}: use commas")
    return header


def _check_width(path: InputFile) -> None:
    """Raise a `DataError` if the first line has too many cells; this takes a moment, where parsing takes minutes."""
    with path.open() as content:
        _check_count(path, content.readline().count(b",") + 1)


def _check_count(path: InputFile, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{path} has {columns:,} columns, and at most {MOST_COLUMNS:,} are read: remove some, or store features"
            " as a sparse matrix in an npz file"
        )


def is_empty(path: InputFile) -> bool:
    """Whether the file has no header and no lines, only white space if anything."""
    with path.open() as content:
        return not content.read(2**16).strip()


def known_column(path: InputFile, header: Header, name: str) -> str | None:
    """Return the column that matches `name`, ignoring case and surrounding blanks, or None."""
    return known_name(str(path), "columns", header, name)


def check_column(path: InputFile, header: Header, name: str, trained: bool = False) -> str:
    """Return the column that the user asked for, or raise a `DataError`; an exact match takes precedence.

    `trained` says that a model was trained on a column of this name.
    """
    found = chosen_name(str(path), "columns", header, name)
    if found is None and trained:
        raise DataError(f"{path} has no column {name!r}, which the model was trained on")
    if found is None:
        like_data = not is_parquet(path) and any(map(_DECIMAL.fullmatch, header))
        hint = "; its first line looks like data, but it should be a header" if like_data else ""
        raise DataError(f"{path} has no column {name!r}: {did_you_mean(name, header)}{hint}")
    return found


def read_table(path: InputFile, header: Header, text: Sequence[str], integers: bool = False) -> pd.DataFrame:
    """Read the table without blank lines; columns other than `text` are converted to numbers if possible.

    If `integers`, columns of `text` that a Parquet file stores as integers remain integers.
    """
    import pandas as pd

    if is_parquet(path):
        return parquet_table(path, text, integers)
    no_number = {name: NO_NUMBER for name in header if name not in text}
    plain = plain_csv_table(
        path, header, text, lambda rest: _parse(path, usecols=rest, na_values=dict.fromkeys(rest, NO_NUMBER))
    )
    if plain is not None:
        return plain
    table = _parse(path, dtype=dict.fromkeys(text, str), na_values=no_number)
    if not isinstance(table.index, pd.RangeIndex):
        raise DataError(f"the lines of {path} have more cells than its header: add the missing column names")
    blank = (table.isna() | (table == "")).all(axis=1).to_numpy()
    table.index = pd.Index(_first_lines(table, header), name=LINE)
    return table[~blank].infer_objects()


def place_of(rows: pd.Index[Any], at: int = 0) -> str:
    """Return where one of the rows of a table from `read_table` is, as `line 5` of a CSV file."""
    return f"{rows.name} {rows[at]}"


def _first_lines(table: pd.DataFrame, header: Header) -> NDArray[np.int64]:
    """Return the number of the line in which each row begins; quoted cells may hold line breaks."""
    breaks: NDArray[np.int64] = np.zeros(len(table) + 1, dtype=np.int64)
    breaks[0] = len(_LINE_BREAK.findall("".join(map(str, header.values()))))
    for name in table.select_dtypes(exclude=["number", "bool"]):
        cells = list(map(str, table[name]))
        if _LINE_BREAK.search("".join(cells)):
            breaks[1:] += [len(_LINE_BREAK.findall(cell)) for cell in cells]
    lines: NDArray[np.int64] = 1 + _HEADER_LINES + np.arange(len(table)) + breaks.cumsum()[:-1]
    return lines


def _parse(path: InputFile, **options: Any) -> pd.DataFrame:
    import pandas as pd

    content = path.open()
    try:
        with content:
            table: pd.DataFrame = pd.read_csv(
                content,
                keep_default_na=False,  # NA can be the name of a node
                skipinitialspace=True,
                skip_blank_lines=False,  # so that row and line numbers agree
                **options,
            )
    except UnicodeError as error:
        raise DataError(f"{path} is not encoded in UTF-8: save it as UTF-8") from error
    except (ValueError, OSError) as error:  # pandas' parser errors are ValueErrors
        raise DataError(f"{path} is not a valid CSV file ({reason(error)})") from error
    return table
