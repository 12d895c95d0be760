"""Reads the data of runs, once for many runs on the same data set."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch_geometric.data import Data

from gumbel_mpnn.data import (
    GraphFacts,
    add_splits,
    check,
    check_masks,
    get_spec,
    load,
    with_all_masks,
    with_identity_features,
)
from gumbel_mpnn.data.check import as_graph, warn_of_empty_classes, warn_of_ignored
from gumbel_mpnn.graph import CANDIDATE_OF, check_candidates, digest_of_nodes, warn_if_stale
from gumbel_mpnn.settings import DataSettings
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, DataWarning

OWN_PROTOCOL = "random-60-20-20"
"""Split protocol of graphs without masks."""
_MASKS = ("train_mask", "val_mask", "test_mask")

Transform = Callable[[Data], Data]


class DataReader:
    """Reads data and caches the last ones, one by default, since many settings are tried on one data set.

    A graph of the user is cached as well: do not change it between two calls. Threads may share a reader.
    """

    def __init__(self, keep: int = 1) -> None:
        self._keep, self._lock = keep, threading.Lock()
        self._read: dict[tuple[object, ...], tuple[str | Data, tuple[Data, str]]] = {}
        """What was read, the last used at the end; a graph of the user must live on as long as its `id` is a key."""

    def read(
        self, dataset: str | Data, settings: DataSettings, root: str | Path | None, transform: Transform | None
    ) -> tuple[Data, str]:
        """Read and transform the data; returns it with its hash. The data may be cached: do not change it in place."""
        what = dataset if isinstance(dataset, str) else id(dataset)
        key = (what, settings.protocol, settings.undirected, root, transform)
        with self._lock:
            found = self._read.pop(key, None) or (dataset, _read(dataset, settings, root, transform))
            self._read[key] = found
            for oldest in list(self._read)[: -self._keep]:
                del self._read[oldest]
            return found[1]


def _read(
    dataset: str | Data, settings: DataSettings, root: str | Path | None, transform: Transform | None
) -> tuple[Data, str]:
    data = read_data(dataset, settings, root)
    if transform is not None:
        data = transform(data)
    return data, data_hash(data)


def read_data(dataset: str | Data, settings: DataSettings, root: str | Path | None) -> Data:
    """Read the data and add masks by a random split protocol if it has none.

    A graph with a `val_mask` or `test_mask` but no `train_mask` is refused, unless the settings name a protocol.
    Edges of a data set are directed only if it has directions and the settings ask for them.
    """
    protocol = settings.protocol
    if isinstance(dataset, str):
        directed = not settings.undirected and get_spec(dataset).has_directions
        return load(dataset, protocol=protocol or None, root=root, directed=directed)
    dataset = as_graph(dataset)
    if dataset.get("y") is None:
        raise DataError("this graph has no labels: give it data.y")
    if isinstance(dataset.x, torch.Tensor) and dataset.x.layout != torch.strided:
        dataset = copy.copy(dataset)
        dataset.x = dataset.x.to_dense()
    if protocol or all(dataset.get(name) is None for name in _MASKS):
        facts = check(_without_masks(dataset))
        _check_classes(facts)
        dataset = add_splits(dataset, protocol or OWN_PROTOCOL)
        check_masks(dataset)
    else:
        facts = check(dataset)
        _check_classes(facts)
        dataset = with_all_masks(dataset)
    warn_of_empty_classes(dataset)
    warn_of_ignored(dataset, settings.undirected)
    dataset = _with_checked_candidates(dataset)
    return dataset if dataset.get("x") is not None else _with_features(dataset, facts)


def _with_checked_candidates(data: Data) -> Data:
    """Check the candidates of a graph, and warn once if they belong to other nodes."""
    if data.get("candidate_index") is not None:
        check_candidates(data.candidate_index, int(data.num_nodes or 0))
        if warn_if_stale(data):
            data = copy.copy(data)
            data[CANDIDATE_OF] = digest_of_nodes(data)  # later steps need not warn again
    return data


def _with_features(data: Data, facts: GraphFacts) -> Data:
    """Give a graph without features the identity matrix."""
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


def _without_masks(data: Data) -> Data:
    bare = copy.copy(data)
    for name in _MASKS:
        if name in bare:
            del bare[name]
    return bare


def _check_classes(facts: GraphFacts) -> None:
    """Raise a `DataError` if there is only one class or every node is its own class."""
    if facts.num_classes == 1:
        raise DataError("all labelled nodes are of one class: classification needs two or more")
    if facts.num_classes == facts.num_nodes - facts.num_unlabelled:
        raise DataError(
            f"there are as many classes as labelled nodes, {facts.num_classes}, so no class has nodes both to train"
            " and to test on: are these labels ids?"
        )
