"""Run folders: `<root>/<experiment>/<dataset>/<model>/<fingerprint>/<replica>/`, the record written last."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.atomic import write_atomically
from gumbel_mpnn.config import Settings
from gumbel_mpnn.data.npz import read_npz
from gumbel_mpnn.errors import DataError, DataWarning
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.records import HISTORY, RECORD, Record, Replica, read_record
from gumbel_mpnn.rewiring.rewired_graph import as_data
from gumbel_mpnn.training import Outcome
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors

MODEL, GRAPH = "model.safetensors", "graph.npz"


class SettingFolder:
    """All runs of one setting on one data set: a folder for each replica, checkpoints of groups under way.

    With `models`, a run whose trained model was deleted does not count as finished.
    """

    def __init__(self, path: Path, models: bool = False) -> None:
        self.path, self.models = path, models

    @classmethod
    def of(cls, root: Path, experiment: str, settings: Settings, data_hash: str, models: bool = False) -> SettingFolder:
        """Where runs of `settings` lie under `root`."""
        return cls(root / experiment / settings.dataset / settings.model / settings.fingerprint(data_hash), models)

    def folder(self, replica: Replica) -> Path:
        """The folder of one run."""
        return self.path / str(replica)

    def is_finished(self, replica: Replica) -> bool:
        """Whether the run was recorded, and its parameters are still there where they are wanted."""
        folder = self.folder(replica)
        return (folder / RECORD).exists() and (not self.models or (folder / MODEL).exists())

    def write(
        self, outcome: Outcome, record: Record, graph: PairGraph | None = None, node_ids: Sequence[str] | None = None
    ) -> None:
        """Everything of one finished run; the record comes last and marks it finished.

        The old record of a run that is done again, since its model was deleted, stands until then.
        `graph` are the pairs that a rewiring model has learned about, `node_ids` the names of their nodes.
        """
        folder = self.folder(outcome.replica)
        for left_over in folder.glob(".*"):  # half-written by a process that was killed
            left_over.unlink(missing_ok=True)
        if outcome.probability is not None and graph is not None:
            write_atomically(folder / GRAPH, _pack(graph, outcome.probability, node_ids))
        save_tensors(folder / MODEL, outcome.state)
        lines = "".join(json.dumps(row) + "\n" for row in outcome.history)
        write_atomically(folder / HISTORY, lines.encode())
        write_atomically(folder / RECORD, json.dumps(record.to_dict(), indent=1).encode())

    def record(self, replica: Replica) -> Record:
        """The record of a finished run."""
        return read_record(self.folder(replica) / RECORD)

    def state(self, replica: Replica) -> dict[str, Tensor]:
        """The parameters of a finished run, [1, ...]."""
        path = self.folder(replica) / MODEL
        if not self.path.exists():
            raise DataError(
                f"the folder {self.path} of these runs is gone: without runs= fit keeps them in a temporary one, as"
                " long as its result lives in the process that trained them; give runs= a folder to keep them"
            )
        if not path.exists():
            raise DataError(f"the trained model {path} is not there: fit with models=True does such runs again")
        return load_tensors(path, "delete it, and fit with models=True, or train --predictions, does the run again")[0]

    def checkpoint(self, group: Sequence[Replica]) -> Path:
        """Where the state of a group under way is kept."""
        return self.path / f"checkpoint-{_key(group)}.safetensors"

    def group_file(self, group: Sequence[Replica]) -> Path:
        """The file that says which replicas a group has, there as long as it is not finished."""
        return self.path / f"group-{_key(group)}.json"


def _key(group: Sequence[Replica]) -> str:
    return hashlib.sha256(" ".join(map(str, group)).encode()).hexdigest()[:12]


def _pack(graph: PairGraph, probability: Tensor, node_ids: Sequence[str] | None) -> bytes:
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
    contents = [_unpack(file) for file in files]
    first = contents[0]
    same = ("pairs", "given_weight")
    if any(not np.array_equal(first.get(name, 0), content.get(name, 0)) for content in contents for name in same):
        raise DataError(f"the runs under {folder} are of different graphs: give the folder of one of them")
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
    data = Data(num_nodes=graph.num_nodes)
    if "node_ids" in first:
        data.node_ids = first["node_ids"].tolist()
    return as_data(graph, probability, data, threshold)


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
