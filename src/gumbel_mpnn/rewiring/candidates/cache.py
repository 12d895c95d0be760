"""Candidates kept on disk under the content they were made from, so that no search is done twice."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.atomic import write_atomically
from gumbel_mpnn.data.digest import add_tensor
from gumbel_mpnn.data.files import cache_root
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.candidates.base import CandidateStrategy
from gumbel_mpnn.rewiring.candidates.pairs import clean

SWITCH = "GUMBEL_MPNN_CANDIDATE_CACHE"
"""Environment variable that switches the cache off: `off`, `no`, `false` or `0`."""
SCHEMA = 1
"""Raised when a strategy finds other pairs than before, so that old files are not taken for new ones."""
MOST_BYTES = 2**30
"""What the folder may hold; the files that were not used for longest go first."""


class Cached(CandidateStrategy):
    """The candidates of `strategy`, read from the user's cache folder where they were made from the same content.

    The content is what the strategy says that it `reads`, the edges and the batch; labels play no part. A strategy that
    does not say is asked anew each time. What cannot be read is made again, and what cannot be written is let go.

    Args:
        strategy: Any candidate strategy.
    """

    def __init__(self, strategy: CandidateStrategy) -> None:
        self.strategy = strategy

    def propose(self, data: Data, graph: PairGraph) -> Tensor:
        """The pairs of the strategy, clean, int64 [2, M]."""
        path = self._path(data, graph)
        pairs = None if path is None else _read(path, graph.num_nodes)
        if pairs is None:
            pairs = clean(self.strategy.propose(data, graph), graph)
            if path is not None:
                _write(path, pairs)
        return pairs.to(graph.pair_index.device)

    def _path(self, data: Data, graph: PairGraph) -> Path | None:
        """Where the pairs are kept; None if they are not."""
        names = self.strategy.reads
        if names is None or os.environ.get(SWITCH, "").lower() in ("off", "no", "false", "0"):
            return None
        values = {name: data.get(name) for name in names}
        if data.get("batch") is not None:
            values["batch"] = data.batch
        device = graph.pair_index.device.type  # devices round differently, and so may choose differently
        strategy = f"{type(self.strategy).__module__}.{self.strategy!r}"
        digest = hashlib.sha256(f"{SCHEMA} {strategy} {device} {graph.num_nodes}".encode())
        add_tensor(digest, "pairs", graph.pair_index)
        for name, value in values.items():
            if not isinstance(value, Tensor):
                return None
            add_tensor(digest, name, value)
        try:
            return cache_root() / "candidates" / f"{digest.hexdigest()[:32]}.npz"
        except RuntimeError:  # nobody has told the user's home
            return None


def _read(path: Path, num_nodes: int) -> Tensor | None:
    """Pairs int64 [2, M] as `_write` wrote them, or None where there are none or the file is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            pairs = torch.from_numpy(file["pairs"]).long()
        os.utime(path)
    except Exception:  # there are as many kinds as places where a damaged file can fail
        return None
    ascending = pairs.dim() == 2 and len(pairs) == 2 and bool((pairs[0] < pairs[1]).all())
    inside = pairs.numel() == 0 or (int(pairs.min()) >= 0 and int(pairs.max()) < num_nodes)
    return pairs if ascending and inside else None


def _write(path: Path, pairs: Tensor) -> None:
    """Keep the pairs, and the folder within its bounds; a cache that cannot be written to is no error."""
    content = io.BytesIO()
    np.savez(content, pairs=pairs.cpu().numpy().astype(np.int32))
    try:
        write_atomically(path, content.getvalue())
        _trim(path.parent)
    except OSError:
        pass


def _trim(folder: Path) -> None:
    files = sorted(((file.stat(), file) for file in folder.glob("*.npz")), key=lambda found: found[0].st_mtime)
    excess = sum(stat.st_size for stat, _ in files) - MOST_BYTES
    for stat, file in files:
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= stat.st_size
