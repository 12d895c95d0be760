"""Data sets by name: benchmarks, which are read from files, and graphs that are generated."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.check import set_edges
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.data.public_files import (
    File,
    find,
    obtain,
    read_binary,
    read_facebook,
    read_geom_gcn_splits,
    read_ogb,
    read_planetoid,
)
from gumbel_mpnn.data.splits import FINAL_PROTOCOLS, MASKS, PROTOCOLS, RANDOM_PROTOCOLS, random_masks, set_masks
from gumbel_mpnn.data.tasks import bottleneck, demo_graph, leaf_count
from gumbel_mpnn.graph import undirected_keys
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.util.errors import DataError, UserError, check_whole, unknown_name


@dataclass(frozen=True)
class DatasetSpec:
    """What is known about a data set before it is loaded."""

    name: str
    """Name in records and presets; the sizes of a generated task share it."""
    num_nodes: int
    num_edges: int
    """Number of undirected edges, each counted once, without self-loops."""
    num_features: int
    num_classes: int
    protocols: tuple[str, ...]
    """Names of the split protocols, the default first."""
    source: str
    licence: str
    read: Callable[..., Data]
    """Reads the graph from the paths of its files, with edges as listed, or generates it if it has none."""
    files: tuple[File, ...] = ()
    split_files: tuple[File, ...] = ()
    """The ten geom-gcn splits, if they are not part of the graph's own files."""
    directed_files: tuple[File, ...] = ()
    """Files that keep the direction of the edges."""
    files_without_features: tuple[File, ...] = ()
    metric: Literal["accuracy", "roc_auc"] = "accuracy"
    has_directions: bool = False
    """Whether edges have a direction, which `load(..., directed=True)` keeps."""

    def files_for(self, protocol: str, directed: bool = False) -> tuple[File, ...]:
        """Return all files that are read for a split protocol; a generated data set has none."""
        graph = self.directed_files if directed and self.directed_files else self.files
        return graph + (self.split_files if protocol == "geom-gcn" else ())


def get_spec(name: str) -> DatasetSpec:
    """Return the data set called `name`, ignoring case and the difference between `_` and `-`."""
    if not isinstance(name, str):
        raise UserError(f"a data set is given by its name, such as 'cora', not by {name!r}")
    known = specs.get(normal_name(name))
    if known is None:
        raise unknown_name("data set", name, specs)
    return known


def missing_files(spec: DatasetSpec, root: str | Path | None = None, features: bool = True) -> list[File]:
    """Return the files that `load` needs by default, or with these `features`, and does not find on this machine."""
    if not features and _has_structure(spec, root):
        return []
    return [file for file in spec.files_for(spec.protocols[0]) if find(file, root) is None]


def _has_structure(spec: DatasetSpec, root: str | Path | None) -> bool:
    return bool(spec.files_without_features) and all(find(file, root) for file in spec.files_without_features)


def load(
    name: str,
    split: int | None = None,
    root: str | Path | None = None,
    protocol: str | None = None,
    features: bool = True,
    directed: bool = False,
    seed: int = 0,
    num_splits: int = 10,
) -> Data:
    """Load a data set by name as a plain `Data`.

    Files are searched in `root`, in the folder named by GUMBEL_MPNN_DATA and in the user's cache, in this order, and
    downloaded if they are in none of them. Generated data sets need no files.

    Args:
        name: name of the data set; `specs` lists all of them.
        split: number of a split, which gives masks [N]; None gives the masks [N, S] of all splits.
        root: folder of data files to search first.
        protocol: how the nodes are split; None selects the default of the data set. Every data set has `final` and
            `all`, without test nodes, too.
        features: False leaves `x` out. Some data sets can be loaded without the files of their features.
        directed: True keeps the direction of the edges, for data sets that have one.
        seed: seed of a random protocol.
        num_splits: number of splits of a random protocol.

    Returns:
        A graph with `x` float32 [N, F], `edge_index` int64 [2, E], sorted and with every edge once per direction, `y`
        int64 [N] with -1 for unlabelled nodes, the three masks, and the strings `name`, `metric` and `protocol`.
    """
    spec = get_spec(name)
    protocol = protocol or spec.protocols[0]
    if protocol not in (*spec.protocols, *FINAL_PROTOCOLS):
        raise unknown_name(f"split protocol of {spec.name!r}", protocol, [*spec.protocols, *FINAL_PROTOCOLS])
    if directed and not spec.has_directions:
        raise DataError(f"data set {spec.name!r} has no directed edges: load it with directed=False")
    data = _read(spec, protocol, root, features, directed) if spec.files else spec.read()
    if not features:
        data.num_nodes, data.x = len(data.y), None
    if protocol in PROTOCOLS:
        set_masks(data, random_masks(data.y, protocol, seed, num_splits))
    if split is not None:
        check_whole(split=split)
        if not 0 <= split < data.train_mask.shape[1]:
            raise UserError(f"there is no split {split}: this protocol has splits 0 to {data.train_mask.shape[1] - 1}")
        for mask in MASKS:
            data[mask] = data[mask][:, split].contiguous()
    data.name, data.metric, data.protocol = spec.name, spec.metric, protocol
    return data


def _read(spec: DatasetSpec, protocol: str, root: str | Path | None, features: bool, directed: bool) -> Data:
    """Read a data set from its files, with the splits of `protocol` unless it is a random one."""
    structure = not features and _has_structure(spec, root)
    files = spec.files_without_features if structure else spec.files_for(protocol, directed)
    paths = obtain(spec.name, files, root)
    of_splits = [path for path, file in zip(paths, files, strict=True) if file in spec.split_files]
    data = spec.read([path for path in paths if path not in of_splits])
    num_edges, num_classes = len(undirected_keys(data.edge_index, len(data.y))), len(data.y[data.y >= 0].unique())
    found = len(data.y), num_edges, data.num_features if features else spec.num_features, num_classes
    expected = spec.num_nodes, spec.num_edges, spec.num_features, spec.num_classes
    if found != expected:
        raise DataError(
            f"the files of data set {spec.name!r} have {', '.join(map(str, found))} nodes, edges, features and classes"
            f" instead of {', '.join(map(str, expected))}: replace them by the published files"
        )
    if of_splits:
        set_masks(data, read_geom_gcn_splits(of_splits))
    if protocol not in PROTOCOLS and len(data.get("train_mask", ())) != len(data.y):
        raise DataError(
            f"the files of protocol {protocol!r} have no masks for {len(data.y)} nodes: choose another protocol"
        )
    set_edges(data, undirected=not directed)
    return data


def _table(name: str) -> Data:
    """Read a table that comes with scikit-learn: a node for each row, and no edges."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name.replace('-', '_')}")(return_X_y=True)
    return Data(torch.from_numpy(x).float(), torch.empty(2, 0, dtype=torch.int64), y=torch.from_numpy(y).long())


_READERS: Mapping[str, Callable[..., Data]] = {
    "npz": read_graph,
    "planetoid": read_planetoid,
    "ogb": read_ogb,
    "binary": read_binary,
    "facebook": read_facebook,
    "demo": demo_graph,
    "leaf-count": leaf_count,
    "bottleneck": bottleneck,
    "table": _table,
}


def _spec(name: str, entry: Mapping[str, Any]) -> DatasetSpec:
    """Read an entry of `datasets.toml`."""
    url, archive = entry.get("url"), entry.get("archive")
    files = _files(entry, "files", url)
    if archive:  # whose members are called as the files are
        files = tuple(replace(file, url=archive, member=file.path.removeprefix("ogbn-")) for file in files)
    directed_files = _files(entry, "directed_files", url)
    counts: tuple[int, int, int, int] = tuple(entry["counts"])
    return DatasetSpec(
        entry.get("record_name", name),
        *counts,
        protocols=tuple(dict.fromkeys((*entry["protocols"], *RANDOM_PROTOCOLS))),  # without duplicates, in order
        source=entry["source"],
        licence=entry["licence"],
        read=partial(_READERS[entry.get("reader", "npz")], **entry.get("options", {})),
        files=files,
        split_files=_files(entry, "split_files", entry.get("splits_url")),
        directed_files=directed_files,
        files_without_features=_files(entry, "files_without_features"),
        metric=entry.get("metric", "accuracy"),
        has_directions=bool(directed_files) or entry.get("directed", False),
    )


def _files(entry: Mapping[str, Any], table: str, url: str | None = None) -> tuple[File, ...]:
    """Read the paths and checksums of a table."""
    return tuple(
        File(path, url and f"{url}/{Path(path).name}", sha256 or None) for path, sha256 in entry.get(table, {}).items()
    )


specs: dict[str, DatasetSpec] = {
    name: _spec(name, entry)
    for name, entry in tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8")).items()
}
"""Every data set under the name that `load` takes."""
