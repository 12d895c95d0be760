"""Positions of nodes in the leading directions of their features, where similar words count as similar."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

DIMENSIONS = 32
SPARE = 8
"""Directions that are searched beyond those that are wanted, so that these are found sooner."""
ROUNDS = 4
"""Rounds of the search for the directions, which are approximate: with 30 rounds, half of the candidates on cora,
citeseer and chameleon would be others."""
COUNTS = 0.25
"""Features that are 0 or more, and not 0 for at most this share of the entries, are taken for counts of words."""
DIGITS = 6
"""Decimal digits that are kept, so that nodes with the same features are exactly equally similar."""

Matrix = NDArray[np.float64]


def latent_positions(x: Tensor, dimensions: int = DIMENSIONS) -> Tensor:
    """Coordinates of length 1 in about the leading singular directions of centered features, float32 [N, dimensions].

    Counts of words are weighted first, by log(1 + count) · log(N / n) for a word that n nodes have. Nodes without
    features are at 0, and features that fewer than two nodes have are left out, since they make no two nodes similar.
    If there are fewer nodes or features than dimensions, the other columns are 0. Computed on the CPU in double
    precision; labels and edges are not used.

    Args:
        x: Features [N, F].
        dimensions: Number of directions.
    """
    if x.numel() == 0:
        return torch.zeros(len(x), dimensions, device=x.device)
    features = _weighted(_as_matrix(x))
    features = features / max(abs(features).max(), 1e-300)  # so that squares do not overflow
    features = features[:, np.asarray((features != 0).sum(0)).ravel() > 1]
    nodes, columns = features.shape
    count, out = min(dimensions, nodes, columns), torch.zeros(nodes, dimensions, device=x.device)
    if count == 0:
        return out
    centered = _Centered(features)
    directions = np.random.default_rng(0).normal(size=(columns, min(count + SPARE, nodes, columns)))
    for _ in range(ROUNDS):
        directions = np.linalg.qr(centered.transposed(centered.times(directions)))[0]
    positions = centered.times(directions)
    order = np.linalg.eigh(positions.T @ positions)[1][:, ::-1]
    found = positions @ order[:, :count]
    length = np.linalg.norm(found, axis=1, keepdims=True)
    unit = np.divide(found, length, out=np.zeros_like(found), where=length > 10.0**-DIGITS)
    out[:, :count] = torch.from_numpy(unit.round(DIGITS)).float().to(x.device)
    return out


def in_each_graph(x: Tensor, batch: Tensor | None) -> Tensor:
    """Latent positions in each graph of a sorted batch by itself, float32 [N, DIMENSIONS]."""
    sizes = [len(x)] if batch is None else batch.bincount().tolist()
    return torch.cat([latent_positions(part) for part in x.split(sizes)])


class _Centered:
    """Features minus their means, in rows of length 1; those of sparse features are never an array."""

    def __init__(self, features: Any) -> None:
        mean = np.asarray(features.mean(0)).ravel()
        if isinstance(features, np.ndarray):
            features, mean, given = features - mean, np.zeros_like(mean), (features != 0).any(1)
        else:
            given = np.diff(features.indptr) > 0
        square = np.asarray((features * features).sum(1)).ravel()
        length = np.sqrt(np.maximum(square - 2 * (features @ mean) + mean @ mean, 0))
        counts = given & (length > 1e-9 * length.max())
        self.features, self.mean = features, mean
        self.scale = np.divide(1.0, length, out=np.zeros_like(length), where=counts)[:, None]

    def times(self, other: Matrix) -> Matrix:
        """Product with a matrix [F, K]."""
        result: Matrix = self.scale * (self.features @ other - self.mean @ other)
        return result

    def transposed(self, other: Matrix) -> Matrix:
        """Product of the transpose with a matrix [N, K]."""
        scaled = self.scale * other
        result: Matrix = self.features.T @ scaled - np.outer(self.mean, scaled.sum(0))
        return result


def _as_matrix(x: Tensor) -> Any:
    """Features as a sparse array, or as a dense one if most of their entries are not 0."""
    from scipy.sparse import csr_array

    values = x.detach().cpu().numpy()
    is_sparse = np.count_nonzero(values) < values.size / 2
    return csr_array(values).astype(np.float64) if is_sparse else values.astype(np.float64)


def _weighted(features: Any) -> Any:
    """Counts of words by log(1 + count) and how rare the word is; other features as they are."""
    from scipy.sparse import csr_array, issparse

    if not issparse(features) or features.nnz > COUNTS * features.shape[0] * features.shape[1] or features.min() < 0:
        return features
    have = np.asarray((features != 0).sum(0)).ravel()
    weight = np.log(features.shape[0] / np.maximum(have, 1))
    return csr_array(features.log1p() * weight[None, :])
