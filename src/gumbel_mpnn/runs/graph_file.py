"""Files of learned graphs: pairs of nodes and their probabilities to be an edge."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data.npz import read_npz
from gumbel_mpnn.data.tables import InputFile
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.rewirer import as_data
from gumbel_mpnn.runs.choice import FILES as CHOICES
from gumbel_mpnn.runs.record import RECORD, find_records
from gumbel_mpnn.util.errors import DamagedError, DataError, DataWarning, unopened
from gumbel_mpnn.util.files import CHECKSUM, check_digest, digest

GRAPH = "graph.npz"
"""Name of the file in the folder of a run."""


def pack(graph: PairGraph, probability: Tensor, node_ids: Sequence[str] | None) -> bytes:
    """Content of an npz file with the pairs and their probabilities."""
    arrays: dict[str, Any] = {
        "pairs": graph.pair_index.T.cpu().numpy().astype(np.int32),
        "probability": probability.numpy(),
        "is_original": graph.is_original.cpu().numpy(),
        "num_nodes": graph.num_nodes,
        "undirected": graph.undirected,
    }
    if graph.pair_weight is not None:
        arrays["given_weight"] = graph.pair_weight.detach().cpu().float().numpy()
    if node_ids is not None:
        arrays["node_ids"] = np.array([str(name) for name in node_ids])
    arrays[CHECKSUM] = _digest(arrays)
    content = io.BytesIO()
    np.savez(content, **arrays)  # compressing a million pairs would take a second per run, in which the GPU waits
    return content.getvalue()


@dataclass(frozen=True)
class Learned:
    """The learned graphs of runs, which have the same pairs."""

    graph: PairGraph
    probability: Tensor
    """Probability of every pair in each run, [R, P]."""
    node_ids: list[str] | None = None

    @property
    def mean(self) -> Tensor:
        """Mean probability of every pair over the runs, [P]."""
        return self.probability.mean(0)

    def to_data(self, threshold: float = 0.5) -> Data:
        """Graph averaged over the runs, without pairs below `threshold`."""
        data = Data(num_nodes=self.graph.num_nodes)
        if self.node_ids is not None:
            data.node_ids = self.node_ids
        return as_data(self.graph, self.mean, data, threshold)


def read_learned(files: Sequence[Path]) -> Learned:
    """Read the learned graphs of runs on the same graph."""
    first, same = _unpack(files[0]), ("pairs", "given_weight")
    probability = np.empty((len(files), len(first["probability"])), dtype=first["probability"].dtype)
    for row, file in enumerate(files):
        content = _unpack(file)
        if any(not np.array_equal(first.get(name, 0), content.get(name, 0)) for name in same):
            folder = Path(os.path.commonpath(files))
            raise DataError(f"the runs under {folder} are of different graphs: give the folder of one of them")
        probability[row] = content["probability"]
    pairs, given = torch.from_numpy(first["pairs"].T.astype(np.int64)), torch.from_numpy(first["is_original"])
    graph = PairGraph.build(
        pairs[:, given],
        int(first["num_nodes"]),
        undirected=bool(first["undirected"]),
        candidate_index=pairs[:, ~given],
    )
    if "given_weight" in first:  # pairs are sorted in the file as in the graph
        graph = replace(graph, pair_weight=torch.from_numpy(first["given_weight"]))
    node_ids = first["node_ids"].tolist() if "node_ids" in first else None
    return Learned(graph, torch.from_numpy(probability), node_ids)


def learned_graph(folder: Path, threshold: float = 0.5) -> Data:
    """Graph that the runs under `folder` learned, averaged over the runs; pairs below `threshold` are left out.

    All runs must be of the same setting. A `DataWarning` is issued if the learned graphs of some runs are missing.
    """
    return find_learned(folder)[0].to_data(threshold)


def find_learned(folder: Path) -> tuple[Learned, list[Path]]:
    """Learned graphs of the runs under `folder`, which must be of one setting, and the folders of these runs."""
    files = sorted(folder.glob(f"**/{GRAPH}"))
    if not files and any(folder.glob(CHOICES)):
        raise DataError(
            f"there is no learned graph under {folder}: `auto` chose a model that keeps the given edges as they are"
        )
    if not files and (plain := _plain_model(folder)):
        raise DataError(f"{plain} does not rewire the graph: give the folder of finished runs of gumbel-mpnn")
    if not files:
        raise DataError(
            f"there is no learned graph under {folder}: give the folder of a finished run of gumbel-mpnn"
            " (the graph of sdrf is not stored: use Run.rewire or measure --run)"
        )
    _warn_of_missing(folder, files, _one_setting(folder, files))
    return read_learned(files), [file.parent for file in files]


def _plain_model(folder: Path) -> str | None:
    """Name of a model under `folder` if none of its runs rewires the graph, else None."""
    found = [record.settings for record in find_records(folder)]
    names = [settings["model"]["name"] for settings in found]
    if any(settings.get("rewiring") for settings in found) or "sdrf" in names:
        return None
    return str(names[0]) if names else None


def _one_setting(folder: Path, files: Sequence[Path]) -> Path:
    """Folder of the setting that the files belong to; raises a `DataError` if there are several."""
    settings = {file.absolute().parent.parent for file in files}
    if len(settings) > 1:
        raise DataError(
            f"the learned graphs under {folder} are of {len(settings)} settings, and only those of one can be averaged:"
            " give the folder of one setting, as listed by `gumbel-mpnn runs`"
        )
    return settings.pop()


def _warn_of_missing(folder: Path, files: Sequence[Path], setting: Path) -> None:
    """Warn if finished runs of the setting have no learned graph."""
    there = {file.absolute().parent for file in files}
    finished = {record.absolute().parent for record in folder.glob(f"**/{RECORD}")}
    lacking = sorted(run for run in finished - there if run.parent == setting)
    if lacking:
        warnings.warn(
            f"the mean is over {len(there)} of {len(there) + len(lacking)} runs: there is no {GRAPH} in {lacking[0]}"
            + f" and {len(lacking) - 1} more" * (len(lacking) > 1)
            + "; delete such folders to do the runs again",
            DataWarning,
            stacklevel=3,
        )


def _unpack(path: Path) -> dict[str, Any]:
    try:
        content = InputFile(path, path.read_bytes())
        arrays = read_npz(content, required=("pairs", "probability", "is_original", "num_nodes", "undirected"))
        found = arrays.pop(CHECKSUM, None)
        check_digest(None if found is None else str(found), _digest(arrays))
        return arrays
    except OSError as error:
        raise unopened(f"the learned graph {path}", error) from None
    except ValueError:
        raise DamagedError(f"the learned graph {path} is damaged: delete its folder to do the run again") from None


def _digest(arrays: Mapping[str, Any]) -> str:
    parts = ((name, np.ascontiguousarray(arrays[name])) for name in sorted(arrays))
    return digest((f"{name} {part.dtype.str} {part.shape}", part.tobytes()) for name, part in parts)
