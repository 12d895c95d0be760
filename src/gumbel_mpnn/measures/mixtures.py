"""Decomposition of classes by their neighborhood distributions: a Gaussian mixture per class gives pseudo labels."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.edges import class_count, labels_of
from gumbel_mpnn.measures.expectation import FloatArray
from gumbel_mpnn.measures.mixture_search import Mixture, SearchOptions, best_mixture
from gumbel_mpnn.measures.neighborhoods import neighborhood_distributions
from gumbel_mpnn.util import content_cache
from gumbel_mpnn.util.errors import DataError, UserError, check_whole
from gumbel_mpnn.util.tensors import add_tensor

SCHEMA = 1
"""Increase this number when the search changes its results, so that old files are not used."""
NAMES = {"weights", "means", "covariances", "component", "tried", "bic"}


@dataclass(frozen=True)
class Decomposition:
    """Components of every class, and the component of each node.

    The C classes have Q components in total, numbered class by class. A class without nodes has none.
    """

    pseudo_labels: Tensor
    """Component of each node, [N]; -1 for unlabelled nodes."""
    class_of: Tensor
    """Class of each component, [Q], in ascending order; maps pseudo labels back to labels."""
    mixtures: tuple[Mixture | None, ...]
    """Mixture of each class; None for a class without nodes."""
    seeds: tuple[int, ...]
    """Seeds of the search; the mixture of each class is the one with the lowest BIC."""
    components_by_seed: Tensor = field(repr=False)
    """Number of components of each class found with each seed, [S, C]."""
    bic_by_seed: Tensor = field(repr=False)
    """BIC of each class found with each seed, [S, C]; 0 for a class without nodes."""

    @property
    def num_components(self) -> list[int]:
        """Number of components of each class."""
        return [_size(mixture) for mixture in self.mixtures]

    @property
    def bic(self) -> list[float]:
        """Bayesian information criterion of each class, lower is better; 0 for a class without nodes."""
        return [_bic(mixture) for mixture in self.mixtures]

    @property
    def total(self) -> int:
        """Total number of components, Q: the paper's "number of clusters"."""
        return len(self.class_of)

    @property
    def spread(self) -> tuple[int, int]:
        """Minimum and maximum total over the seeds."""
        totals = self.components_by_seed.sum(1)
        return int(totals.min()), int(totals.max())

    def relabel(self, data: Data) -> Data:
        """Copy of `data` with the pseudo labels as `y`, for use with other measures."""
        if data.num_nodes != len(self.pseudo_labels):
            raise DataError(
                f"this graph has {data.num_nodes} nodes, but the decomposed graph has {len(self.pseudo_labels)}"
            )
        relabelled = copy.copy(data)
        relabelled.y = self.pseudo_labels.to(data.y.device)
        return relabelled


def decompose(
    data: Data,
    *,
    seeds: int | Iterable[int] = 3,
    own_label: bool = True,
    directed: bool = False,
    max_components: int = 25,
    starts: int = 5,
    reg_covar: float = 1e-4,
    tol: float = 1e-3,
    patience: int = 8,
    cache: bool = False,
) -> Decomposition:
    """Split every class into the components of its neighborhood distributions (the paper's appendix on clustering).

    A Gaussian mixture with full covariances is fitted to the distributions of each class. The number of components is
    the one with the lowest BIC, and each node is assigned to its most likely component. All labels are used. To exclude
    the labels of validation and test nodes, set them to -1 first: such nodes are not counted and get no component.

    In sparse graphs many nodes have exactly the same distribution. A component can then collapse to one point, where
    its likelihood is bounded by `reg_covar` only: the smaller it is, the more components BIC finds. The default is a
    standard deviation of one per cent. scikit-learn's 1e-6 gives numbers closer to the paper's, but less stable ones.

    Args:
        data: A graph with labels `y` [N], -1 for unknown.
        seeds: Number of seeds, or the seeds. The best mixture of each class is used; `spread` is the range over seeds.
        own_label: Count a node itself among its neighbors, as the paper's figures do. Otherwise a node without
            neighbors has a row of zeros.
        directed: Whether only edges to a node make neighbors of it.
        max_components: Maximum number of components of a class.
        starts: Number of EM runs until convergence for each number of components.
        reg_covar: Added to the diagonal of every covariance.
        tol: EM stops when the mean log likelihood increases by less than this.
        patience: The search stops when this many additional components have not lowered BIC.
        cache: Cache the mixtures on disk, in the user's cache folder.
    """
    from threadpoolctl import threadpool_limits

    chosen = _seeds(seeds)
    options = SearchOptions(max_components, starts, reg_covar, tol, patience)
    y, rows = labels_of(data), neighborhood_distributions(data, own_label, directed)
    if not class_count(y):
        raise DataError("the graph has no labelled nodes: there is no class to decompose")
    groups = [(y == label).nonzero().squeeze(1) for label in range(class_count(y))]
    with threadpool_limits(1, user_api="blas"):  # threads do not pay off for products this small
        found = [[_mixture(rows[group], seed, options, cache) for group in groups] for seed in chosen]
    mixtures = tuple(min(tried, key=_bic) for tried in zip(*found, strict=True))
    return Decomposition(
        pseudo_labels=_pseudo_labels(y, groups, mixtures),
        class_of=torch.repeat_interleave(torch.tensor([_size(mixture) for mixture in mixtures])),
        mixtures=mixtures,
        seeds=chosen,
        components_by_seed=torch.tensor([[_size(mixture) for mixture in row] for row in found]),
        bic_by_seed=torch.tensor([[_bic(mixture) for mixture in row] for row in found], dtype=torch.float64),
    )


def _seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds of `decompose`, given as a number of seeds or as a list."""
    if isinstance(seeds, Iterable):
        chosen = tuple(seeds)
        for seed in chosen:
            check_whole(seeds=seed)
    else:
        check_whole(seeds=seeds)
        chosen = tuple(range(seeds))
    if not chosen or min(chosen) < 0:
        raise UserError(f"decomposing needs at least one seed, 0 or more, not {seeds!r}")
    return tuple(int(seed) for seed in chosen)


def _mixture(rows: Tensor, seed: int, options: SearchOptions, cache: bool) -> Mixture | None:
    search = cached_mixture if cache else best_mixture
    return search(rows.numpy(), seed, options) if len(rows) else None


def _size(mixture: Mixture | None) -> int:
    return 0 if mixture is None else len(mixture.weights)


def _bic(mixture: Mixture | None) -> float:
    return 0.0 if mixture is None else mixture.bic


def _pseudo_labels(y: Tensor, groups: list[Tensor], mixtures: tuple[Mixture | None, ...]) -> Tensor:
    labels, first = torch.full_like(y, -1), 0
    for group, mixture in zip(groups, mixtures, strict=True):
        if mixture is not None:
            labels[group] = first + torch.from_numpy(mixture.component)
            first += _size(mixture)
    return labels


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
