"""Index of all finished runs, `index.sqlite` in the folder of the runs, which caches the content of their folders.

When the index is opened, it is updated for all folders of settings that have changed since, by their modification time.
So it includes runs that were trained, copied or deleted by any process or machine. It does not notice a record that was
edited by hand; `gumbel-mpnn runs reindex` reads all records again. A missing or damaged index, or one of another
version, is created again; rows have checksums. If the folder is read-only, the index is in memory.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import Any, TypeVar

from gumbel_mpnn.runs.query.filters import Filter
from gumbel_mpnn.runs.record import FINGERPRINT, RECORD, TRIALS, Summary, flat, read_record
from gumbel_mpnn.settings.replica import REPLICA_NAME
from gumbel_mpnn.util.errors import DataError, UserError
from gumbel_mpnn.util.files import read_json

T = TypeVar("T")

FILE = "index.sqlite"
VERSION = 4
SETTLED_NS = 2_000_000_000
"""Folders that changed more recently may change again without a new modification time, so they are read again."""
LOCK_SECONDS = 30.0
_UNAVAILABLE = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)
"""Errors of a file that cannot be opened, locked or written, but may be whole."""

_TABLES = """
CREATE TABLE IF NOT EXISTS settings (
    path TEXT PRIMARY KEY, changed INTEGER, experiment TEXT, dataset TEXT, model TEXT, fingerprint TEXT, metric TEXT,
    n INTEGER, test REAL, std REAL, stderr REAL, val REAL, seconds REAL, data_hash TEXT,
    settings TEXT, runs_checksum INTEGER, checksum INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
    path TEXT, split INTEGER, seed INTEGER, val REAL, test REAL, best_epoch INTEGER, epochs INTEGER, seconds REAL,
    device TEXT, PRIMARY KEY (path, split, seed)
) WITHOUT ROWID;
"""
COLUMNS = (
    "experiment",
    "dataset",
    "model",
    "fingerprint",
    "metric",
    "n",
    "test",
    "std",
    "stderr",
    "val",
    "seconds",
    "data_hash",
)


@dataclass(frozen=True)
class SettingRow:
    """Summary of the finished runs of one setting; metrics are between 0 and 1, or NaN if there are none."""

    path: Path
    experiment: str
    dataset: str
    model: str
    fingerprint: str
    metric: str
    n: int
    test: float
    std: float
    stderr: float
    val: float
    seconds: float
    data_hash: str

    @property
    def is_trial(self) -> bool:
        """Whether the runs are a trial of `tune`, whose test results are hidden unless they are asked for."""
        return self.experiment == TRIALS


class RunIndex:
    """Index of the finished runs under `root`.

    Records that cannot be read are left out; `damaged` has an error message for each of them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.damaged: list[str] = []
        self.database = self._open()

    def settings(self, filters: Iterable[Filter] = ()) -> list[SettingRow]:
        """Settings that pass all filters, sorted by folder."""
        filters = list(filters)
        return self._answer(lambda: self._settings(filters))

    def _settings(self, filters: Sequence[Filter]) -> list[SettingRow]:
        for one in filters:
            one.check(self.database)
        condition = " AND ".join(one.sql for one in filters) or "1"
        values = [value for one in filters for value in one.values]
        query = f"SELECT path, {', '.join(COLUMNS)} FROM settings WHERE n > 0 AND {condition} ORDER BY path"
        found = self.database.execute(query, values)
        return [SettingRow(self.root / path, *map(_number, row)) for path, *row in found]

    def _answer(self, ask: Callable[[], T]) -> T:
        """Answer a question; if the index turns out to be damaged, it is made again first."""
        try:
            return ask()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            try:
                self.rebuild()
            except OSError:  # the folder may be read-only
                self.database = self._in_memory(None, dict(_setting_folders(self.root)))
            return ask()

    def ambiguous_hashes(self) -> dict[str, str]:
        """The hash to show for each data hash whose name several data sets share, such as two files called nodes.csv.

        Data of the same files, of which only the splits differ, are one data set and have the same hash there.
        """
        named: dict[str, list[SettingRow]] = {}
        for row in self.settings():
            named.setdefault(row.dataset, []).append(row)
        shown: dict[str, str] = {}
        for rows in named.values():
            if len({row.data_hash for row in rows}) > 1:
                hashes = self._hash_of_files(rows)
                shown |= hashes if len(set(hashes.values())) > 1 else {}
        return shown

    def _hash_of_files(self, rows: Iterable[SettingRow]) -> dict[str, str]:
        """Map each data hash to the first one of the same files, or to itself.

        If there are two hashes for the same settings of the data, the files have changed, and all hashes are kept.
        """
        hashes: dict[str, str] = {}
        of_files: dict[str, dict[str, set[str]]] = {}
        for row in rows:
            hashes[row.data_hash] = row.data_hash
            if files := _files_of(row.path):
                settings = json.dumps(self._stored(row).get("data"), sort_keys=True)
                of_files.setdefault(files, {}).setdefault(settings, set()).add(row.data_hash)
        for of_settings in of_files.values():
            if all(len(found) == 1 for found in of_settings.values()):
                same = set().union(*of_settings.values())
                hashes |= dict.fromkeys(same, min(same))
        return hashes

    def runs(self, rows: Iterable[SettingRow], test: bool = True) -> Iterator[dict[str, Any]]:
        """Yield every run of these settings: its metrics, and all settings by `table.name`.

        Test results of trials of `tune` are None unless they are asked for.
        """
        columns = ("split", "seed", "val", "test", "best_epoch", "epochs", "seconds", "device")
        for row in rows:
            settings = flat(self._stored(row))
            common = {name: getattr(row, name) for name in (*COLUMNS[:5], "data_hash")}
            hidden = {"test": None} if row.is_trial and not test else {}
            for _, *values in self._answer(partial(self._runs, self._key(row.path))):
                yield {
                    "folder": str(row.path),
                    **common,
                    **dict(zip(columns, values, strict=True)),
                    **hidden,
                    **settings,
                }

    def _stored(self, row: SettingRow) -> dict[str, Any]:
        """Settings of a row, as in its records."""

        def ask() -> dict[str, Any]:
            query = "SELECT settings FROM settings WHERE path = ?"
            found = self.database.execute(query, [self._key(row.path)]).fetchone()
            if found is None:
                raise sqlite3.DatabaseError("a row is missing")
            return dict(json.loads(found[0]))

        return self._answer(ask)

    def _runs(self, key: str) -> list[tuple[Any, ...]]:
        """Rows of the runs of a setting, which are compared with their checksum."""
        found = self.database.execute("SELECT * FROM runs WHERE path = ? ORDER BY split, seed", [key]).fetchall()
        expected = self.database.execute("SELECT runs_checksum FROM settings WHERE path = ?", [key]).fetchone()
        if expected != (_checksum(found),):
            raise sqlite3.DatabaseError("the runs of a setting are damaged")
        return found

    def find(self, name: str) -> SettingRow:
        """Find a setting by its folder, or by the beginning of its fingerprint."""
        rows = self.settings()
        path = Path(name).absolute()
        found = [row for row in rows if row.path.absolute() in (path, path.parent)]
        if not found and re.fullmatch(r"[0-9a-f]+", name):
            found = [row for row in rows if row.fingerprint.startswith(name)]
        if len(found) > 1:
            places = " or ".join(str(row.path) for row in found[:2])
            raise UserError(
                f"{name!r} is ambiguous and may be {places}{' or another' * (len(found) > 2)}: give a folder"
            )
        if not found:
            raise UserError(
                f"there is no finished run {name!r} in {self.root}: give its folder or the beginning of its"
                " fingerprint, as `gumbel-mpnn runs` lists them, or name another folder of runs (--runs, in Python"
                " runs=)"
            )
        return found[0]

    def rebuild(self) -> None:
        """Read every record again."""
        self.database.close()
        with suppress(FileNotFoundError):
            (self.root / FILE).unlink()
        self.damaged.clear()
        self.database = self._open()

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def _open(self) -> sqlite3.Connection:
        folders = dict(_setting_folders(self.root))
        path = self.root / FILE
        if folders or path.exists():
            for _ in range(2):
                database = sqlite3.connect(":memory:")
                try:
                    database = sqlite3.connect(path, timeout=LOCK_SECONDS)
                    _prepare(database)
                    self._refresh(database, folders)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
                    if code in _UNAVAILABLE:
                        return self._in_memory(database if code == sqlite3.SQLITE_READONLY else None, folders)
                    database.close()
                    with suppress(OSError):
                        path.unlink()
                else:
                    return database
        return self._in_memory(None, folders)

    def _in_memory(self, source: sqlite3.Connection | None, folders: dict[str, int]) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:")
        try:
            if source is not None:
                source.backup(database)
            _prepare(database)
            self._refresh(database, folders)
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            if source is None:
                raise
            return self._in_memory(None, folders)  # the source is damaged
        finally:
            if source is not None:
                source.close()
        return database

    def _refresh(self, database: sqlite3.Connection, folders: dict[str, int]) -> None:
        """Read the settings whose folders have changed, and remove those that were deleted."""
        self.damaged.clear()
        rows = database.execute("SELECT * FROM settings").fetchall()
        if any(row[-1] != _checksum(row[:-1]) for row in rows):
            raise sqlite3.DatabaseError("a row is damaged")
        known = {path: changed for path, changed, *_ in rows}
        if len(known) < len(rows) or list(known) != sorted(known):
            raise sqlite3.DatabaseError("the rows are not in order")
        gone = known.keys() - folders.keys()
        stale = [path for path, changed in folders.items() if known.get(path) != changed]
        if not gone and not stale:
            return
        with database:
            for table in ("settings", "runs"):
                database.executemany(f"DELETE FROM {table} WHERE path = ?", [[path] for path in [*gone, *stale]])
            for path in stale:
                self._read(database, path, folders[path])

    def _read(self, database: sqlite3.Connection, key: str, changed: int) -> None:
        folder = self.root / key
        settled = time.time_ns() - changed > SETTLED_NS
        records = []
        for entry in sorted(folder.iterdir()):
            if entry.name.startswith("group-"):
                settled = False  # a group is being trained
            if not REPLICA_NAME.fullmatch(entry.name):
                continue
            if not (path := entry / RECORD).exists():
                settled = False
            else:
                try:
                    records.append(read_record(path))
                except DataError as error:
                    settled = False
                    self.damaged.append(str(error))
        if not records:
            return
        test, first = Summary.of(record.test for record in records), records[0]
        experiment = folder.absolute().parts[-4] if len(folder.absolute().parts) > 4 else ""
        head = [experiment, first.settings["dataset"], first.settings["model"]["name"], first.fingerprint, first.metric]
        figures = [len(records), test.mean, test.std, test.stderr, Summary.of(record.val for record in records).mean]
        figures.append(sum(record.seconds for record in records))
        runs = [
            (
                key,
                r.split,
                r.seed,
                *map(_real, (r.val, r.test)),
                r.best_epoch,
                r.epochs,
                _real(r.seconds),
                r.machine.get("device"),
            )
            for r in sorted(records, key=lambda record: record.replica)
        ]
        about = [first.data_hash, json.dumps(first.settings), _checksum(runs)]
        row = [key, changed if settled else None, *head, figures[0], *map(_real, figures[1:]), *about]
        row.append(_checksum(row))
        database.execute(f"INSERT INTO settings VALUES ({', '.join('?' * len(row))})", row)
        database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", runs)

    def _key(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _files_of(folder: Path) -> str:
    """What the runs of a setting have stored about the files of the user; empty if they were trained on other data."""
    try:
        facts = read_json((folder / "data.json").read_bytes())
        return json.dumps(facts, sort_keys=True) if facts["source_files"] else ""
    except (OSError, ValueError, TypeError, KeyError):  # of an older version, or damaged
        return ""


def _real(value: float | None) -> float | None:
    """Value as SQLite stores it in a column of real numbers."""
    return None if value is None or value != value else float(value)


def _checksum(values: Sequence[Any]) -> int:
    return zlib.crc32(repr(tuple(values)).encode(errors="surrogatepass"))


def _number(value: Any) -> Any:
    """Convert NULL to nan, which SQLite cannot store, such as the ROC-AUC of a test class without nodes."""
    return nan if value is None else value


def _prepare(database: sqlite3.Connection) -> None:
    """Create empty tables if there are none of this version."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return
    with database:
        for table in ("settings", "runs"):
            database.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {VERSION}")


def _setting_folders(root: Path) -> Iterator[tuple[str, int]]:
    """Folders of settings under `root` (or `root` itself), as relative paths with their modification times."""
    inside = root.iterdir() if root.is_dir() else ()
    if FINGERPRINT.fullmatch(root.absolute().name) and any(REPLICA_NAME.fullmatch(path.name) for path in inside):
        yield ".", root.stat().st_mtime_ns
        return
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            with os.scandir(root / prefix) as entries:
                for entry in entries:
                    if not entry.is_dir():
                        continue
                    if FINGERPRINT.fullmatch(entry.name):
                        yield prefix + entry.name, entry.stat().st_mtime_ns
                    elif not entry.name.startswith(".") and not entry.is_symlink():
                        waiting.append(f"{prefix}{entry.name}/")
        except (FileNotFoundError, NotADirectoryError):
            continue
