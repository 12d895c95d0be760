"""Caches candidates on disk by the content of the graph, so that no search is repeated."""

from __future__ import annotations

import hashlib
import inspect
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util import content_cache
from gumbel_mpnn._util.content_cache import add_tensor
from gumbel_mpnn.candidates.base import CandidateStrategy, clean
from gumbel_mpnn.graph import PairGraph

SCHEMA = 2
"""Increased when a strategy finds other pairs than before, so that old files are not used."""


class Cached(CandidateStrategy):
    """Caches the candidates of a strategy in the user's cache folder.

    Candidates are identified by the edges, the batch and the attributes that the strategy `reads`, not by labels. If
    `reads` is None, nothing is cached. Damaged files are replaced, and files that cannot be written are skipped.

    Args:
        strategy: Any candidate strategy.
    """

    def __init__(self, strategy: CandidateStrategy) -> None:
        self.strategy = strategy

    @property
    def reads(self) -> tuple[str, ...] | None:
        """Attributes that the strategy reads."""
        return self.strategy.reads

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """Pairs of the strategy without edges, self-pairs and duplicates, int64 [2, M]."""
        path = self._path(data, graph)
        pairs = None if path is None else _read(path, graph.num_nodes)
        if pairs is None:
            pairs = clean(self.strategy.propose(data, graph), graph)
            if path is not None:
                content_cache.write(path, {"pairs": pairs.cpu().numpy().astype(np.int32)})
        return pairs.to(graph.pair_index.device)

    def _path(self, data: Data, graph: PairGraph) -> Path | None:
        """File of the pairs; None if they are not cached."""
        names = self.strategy.reads
        if names is None:
            return None
        values = {name: data.get(name) for name in names}
        if data.get("batch") is not None:
            values["batch"] = data.batch
        device = graph.pair_index.device.type  # devices round differently, which may change the choice
        strategy = f"{type(self.strategy).__module__}.{self.strategy!r}"
        digest = hashlib.sha256(f"{SCHEMA} {strategy} {device} {graph.num_nodes}".encode())
        if not type(self.strategy).__module__.startswith("gumbel_mpnn."):
            source = _source(type(self.strategy))  # `SCHEMA` knows only about changes of our own strategies
            if source is None:
                return None
            digest.update(source.encode())
        add_tensor(digest, "pairs", graph.pair_index)
        for name, value in values.items():
            if not isinstance(value, Tensor):
                return None
            add_tensor(digest, name, value)
        return content_cache.place("candidates", digest.hexdigest())


def _source(kind: type) -> str | None:
    """Source of the module of a strategy of the user's; None if there is no file."""
    try:
        return inspect.getsource(sys.modules[kind.__module__])
    except (OSError, TypeError, KeyError):
        return None


def _read(path: Path, num_nodes: int) -> Tensor | None:
    """Read pairs int64 [2, M]; returns None if the file is missing or not valid for this number of nodes."""
    arrays = content_cache.read(path)
    if arrays is None or "pairs" not in arrays:
        return None
    pairs = torch.from_numpy(arrays["pairs"]).long()
    ascending = pairs.dim() == 2 and len(pairs) == 2 and bool((pairs[0] < pairs[1]).all())
    inside = pairs.numel() == 0 or (int(pairs.min()) >= 0 and int(pairs.max()) < num_nodes)
    return pairs if ascending and inside else None
