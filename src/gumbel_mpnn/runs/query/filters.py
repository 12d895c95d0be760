"""Filters of runs by data set, model, experiment, metrics and settings."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from gumbel_mpnn.runs.record import flat
from gumbel_mpnn.util.errors import UserError, unknown_name

FIGURES = {"test": 100.0, "std": 100.0, "stderr": 100.0, "val": 100.0, "n": 1.0, "seconds": 1.0}
"""Columns that can be compared besides settings, with the factor by which they are multiplied for display."""
NAMED = {"dataset": "data set", "model": "model", "experiment": "experiment"}
_CONDITION = re.compile(r"\s*([\w.-]+)\s*(<=|>=|!=|=|<|>)\s*(\S.*?)\s*")


@dataclass(frozen=True)
class Filter:
    """An SQL condition on rows of the index, with its values; `name` is the column or setting that it compares."""

    name: str
    sql: str
    values: Sequence[str | float]

    @classmethod
    def named(cls, column: str, names: str | None) -> list[Filter]:
        """Filter for rows whose `column` is one of the comma-separated names; no filter if `names` is None."""
        if names is None:
            return []
        words = [word.strip() for word in names.split(",")]
        return [cls(column, f"{column} IN ({', '.join('?' * len(words))})", words)]

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Parse a condition such as `test>=80` (in percent), `n>=10` or `train.lr=0.01`."""
        match = _CONDITION.fullmatch(text)
        if not match:
            raise UserError(f"cannot read the condition {text!r}: write it like test>=80 or train.lr=0.01")
        name, sign, value = match[1], match[2], _value(match[3])
        if name in FIGURES:
            if isinstance(value, str):
                raise UserError(f"the condition {text!r} needs a number: write it like {name}>=80")
            return cls(name, f"{FIGURES[name]} * {name} {sign} ?", [value])
        if "." not in name:
            raise unknown_name("figure or setting", name, [*FIGURES, "train.lr", "model.dropout"])
        return cls(name, f"json_extract(settings, ?) {sign} ?", [_json_path(name), value])

    def check(self, database: sqlite3.Connection) -> None:
        """Raise a `UserError` if no run has this setting or name, or a value of this type."""
        if self.name in NAMED:
            known = {value for (value,) in database.execute(f"SELECT DISTINCT {self.name} FROM settings")}
            for word in self.values:
                if known and word not in known:
                    raise unknown_name(f"{NAMED[self.name]} among the runs", str(word), known)
        elif self.name not in FIGURES:
            if database.execute("SELECT 1 FROM settings LIMIT 1").fetchone() is None:
                return
            query = "SELECT DISTINCT json_type(settings, ?) FROM settings"
            kinds = {kind for (kind,) in database.execute(query, [_json_path(self.name)])} - {None}
            if not kinds:
                raise unknown_name("setting among the runs", self.name, _setting_names(database))
            value = self.values[-1]
            if kinds.isdisjoint(["text"] if isinstance(value, str) else ["integer", "real", "true", "false"]):
                raise UserError(f"no run has a {self.name} that can be compared with {value!r}")


def _setting_names(database: sqlite3.Connection) -> set[str]:
    query = "SELECT DISTINCT settings FROM settings"
    return {name for (text,) in database.execute(query) for name in flat(json.loads(text))}


def _json_path(name: str) -> str:
    """Path of a setting in a record: its table, then its name, which may contain points (`regularizer.margin`)."""
    table, _, rest = name.partition(".")
    return f'$."{table}"."{rest}"'


def _value(text: str) -> str | float:
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text)
    except ValueError:
        return text.strip("\"'")
