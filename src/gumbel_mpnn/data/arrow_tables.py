"""Tables read by pyarrow, if it is installed: Parquet files, and large CSV files without anything unusual."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gumbel_mpnn._util.errors import DataError, reason
from gumbel_mpnn.data.input_file import InputFile

if TYPE_CHECKING:
    import pandas as pd

PARQUET = b"PAR1"
"""Beginning of a Parquet file."""
LARGE = 2**23
"""Size in bytes from which a CSV file is read by pyarrow."""
UNUSUAL = b'" \t\r\0'
"""Bytes with which pyarrow and pandas might disagree about cells or lines."""
FIRST_LINE = 2
"""Number of the first line after the header."""
LINE, ROW = "line", "row"
"""What the index of a table counts, which is its name: lines of a CSV file, or rows of a Parquet file."""


def is_parquet(path: InputFile) -> bool:
    """Whether a file begins as Parquet files do."""
    with path.open() as content:
        return content.read(len(PARQUET)) == PARQUET


def parquet_columns(path: InputFile) -> list[str]:
    """Names of the columns of a Parquet file."""
    with path.open() as content:
        names = [str(name) for name in _opened(path, content).schema_arrow.names]
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise DataError(f"{path} has two columns {twice[0]!r}: rename one")
    return names


def parquet_table(path: InputFile, text: Sequence[str], integers: bool) -> pd.DataFrame:
    """Read a Parquet file as a CSV file with the same cells would be read; its rows are numbered from 1.

    Columns of `text` become strings, which are empty if a value is missing. Others become numbers, booleans or strings.
    If `integers`, columns of `text` that have an integer in every row remain integers.
    """
    import pandas as pd

    pa = import_module("pyarrow")
    with path.open() as content:
        file = _opened(path, content)
        try:
            table = file.read()
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, error) from error
    numbers = {
        name for name in text if pa.types.is_integer(table.column(name).type) and not table.column(name).null_count
    }
    as_text = set(text) - (numbers if integers else set())
    columns = {name: _column(path, name, table.column(name), name in as_text) for name in table.column_names}
    found = pd.DataFrame(columns)
    found.index = pd.RangeIndex(1, table.num_rows + 1, name=ROW)
    return found


def _opened(path: InputFile, content: Any) -> Any:
    if find_spec("pyarrow") is None:
        raise DataError(f"{path} is a Parquet file, which needs pyarrow: pip install 'gumbel-mpnn[parquet]'")
    pa = import_module("pyarrow")
    try:
        return import_module("pyarrow.parquet").ParquetFile(content)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: InputFile, error: Exception) -> DataError:
    return DataError(f"{path} is not a complete Parquet file ({reason(error)}): write it again")


def _column(path: InputFile, name: str, column: Any, is_text: bool) -> pd.Series[Any]:
    """One column in the form in which it would be read from a CSV file."""
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise DataError(f"column {name!r} of {path} holds {kind} values: give each number a column of its own")
    if is_text and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"column {name!r} of {path} holds decimals: store ids and labels as text or whole numbers")
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_text and (is_number or pa.types.is_boolean(kind)):
        return column.to_pandas()
    if not is_text and pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_pandas()
    return compute.fill_null(column.cast(pa.large_string()), "").to_pandas()


def plain_csv_table(
    path: InputFile,
    header: Mapping[str, str],
    text: Sequence[str],
    read_rest: Callable[[list[str]], pd.DataFrame],
) -> pd.DataFrame | None:
    """Read a large CSV file in which every line has all its cells; None if it is another file or pyarrow is missing.

    Columns of `text` are read by pyarrow, others by `read_rest`, since pandas rounds decimals in its own way.
    """
    import pandas as pd

    rest = [name for name in header if name not in text]
    if find_spec("pyarrow") is None or list(header) != list(header.values()) or len(rest) > len(text):
        return None
    content = _large_and_plain(path)  # scans the whole file
    if content is None:
        return None
    pa, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(content)),
            read_options=csv.ReadOptions(column_names=list(header), skip_rows=1),
            parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.large_string()), include_columns=list(dict.fromkeys(text))
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows == 0 or any(_has_empty(column) for column in table.columns):
        return None
    columns = {name: table.column(name).to_pandas() for name in table.column_names}
    if rest:
        others = read_rest(rest)
        if len(others) != table.num_rows:
            return None
        columns |= {name: others[name] for name in rest}
    found = pd.DataFrame({name: columns[name] for name in header})
    found.index = pd.RangeIndex(FIRST_LINE, FIRST_LINE + len(found), name=LINE)
    return found


def _large_and_plain(path: InputFile) -> bytes | mmap.mmap | None:
    """Content of a file that is large and has no unusual bytes; None for others."""
    with path.open() as content:
        try:
            data: bytes | mmap.mmap = mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # decompressed in memory, or empty
            data = content.read()
    plain = len(data) >= LARGE and all(data.find(bytes([byte])) < 0 for byte in UNUSUAL)
    return data if plain else None


def _has_empty(column: Any) -> bool:
    compute = import_module("pyarrow.compute")
    return bool(compute.any(compute.equal(compute.binary_length(column), 0)).as_py())


def places_in(ids: pd.Series[str], names: pd.Series[Any]) -> NDArray[np.int64]:
    """Place of each of `names`, strings or integers, among the distinct `ids`, int64 [E]; −1 if it is not there."""
    import pandas as pd

    if names.dtype.kind in "iu":
        return _places_of_integers(ids, names.to_numpy())
    names = names.str.strip()
    if find_spec("pyarrow") is None or names.dtype == object:
        places: NDArray[np.int64] = pd.Index(ids).get_indexer(pd.Index(names)).astype(np.int64)
        return places
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    known, wanted = (pa.chunked_array(pa.array(each)).cast(pa.large_string()) for each in (ids, names))
    places = compute.fill_null(compute.index_in(wanted, value_set=known), -1).to_numpy().astype(np.int64)
    return places


def _places_of_integers(ids: pd.Series[str], numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Place of each number among those `ids` that are written as numbers are."""
    import pandas as pd

    written = ids.str.fullmatch(_AS_A_NUMBER).to_numpy(dtype=bool)
    known, place = ids[written].astype(np.int64).to_numpy(), np.flatnonzero(written)
    least, span = (int(known.min()), int(np.ptp(known)) + 1) if len(known) else (0, 0)
    if span > SPARSEST * len(ids):
        found: NDArray[np.int64] = np.append(place, -1)[pd.Index(known).get_indexer(pd.Index(numbers))]
        return found
    table = np.full(span + 1, -1, dtype=np.int64)  # the last is for numbers outside
    table[known - least] = place
    offset = numbers.astype(np.int64) - least
    if len(numbers) and (offset.min() < 0 or offset.max() >= span):
        offset[(offset < 0) | (offset >= span)] = span
    places: NDArray[np.int64] = table[offset]
    return places


SPARSEST = 8
"""Numbers are looked up in a table of all numbers between the ids if it is at most so many times as long as these."""
_AS_A_NUMBER = r"0|-?[1-9][0-9]{0,17}"
"""How whole numbers of at most 18 digits are written, without zeros in front."""
