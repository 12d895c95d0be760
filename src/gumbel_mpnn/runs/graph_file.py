"""Graphs that runs have learned, as files: the pairs, and how likely each is to be an edge."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.data.npz import read_npz
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.rewired_graph import as_data
from gumbel_mpnn.runs.query import RECORD

GRAPH = "graph.npz"
"""The file beside a run's record."""


def pack(graph: PairGraph, probability: Tensor, node_ids: Sequence[str] | None) -> bytes:
    """The pairs with what was learned of them, as an npz file."""
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
    content = io.BytesIO()
    np.savez(content, **arrays)  # compressing takes a second for a million pairs, of every run, while the GPU waits
    return content.getvalue()


@dataclass(frozen=True)
class Learned:
    """Pairs, and how likely runs made each of them to be an edge."""

    graph: PairGraph
    probability: Tensor
    """Mean over the runs, [P]."""
    node_ids: list[str] | None = None


def read_learned(files: Sequence[Path]) -> Learned:
    """The mean of what the runs with these files learned; they are runs on one graph."""
    contents = [_unpack(file) for file in files]
    first = contents[0]
    same = ("pairs", "given_weight")
    if any(not np.array_equal(first.get(name, 0), content.get(name, 0)) for content in contents for name in same):
        raise DataError(
            f"the runs under {Path(os.path.commonpath(files))} are of different graphs: give the folder of one of them"
        )
    pairs, given = torch.from_numpy(first["pairs"].T.astype(np.int64)), torch.from_numpy(first["is_original"])
    graph = PairGraph.build(
        pairs[:, given],
        int(first["num_nodes"]),
        undirected=bool(first["undirected"]),
        candidate_index=pairs[:, ~given],
    )
    if "given_weight" in first:  # pairs come sorted from the file, and so they are again
        graph = replace(graph, pair_weight=torch.from_numpy(first["given_weight"]))
    probability = torch.from_numpy(np.mean([content["probability"] for content in contents], axis=0))
    return Learned(graph, probability, first["node_ids"].tolist() if "node_ids" in first else None)


def learned_graph(folder: Path, threshold: float = 0.5) -> Data:
    """The graph that the runs under `folder` learned, averaged over them; pairs below `threshold` are left out.

    They are runs of one setting: the mean over several would be the graph of none. A `DataWarning` says where some of
    its runs have no learned graph any more.
    """
    files = sorted(folder.glob(f"**/{GRAPH}"))
    if not files:
        raise DataError(
            f"there is no learned graph under {folder}: give the folder of a finished run of gumbel-mpnn"
            " (that of sdrf is made before training and not kept: Run.rewire and measure --run make it again)"
        )
    _warn_of_missing(folder, files, _one_setting(folder, files))
    learned = read_learned(files)
    data = Data(num_nodes=learned.graph.num_nodes)
    if learned.node_ids is not None:
        data.node_ids = learned.node_ids
    return as_data(learned.graph, learned.probability, data, threshold)


def _one_setting(folder: Path, files: Sequence[Path]) -> Path:
    """The folder of the setting whose runs under `folder` have these files; a `DataError` if there are several."""
    settings = {file.absolute().parent.parent for file in files}
    if len(settings) > 1:
        raise DataError(
            f"the learned graphs under {folder} lie in the folders of {len(settings)} settings, and only those of one"
            " are averaged: give one of these folders, as `gumbel-mpnn runs` lists them"
        )
    return settings.pop()


def _warn_of_missing(folder: Path, files: Sequence[Path], setting: Path) -> None:
    """Warn where runs of the setting under `folder` are finished but have none of the files."""
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
        return read_npz(path, required=("pairs", "probability", "is_original", "num_nodes", "undirected"))
    except DataError:
        raise DataError(f"the learned graph {path} is damaged: delete its folder to do the run again") from None
