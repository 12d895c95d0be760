"""Reading graphs with poisoned edges: a clean graph, and its edges after each published attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gumbel_mpnn.data.npz import edges_of, graph_of, integers, read_masks, read_npz
from gumbel_mpnn.data.raw import RawGraph, mask_of

META = ("meta-0.05", "meta-0.1", "meta-0.15", "meta-0.2", "meta-0.25")
"""Metattack, which changes this share of the edges to harm the predictions of all nodes."""
NETTACK = ("nettack-1", "nettack-2", "nettack-3", "nettack-4", "nettack-5")
"""Nettack, which changes this many edges for each of its targets, on which models are then tested."""
ATTACKS = (*META, *NETTACK)

_PARTS = ("train", "val", "test")
_TARGETS = "nettack_targets"


def read_attacked(paths: Sequence[Path]) -> RawGraph:
    """Read a clean graph with one split, and in `attacks` the same graph after each attack.

    The file has the arrays of `read_graph`, except that its split is `train_mask`, `val_mask` and `test_mask`, bool
    [N]. The edges after an attack are in an array such as `edges_meta_0.05`. A graph without features has the identity
    matrix, as in the literature on attacks.
    """
    (path,) = paths
    masks = [f"{part}_mask" for part in _PARTS]
    arrays = read_npz(path, required=("edges", "node_labels", *masks, _TARGETS, *map(_edges_after, ATTACKS)))
    split = {f"{mask}s": arrays[mask] for mask in masks}
    clean = graph_of({**arrays, **split}, path)
    if clean.x is None:
        clean = replace(clean, x=np.eye(len(clean.y), dtype=np.float32))
    targets = mask_of(integers(arrays, _TARGETS, path), len(clean.y), f"array {_TARGETS!r} of {path}")
    on_targets = replace(clean, masks=read_masks({**split, "test_masks": targets}, len(clean.y), path))
    attacks = {
        name: replace(on_targets if name in NETTACK else clean, edges=edges_of(arrays, _edges_after(name), path))
        for name in ATTACKS
    }
    return replace(clean, attacks=attacks)


def _edges_after(attack: str) -> str:
    return f"edges_{attack.replace('-', '_')}"
