"""One CSV file: the names in its header, its cells as text or numbers, and the lines that they stand on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbel_mpnn._util.errors import DataError, did_you_mean
from gumbel_mpnn.data.column_names import chosen_name, known_name

if TYPE_CHECKING:
    import pandas as pd

Header = Mapping[str, str]
"""The columns of a file, by their name in its table, and as they are written: a second `x` is `x.1` in the table."""

_NO_NUMBER = ["", "nan", "NaN", "NA", "null"]
_HEADER_LINES = 1
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_DECIMAL = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


def read_header(path: str | Path) -> Header:
    """The columns of a file."""
    header = dict(zip(_parse(path, nrows=0), _parse(path, nrows=1, header=None, dtype=str).iloc[0], strict=True))
    for separator, word in _OTHER_SEPARATORS.items():
        if len(header) == 1 and separator in next(iter(header)):
            raise DataError(f"the cells of {path} have {word} between them: write it with commas")
    return header


def known_column(path: str | Path, header: Header, name: str) -> str | None:
    """The column that is called so, whatever its case and the blanks around it; None where there is none."""
    return known_name(str(path), "columns", header, name)


def check_column(path: str | Path, header: Header, name: str) -> str:
    """The column that a person has named: the one written so or, without one, in other case or with blanks around."""
    found = chosen_name(str(path), "columns", header, name)
    if found is None:
        like_data = any(map(_DECIMAL.fullmatch, header))
        hint = "; its first line looks like data, but it should be a header" if like_data else ""
        raise DataError(f"{path} has no column {name!r}: {did_you_mean(name, header)}{hint}")
    return found


def read_table(path: str | Path, header: Header, text: Sequence[str]) -> pd.DataFrame:
    """The table, `text` columns as they are and the others as numbers where they can be; blank lines are left out."""
    import pandas as pd

    no_number = {name: _NO_NUMBER for name in header if name not in text}
    table = _parse(path, dtype=dict.fromkeys(text, str), na_values=no_number)
    if not isinstance(table.index, pd.RangeIndex):
        raise DataError(f"the lines of {path} have more cells than its header names")
    blank = (table.isna() | (table == "")).all(axis=1)
    return table[~blank].infer_objects()  # the index still tells the line


def line_of(row: Any) -> int:
    """The line of the file on which the row with this index stands."""
    return int(row) + 1 + _HEADER_LINES


def _parse(path: str | Path, **options: Any) -> pd.DataFrame:
    import pandas as pd

    try:
        table: pd.DataFrame = pd.read_csv(
            path,
            keep_default_na=False,  # a node may well be called NA
            skipinitialspace=True,
            skip_blank_lines=False,  # so that row and line numbers agree
            **options,
        )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except UnicodeError as error:
        raise DataError(f"{path} is not written in UTF-8: save it as UTF-8") from error
    except (ValueError, OSError) as error:  # pandas' parser errors are ValueErrors
        raise DataError(f"{path} is not a readable CSV file ({str(error).strip()})") from error
    return table
