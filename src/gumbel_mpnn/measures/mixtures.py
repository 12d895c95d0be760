"""Classes taken apart by what surrounds their nodes: a Gaussian mixture per class, its components as pseudo labels."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError, check_whole
from gumbel_mpnn.measures.edges import class_count, labels_of
from gumbel_mpnn.measures.kept_mixtures import kept_mixture
from gumbel_mpnn.measures.mixture_search import Mixture, SearchOptions, best_mixture
from gumbel_mpnn.measures.neighborhoods import neighborhood_distributions


@dataclass(frozen=True)
class Decomposition:
    """The components of every class, and which of them each node belongs to.

    C classes have Q components in all, numbered class by class. A class without nodes has none.
    """

    pseudo_labels: Tensor
    """The component of each node, [N]; -1 where it has no label."""
    class_of: Tensor
    """The class of each component, [Q], in ascending order: the map back from pseudo labels to labels."""
    mixtures: tuple[Mixture | None, ...]
    """The mixture of each class."""
    seeds: tuple[int, ...]
    """The seeds that were tried; each class keeps the mixture with the lowest BIC of all."""
    components_by_seed: Tensor = field(repr=False)
    """Number of components that each seed found for each class, [S, C]."""
    bic_by_seed: Tensor = field(repr=False)
    """The BIC that each seed found for each class, [S, C]; 0 for a class without nodes."""

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
        """Number of components of all classes, Q: the paper's "number of clusters"."""
        return len(self.class_of)

    @property
    def spread(self) -> tuple[int, int]:
        """The smallest and the largest total that a single seed gave."""
        totals = self.components_by_seed.sum(1)
        return int(totals.min()), int(totals.max())

    def relabel(self, data: Data) -> Data:
        """A copy of `data` whose labels `y` are the pseudo labels, for any measure of labels."""
        if data.num_nodes != len(self.pseudo_labels):
            raise DataError(f"this graph has {data.num_nodes} nodes, the decomposed one had {len(self.pseudo_labels)}")
        relabelled = copy.copy(data)
        relabelled.y = self.pseudo_labels.to(data.y.device)
        return relabelled


def decompose(
    data: Data,
    *,
    seeds: int | Iterable[int] = 3,
    own_label: bool = True,
    max_components: int = 25,
    starts: int = 5,
    reg_covar: float = 1e-4,
    tol: float = 1e-3,
    patience: int = 8,
    keep: bool = False,
) -> Decomposition:
    """Split every class into the components of its neighborhood distributions (the paper's appendix on clustering).

    A Gaussian mixture with full covariances is fitted to the distributions of each class; the number of components is
    the one with the lowest BIC, and each node goes to its likeliest component. All labels are used. To keep those of
    validation and test nodes out, set them to -1 first: such nodes are neither counted nor given a component.

    Many nodes of sparse graphs have the very same distribution. A component can then shrink onto one point, where its
    likelihood is bounded by `reg_covar` alone: the smaller that is, the more components BIC finds. The default is a
    standard deviation of one per cent; scikit-learn's 1e-6 gives the paper's numbers more nearly and less stably.

    Args:
        data: A graph with labels `y` [N], -1 for unknown.
        seeds: How many seeds, or which. Each class keeps the best mixture; `spread` says how far the seeds differ.
        own_label: Count a node itself among its neighbors, as the paper's figures do. Without it, a node with nothing
            around it has a row of zeros, which is a point like any other.
        max_components: The largest number of components for a class.
        starts: EM runs followed to their end for each number of components.
        reg_covar: Added to the diagonal of every covariance.
        tol: EM ends when the mean log likelihood gains less than this.
        patience: The search ends when this many further components have not lowered BIC.
        keep: Keep the mixtures in the user's cache folder, and take those that were found there before.
    """
    from threadpoolctl import threadpool_limits

    chosen = _seeds(seeds)
    options = SearchOptions(max_components, starts, reg_covar, tol, patience)
    y, rows = labels_of(data), neighborhood_distributions(data, own_label)
    if not class_count(y):
        raise DataError("the graph has no labelled nodes: there is no class to decompose")
    groups = [(y == label).nonzero().squeeze(1) for label in range(class_count(y))]
    with threadpool_limits(1, user_api="blas"):  # for products this small, threads only wait for each other
        found = [[_mixture(rows[group], seed, options, keep) for group in groups] for seed in chosen]
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
    """The seeds that `decompose` was asked for by number or by name."""
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


def _mixture(rows: Tensor, seed: int, options: SearchOptions, keep: bool) -> Mixture | None:
    search = kept_mixture if keep else best_mixture
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
