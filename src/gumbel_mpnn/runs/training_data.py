"""The data that runs are trained on: read and checked, with the facts that their models need on other graphs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Batch, Data

from gumbel_mpnn.data import add_splits, check, check_masks, get_spec, load, with_all_masks
from gumbel_mpnn.data.check import (
    IDENTITY,
    as_graph,
    warn_of_empty_classes,
    warn_of_ignored,
    with_identity_features,
)
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.graph import check_candidates
from gumbel_mpnn.runs.store import FACTS
from gumbel_mpnn.settings import DataSettings
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.training.task import num_classes
from gumbel_mpnn.util.errors import DataError, DataWarning, unreadable
from gumbel_mpnn.util.files import read_json

Transform = Callable[[Data], Data]

OWN_PROTOCOL = "random-60-20-20"
"""Split protocol of graphs without masks."""
_MASKS = ("train_mask", "val_mask", "test_mask")


class DataReader:
    """Reads data and keeps the last, since many settings are tried on one data set.

    A graph of the user is kept as well: do not change it between two calls.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._found: tuple[Data, str]

    def read(
        self, dataset: str | Data, settings: DataSettings, root: str | Path | None, transform: Transform | None
    ) -> tuple[Data, str]:
        """Read and transform the data; returns it with its hash. Do not change it in place."""
        key = (dataset, settings.protocol, settings.undirected, root, transform)
        if key != self._key:
            data = read_data(dataset, settings, root)
            data = data if transform is None else transform(data)
            self._key, self._found = key, (data, data_hash(data))
        return self._found


def read_data(dataset: str | Data, settings: DataSettings, root: str | Path | None) -> Data:
    """Read the data and add masks by a random split protocol if it has none.

    A graph with a `val_mask` or `test_mask` but no `train_mask` is refused, unless the settings name a protocol.
    Edges of a data set are directed only if it has directions and the settings ask for them.
    """
    protocol = settings.protocol
    if isinstance(dataset, str):
        directed = not settings.undirected and get_spec(dataset).has_directions
        return load(dataset, protocol=protocol or None, root=root, directed=directed)
    data = as_graph(dataset)
    if data.get("y") is None:
        raise DataError("this graph has no labels: give it data.y")
    if isinstance(data.x, torch.Tensor) and data.x.layout != torch.strided:
        data = copy.copy(data)
        data.x = data.x.to_dense()
    if protocol or all(data.get(name) is None for name in _MASKS):
        data = copy.copy(data).update(dict.fromkeys(_MASKS))
        facts = check(data)
        data = add_splits(data, protocol or OWN_PROTOCOL)
        check_masks(data)
    else:
        facts = check(data)
        data = with_all_masks(data)
    if facts.num_classes == 1:
        raise DataError("all labelled nodes are of one class: classification needs two or more")
    if facts.num_classes == facts.num_nodes - facts.num_unlabelled:
        raise DataError(
            f"there are as many classes as labelled nodes, {facts.num_classes}, so no class has nodes both to train"
            " and to test on: are these labels ids?"
        )
    warn_of_empty_classes(data)
    warn_of_ignored(data, settings.undirected)
    if data.get("candidate_index") is not None:
        check_candidates(data.candidate_index, facts.num_nodes)
    if data.get("x") is not None:
        return data
    if not facts.num_edges:
        raise DataError("this graph has neither features nor edges to learn from: give it one of them")
    warnings.warn(
        "this graph has no features, so each node gets one of its own (the identity matrix), which says nothing about"
        " the others: a model can learn from the edges only, so that mlp, which has none, can only guess, and no model"
        " can be applied to other graphs; with data.features=structure, nodes have positions among communities instead",
        DataWarning,
        stacklevel=3,
    )
    return with_identity_features(data)


@dataclass(frozen=True)
class DataFacts:
    """What a trained model must know about its training data to be applied to other graphs."""

    num_features: int
    num_classes: int
    class_names: tuple[Any, ...] | None = None
    weighted: bool = False
    """Whether edges had weights."""
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

    @classmethod
    def read(cls, folder: Path) -> DataFacts | None:
        """Read the facts from the folder of a setting; None if there are none."""
        try:
            values = read_json((folder / FACTS).read_bytes())
            names, columns = values.pop("class_names"), values.pop("feature_columns")
            return cls(
                **values,
                class_names=None if names is None else tuple(names),
                feature_columns=None if columns is None else tuple(map(FeatureColumn.from_dict, columns)),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise unreadable(str(folder / FACTS), error, "delete it and repeat the training command") from None

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values."""
        columns, names = self.feature_columns, self.class_names
        plain = [name if isinstance(name, str | int | float) else str(name) for name in names or ()]
        return {
            **vars(self),
            "class_names": None if names is None else plain,
            "feature_columns": None if columns is None else [column.to_dict() for column in columns],
        }


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
