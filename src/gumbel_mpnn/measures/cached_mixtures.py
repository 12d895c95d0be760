"""An on-disk cache of mixtures: the search is deterministic and takes up to minutes."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from gumbel_mpnn._util import content_cache
from gumbel_mpnn._util.content_cache import add_tensor
from gumbel_mpnn.measures.expectation import FloatArray
from gumbel_mpnn.measures.mixture_search import Mixture, SearchOptions, best_mixture

SCHEMA = 1
"""Increase this number when the search changes its results, so that old files are not used."""
NAMES = {"weights", "means", "covariances", "component", "tried", "bic"}


def cached_mixture(rows: FloatArray, seed: int, options: SearchOptions) -> Mixture:
    """`best_mixture`, cached on disk by its arguments."""
    digest = hashlib.sha256(f"{SCHEMA} {seed} {options}".encode())
    add_tensor(digest, "rows", torch.from_numpy(rows))
    path = content_cache.place("mixtures", digest.hexdigest())
    found = None if path is None else _unpack(content_cache.read(path), len(rows))
    if found is None:
        found = best_mixture(rows, seed, options)
        if path is not None:
            content_cache.write(path, _pack(found))
    return found


def _pack(mixture: Mixture) -> content_cache.Arrays:
    return {
        "weights": mixture.weights,
        "means": mixture.means,
        "covariances": mixture.covariances,
        "component": mixture.component,
        "tried": np.array(list(mixture.bic_by_components)),
        "bic": np.array(list(mixture.bic_by_components.values())),
    }


def _unpack(arrays: content_cache.Arrays | None, num_rows: int) -> Mixture | None:
    """The cached mixture; None if there is none for this number of rows."""
    if arrays is None or not arrays.keys() >= NAMES or arrays["component"].shape != (num_rows,):
        return None
    scores = dict(zip(arrays["tried"].tolist(), arrays["bic"].tolist(), strict=True))
    return Mixture(
        weights=arrays["weights"],
        means=arrays["means"],
        covariances=arrays["covariances"],
        component=arrays["component"],
        bic=min(scores.values()),
        bic_by_components=scores,
    )
