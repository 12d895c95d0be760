"""One CSV file: the names in its header, its cells as text or numbers, and the lines that they stand on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbel_mpnn.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_NO_NUMBER = ["", "nan", "NaN", "NA", "null"]
_HEADER_LINES = 1
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_DECIMAL = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


def read_header(path: str | Path) -> list[str]:
    """The names of the columns; a second one of the same name ends in `.1`, as pandas has it."""
    names = [str(name) for name in read_table(path, [], [], nrows=0).columns]
    for separator, word in _OTHER_SEPARATORS.items():
        if len(names) == 1 and separator in names[0]:
            raise DataError(f"the cells of {path} have {word} between them: write it with commas")
    return names


def check_column(path: str | Path, header: Sequence[str], name: str) -> str:
    """The name, if a column is called so."""
    if name not in header:
        like_data = any(map(_DECIMAL.fullmatch, header))
        hint = "; its first line looks like data, but it should be a header" if like_data else ""
        raise DataError(f"{path} has no column {name!r}: {did_you_mean(name, header)}{hint}")
    return name


def read_table(path: str | Path, header: Sequence[str], text: Sequence[str], nrows: int | None = None) -> pd.DataFrame:
    """The table, `text` columns as they are and the others as numbers where they can be; blank lines are left out."""
    import pandas as pd

    try:
        table = pd.read_csv(
            path,
            dtype=dict.fromkeys(text, str),
            keep_default_na=False,  # a node may well be called NA
            na_values={name: _NO_NUMBER for name in header if name not in text},
            skipinitialspace=True,
            skip_blank_lines=False,  # so that row and line numbers agree
            nrows=nrows,
        )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except UnicodeError as error:
        raise DataError(f"{path} is not written in UTF-8: save it as UTF-8") from error
    except (ValueError, OSError) as error:  # pandas' parser errors are ValueErrors
        raise DataError(f"{path} is not a readable CSV file ({str(error).strip()})") from error
    if not isinstance(table.index, pd.RangeIndex):
        raise DataError(f"the lines of {path} have more cells than its header names")
    blank = (table.isna() | (table == "")).all(axis=1)
    return table[~blank].infer_objects()  # the index still tells the line


def line_of(row: Any) -> int:
    """The line of the file on which the row with this index stands."""
    return int(row) + 1 + _HEADER_LINES
