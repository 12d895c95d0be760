"""The data that runs were trained on: what a trained model must know about them, and how to read them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch_geometric.data import Batch, Data

from gumbel_mpnn.data.check import IDENTITY
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.training.task import num_classes
from gumbel_mpnn.util.errors import DataError, unreadable
from gumbel_mpnn.util.files import json_with_checksum, read_json, write_atomically

FILE = "data.json"
"""File in the folder of a setting."""


@dataclass(frozen=True)
class DataFacts:
    """What a trained model must know about its training data to be applied to other graphs."""

    num_features: int
    num_classes: int
    class_names: tuple[Any, ...] | None = None
    weighted: bool | None = None
    """Whether edges had weights; None if an older version trained the runs."""
    identity: bool = False
    """Whether the graph had no features, so that the model knows its nodes only."""
    feature_columns: tuple[FeatureColumn, ...] | None = None
    """Columns of the file of nodes that became features, if the graph was read from one."""
    source_files: dict[str, Any] | None = None
    """Arguments with which the files of the user can be read again; None for a batch, which is several graphs."""

    @classmethod
    def of(cls, data: Data) -> DataFacts:
        """Facts of a graph with features and labels."""
        names, columns, files = data.get("class_names"), data.get("feature_columns"), data.get("source_files")
        return cls(
            num_features=int(data.x.shape[1]),
            num_classes=num_classes(data),
            class_names=None if names is None else tuple(names),
            weighted=data.get("edge_weight") is not None,
            identity=bool(data.get(IDENTITY)),
            feature_columns=None if columns is None else tuple(columns),
            source_files=files if isinstance(files, dict) and files and not isinstance(data, Batch) else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        columns, names = self.feature_columns, self.class_names
        plain = [name if isinstance(name, str | int | float) else str(name) for name in names or ()]
        return {
            "num_features": self.num_features,
            "num_classes": self.num_classes,
            "class_names": None if names is None else plain,
            "weighted": self.weighted,
            "identity": self.identity,
            "feature_columns": None if columns is None else [column.to_dict() for column in columns],
            "source_files": self.source_files,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> DataFacts:
        """Read what `to_dict` wrote."""
        names, columns = values["class_names"], values["feature_columns"]
        return cls(
            num_features=int(values["num_features"]),
            num_classes=int(values["num_classes"]),
            class_names=None if names is None else tuple(names),
            weighted=values.get("weighted"),
            identity=bool(values["identity"]),
            feature_columns=None if columns is None else tuple(map(FeatureColumn.from_dict, columns)),
            source_files=values["source_files"],
        )


class TrainingData:
    """The training data of runs, read when they are first needed, and facts about them.

    `data` may be a function that reads them or raises a `DataError` that says what is missing.
    """

    def __init__(self, data: Data | Callable[[], Data], facts: DataFacts | None = None) -> None:
        self._data, self._facts = data, facts

    @cached_property
    def data(self) -> Data:
        """The data."""
        return self._data if isinstance(self._data, Data) else self._data()

    @cached_property
    def facts(self) -> DataFacts:
        """Facts about the data."""
        return DataFacts.of(self.data) if self._facts is None else self._facts


def has_facts(folder: Path, facts: DataFacts) -> bool:
    """Whether these facts are in the folder of a setting, and nothing that a killed process has not finished."""
    if any(folder.glob(f".{FILE}.*")):
        return False
    try:
        found = read_facts(folder)
    except DataError:
        return False
    return found is not None and found.to_dict() == facts.to_dict()


def write_facts(folder: Path, facts: DataFacts) -> None:
    """Write the facts of the training data to the folder of a setting; the caller must hold the lock of the folder."""
    write_atomically(folder / FILE, json_with_checksum(facts.to_dict()))


def read_facts(folder: Path) -> DataFacts | None:
    """Read the facts of the training data from the folder of a setting; None if an older version trained the runs."""
    path = folder / FILE
    try:
        return DataFacts.from_dict(read_json(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise unreadable(str(path), error, "delete it and repeat the training command") from None
