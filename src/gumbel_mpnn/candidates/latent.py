"""Positions of nodes in the leading directions of their features, where similar words count as similar."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gumbel_mpnn._util.sparse_tensors import coalesced

DIMENSIONS = 32
SPARE = 8
"""Directions that are searched beyond those that are wanted, so that these are found sooner."""
ROUNDS = 4
"""Rounds of the search; candidates hardly change with more."""
COUNTS = 0.25
"""Features that are 0 or more, and not 0 for at most this share of the entries, are taken for counts of words."""
DIGITS = 6
"""Decimal digits that are kept, so that nodes with the same features are exactly equally similar."""

Matrix = NDArray[np.float64]


def latent_positions(x: Tensor, dimensions: int = DIMENSIONS) -> Tensor:
    """Coordinates of length 1 in the leading singular directions of centered features, float32 [N, dimensions].

    Counts of words are weighted first, by log(1 + count) · log(N / n) for a word that n nodes have. Nodes without
    features are at 0, and features that fewer than two nodes have are left out, since they make no two nodes similar.
    Columns are 0 if there are fewer nodes or features. Computed on the CPU in double precision; labels and edges are
    not used.

    Args:
        x: Features [N, F], dense or sparse.
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
    """Latent positions of the nodes of each graph of a batch by themselves, float32 [N, DIMENSIONS]."""
    if batch is None:
        return latent_positions(x)
    out = torch.zeros(len(x), DIMENSIONS, device=x.device)
    for graph in batch.unique():
        out[batch == graph] = latent_positions(x[batch == graph])
    return out


class _Centered:
    """Features minus their means, in rows of length 1, without an array of them."""

    def __init__(self, features: Any) -> None:
        self.mean = np.asarray(features.mean(0)).ravel()
        square = np.asarray((features * features).sum(1)).ravel()
        length = np.sqrt(np.maximum(square - 2 * (features @ self.mean) + self.mean @ self.mean, 0))
        counts = (square > 0) & (length > 1e-9 * max(length.max(), 1e-300))
        self.scale = np.divide(1.0, length, out=np.zeros_like(length), where=counts)[:, None]
        self.features = features

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
    from scipy.sparse import coo_array, csr_array

    x = x.detach().cpu()
    if x.layout is not torch.strided:
        x = coalesced(x)
        return coo_array((x.values().double().numpy(), x.indices().numpy()), shape=tuple(x.shape)).tocsr()
    dense = x.double().numpy()
    return csr_array(dense) if np.count_nonzero(dense) < dense.size / 2 else dense


def _weighted(features: Any) -> Any:
    """Counts of words by log(1 + count) and how rare the word is; other features as they are."""
    from scipy.sparse import csr_array, issparse

    if not issparse(features) or features.nnz > COUNTS * features.shape[0] * features.shape[1] or features.min() < 0:
        return features
    have = np.asarray((features != 0).sum(0)).ravel()
    weight = np.log(features.shape[0] / np.maximum(have, 1))
    return csr_array(features.log1p() * weight[None, :])
