"""The lower bound of the paper's theorem on how near two nodes of one class can be embedded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn.measures.edges import class_count, labels_of
from gumbel_mpnn.measures.neighborhoods import neighborhood_distributions


@dataclass(frozen=True, eq=False)
class TheoremBound:
    """Lower bounds on E‖h_i - h_j‖ for some pairs of nodes, from weak to strong: `bound` ≤ `class_bound` ≤ `image`.

    The expectation is over features drawn anew for every node from the distribution of its class, on this graph.
    """

    pairs: Tensor
    """int64 [2, K], the nodes i and j."""
    weight: Tensor
    """float64 [h, d], the layer's matrix W."""
    difference: Tensor
    """float64 [K, d], expected neighbor features of i less those of j."""
    class_differences: Tensor
    """float64 [C, d], the class means less their mean: every difference is a combination of them."""

    @cached_property
    def sigma_min(self) -> float:
        """The smallest singular value of W on all of R^d: 0 if W has fewer rows than columns."""
        out_channels, in_channels = self.weight.shape
        return float(torch.linalg.svdvals(self.weight)[-1]) if out_channels >= in_channels else 0.0

    @cached_property
    def class_sigma_min(self) -> float:
        """The smallest singular value of W on the span of the differences of class means."""
        _, size, basis = torch.linalg.svd(self.class_differences, full_matrices=False)
        basis = basis[size > _rounding(self.class_differences)]
        if len(basis) == 0 or len(basis) > len(self.weight):
            return 0.0
        return float(torch.linalg.svdvals(self.weight @ basis.T)[-1])

    @property
    def distance(self) -> Tensor:
        """Distance of the expected neighbor features, [K]."""
        return _lengths(self.difference)

    @property
    def bound(self) -> Tensor:
        """The theorem as printed: σ_min(W) times the distance, [K]."""
        return self.sigma_min * self.distance

    @property
    def class_bound(self) -> Tensor:
        """The same with the smallest singular value that can matter, `class_sigma_min`, [K]."""
        return self.class_sigma_min * self.distance

    @property
    def image(self) -> Tensor:
        """Distance of the expected embeddings, the line of the proof before σ_min comes in, [K]."""
        return _lengths(self.difference @ self.weight.T)

    @property
    def is_vacuous(self) -> bool:
        """Whether σ_min(W) is 0, so that the theorem says no more than that a distance is not negative."""
        return self.sigma_min <= _rounding(self.weight)

    @property
    def remark(self) -> str:
        """What the bound is worth on this layer, in a sentence or two."""
        out_channels, in_channels = self.weight.shape
        pairs = f"in the mean over {len(self.distance)} pairs, whose expected embeddings are {_mean(self.image)} apart"
        if not self.is_vacuous:
            return f"the theorem's bound is {_mean(self.bound)} {pairs}"
        why = f"W has not full rank as a map of {in_channels} features"
        if out_channels < in_channels:
            why = f"W maps {in_channels} features to {out_channels} channels and so takes some direction to 0"
        return (
            f"the theorem's bound is vacuous: {why}, its smallest singular value is 0; "
            f"on the span of the class means it is {self.class_sigma_min:.4g} and the bound {_mean(self.class_bound)} "
            f"{pairs}"
        )

    def __str__(self) -> str:
        return self.remark


def theorem_bound(
    data: Data,
    weight: Tensor | NDArray[np.floating[Any]] | torch.nn.Module,
    pairs: Tensor | None = None,
    own_label: bool = False,
    class_means: Tensor | NDArray[np.floating[Any]] | None = None,
    samples: int = 1000,
    seed: int = 0,
) -> TheoremBound:
    """The bound E‖h_i - h_j‖ ≥ σ_min(W) ‖E[x | D_i] - E[x | D_j]‖ of the paper's theorem on a graph and a layer.

    The layer of the theorem is h_i = W · mean of x over the neighbors of i, without an activation. Given the graph and
    its labels, D_i is the label distribution around i, and the bound holds for features drawn independently from the
    distributions of their classes.

    Args:
        data: A graph with labels `y` and, unless `class_means` are given, features `x` [N, d]. Neighbors without a
            label are left out, as in `neighborhood_distributions`.
        weight: W [h, d], or a linear layer; PyG's layers keep theirs in `.lin`.
        pairs: Nodes i and j of one class, int64 [2, K]; None draws `samples` of them.
        own_label: Whether the layer takes the mean over the node itself too.
        class_means: E[x | class], [C, d]; estimated from the labelled nodes by default.
        samples: How many pairs to draw.
        seed: Of the drawing.
    """
    y = labels_of(data)
    rows = neighborhood_distributions(data, own_label)
    means = _class_means(data, y) if class_means is None else _matrix(class_means)
    matrix = _matrix(_weight_of(weight) if isinstance(weight, torch.nn.Module) else weight)
    if matrix.dim() != 2 or means.dim() != 2 or means.shape != (rows.shape[1], matrix.shape[1]):
        raise UserError(
            f"a weight [h, {means.shape[-1]}] and class means [{rows.shape[1]}, d] belong to this graph, not "
            f"{list(matrix.shape)} and {list(means.shape)}"
        )
    with_neighbors = (y >= 0) & (rows.sum(1) > 0)
    chosen = _same_class_pairs(y, with_neighbors, samples, seed) if pairs is None else torch.as_tensor(pairs).cpu()
    _check_pairs(chosen, y, with_neighbors)
    first, second = chosen
    return TheoremBound(chosen, matrix, (rows[first] - rows[second]) @ means, means - means.mean(0))


def _weight_of(layer: torch.nn.Module) -> Tensor:
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor):
        raise UserError(f"{type(layer).__name__} has no weight matrix: give W, or a linear layer such as its .lin")
    return weight


def _matrix(values: object) -> Tensor:
    return torch.as_tensor(values).detach().cpu().double()


def _class_means(data: Data, y: Tensor) -> Tensor:
    """Mean features of the labelled nodes of each class, [C, d]."""
    x = data.get("x")
    if x is None:
        raise DataError("the graph has no features x: give them, or class_means")
    dense = (x.to_dense() if x.layout != torch.strided else x).detach().cpu().double()
    labelled = y >= 0
    total = torch.zeros(class_count(y), dense.shape[1], dtype=torch.float64).index_add_(0, y[labelled], dense[labelled])
    return total / y[labelled].bincount().clamp(min=1)[:, None]


def _same_class_pairs(y: Tensor, usable: Tensor, samples: int, seed: int) -> Tensor:
    """`samples` pairs of different usable nodes of one class: the first uniform, the second uniform in its class."""
    size = y[usable].bincount(minlength=max(class_count(y), 1))
    usable = usable & (size[y.clamp(min=0)] > 1)
    nodes = usable.nonzero().squeeze(1)[y[usable].argsort(stable=True)]
    if len(nodes) == 0 or samples < 1:
        raise DataError(f"there are no {samples} pairs of nodes that share a label and both have a labelled neighbor")
    size = y[nodes].bincount()
    begin = size.cumsum(0) - size
    generator = torch.Generator().manual_seed(seed)
    place = torch.randint(len(nodes), (samples,), generator=generator)
    label = y[nodes[place]]
    step = 1 + (torch.rand(samples, generator=generator, dtype=torch.float64) * (size[label] - 1)).long()
    other = begin[label] + (place - begin[label] + step) % size[label]
    return torch.stack([nodes[place], nodes[other]])


def _check_pairs(pairs: Tensor, y: Tensor, usable: Tensor) -> None:
    if pairs.dim() != 2 or len(pairs) != 2 or pairs.is_floating_point() or pairs.shape[1] == 0:
        raise UserError(f"pairs must be integers of shape [2, K], not {pairs.dtype} {list(pairs.shape)}")
    if not 0 <= int(pairs.min()) <= int(pairs.max()) < len(y):
        raise UserError(f"pairs name the nodes {int(pairs.min())} to {int(pairs.max())} of {len(y)}")
    if bool((y[pairs[0]] != y[pairs[1]]).any()) or not bool(usable[pairs].all()):
        raise UserError("the theorem is about pairs of nodes with the same label that both have a labelled neighbor")


def _rounding(matrix: Tensor) -> float:
    """What a singular value of `matrix` may be by rounding alone."""
    return float(torch.linalg.matrix_norm(matrix, 2)) * max(matrix.shape) * torch.finfo(matrix.dtype).eps


def _lengths(rows: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths


def _mean(values: Tensor) -> str:
    return f"{float(values.mean()):.4g}"
