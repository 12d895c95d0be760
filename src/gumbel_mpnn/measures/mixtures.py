"""Decomposition of classes by their neighborhood distributions: a Gaussian mixture per class gives pseudo labels."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.measures.neighborhoods import neighborhood_distributions
from gumbel_mpnn.measures.structure import class_count, labels_of
from gumbel_mpnn.util.errors import DataError, UserError, check_at_least, whole_numbers

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture


@dataclass(frozen=True)
class Decomposition:
    """Components of every class, and the component of each node.

    The C classes have Q components in total, numbered class by class. A class without nodes has none.
    """

    pseudo_labels: Tensor
    """Component of each node, [N]; -1 for unlabelled nodes."""
    class_of: Tensor
    """Class of each component, [Q], in ascending order; maps pseudo labels back to labels."""
    mixtures: tuple[GaussianMixture | None, ...]
    """Fitted `sklearn.mixture.GaussianMixture` of each class; None for a class without nodes."""
    bic: tuple[float, ...]
    """Bayesian information criterion of the mixture of each class, lower is better; 0 for a class without nodes."""
    totals: tuple[int, ...]
    """Total number of components that each seed finds by itself."""

    @property
    def num_components(self) -> list[int]:
        """Number of components of each class."""
        return [0 if mixture is None else int(mixture.n_components) for mixture in self.mixtures]

    @property
    def total(self) -> int:
        """Total number of components, Q: the paper's "number of clusters"."""
        return len(self.class_of)

    def relabel(self, data: Data) -> Data:
        """Copy of `data` with the pseudo labels as `y`, for use with other measures."""
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
    reg_covar: float = 1e-6,
) -> Decomposition:
    """Split every class into the components of its neighborhood distributions (the paper's appendix on clustering).

    A Gaussian mixture with full covariances (scikit-learn's `GaussianMixture`) is fitted to the distributions of each
    class. The number of components is the one with the lowest BIC, and each node is assigned to its most likely
    component. All labels are used. To exclude the labels of validation and test nodes, set them to -1 first: such nodes
    are not counted and get no component.

    In sparse graphs many nodes have exactly the same distribution. A component can then collapse to one point, where
    its likelihood is bounded by `reg_covar` only: the smaller it is, the more components BIC finds. The default is
    scikit-learn's; numbers of components differ between seeds, by a tenth and more.

    Args:
        data: A graph with labels `y` [N], -1 for unknown.
        seeds: Number of seeds, or the seeds. The best mixture of each class over all of them is used.
        own_label: Count a node itself among its neighbors, as the paper's figures do. Otherwise a node without
            neighbors has a row of zeros.
        directed: Whether only edges to a node make neighbors of it.
        max_components: Maximum number of components of a class.
        reg_covar: Added to the diagonal of every covariance.
    """
    from threadpoolctl import threadpool_limits

    chosen = list(range(seeds)) if isinstance(seeds, int) else whole_numbers("seeds", seeds)
    if not chosen or min(chosen) < 0:
        raise UserError(f"decomposing needs at least one seed, 0 or more, not {seeds!r}")
    check_at_least(1, max_components=max_components)
    y, rows = labels_of(data), neighborhood_distributions(data, own_label, directed).numpy()
    if not class_count(y):
        raise DataError("the graph has no labelled nodes: there is no class to decompose")
    pseudo_labels, class_of, totals = torch.full_like(y, -1), list[int](), [0] * len(chosen)
    best: list[tuple[float, GaussianMixture | None]] = [(0.0, None)] * class_count(y)
    for label in np.unique(y[y >= 0]).tolist():
        nodes = np.flatnonzero(y == label)
        with threadpool_limits(1, user_api="blas"):  # threads do not pay off for products this small
            found = [_best_mixture(rows[nodes], max_components, reg_covar, seed) for seed in chosen]
        totals = [total + mixture.n_components for total, (_, mixture) in zip(totals, found, strict=True)]
        best[label] = _, mixture = min(found, key=itemgetter(0))
        pseudo_labels[nodes] = len(class_of) + torch.from_numpy(mixture.predict(rows[nodes]))
        class_of += [label] * mixture.n_components
    bic, mixtures = zip(*best, strict=True)
    return Decomposition(pseudo_labels, torch.tensor(class_of), mixtures, bic, tuple(totals))


def _best_mixture(
    rows: NDArray[np.float64], max_components: int, reg_covar: float, seed: int
) -> tuple[float, GaussianMixture]:
    """The mixture of `rows` [n, C] with the lowest BIC, which comes first, of those with 1 to `max_components`."""
    from sklearn.mixture import GaussianMixture

    if len(rows) == 1:
        rows = rows.repeat(2, axis=0)  # scikit-learn fits two rows and more
    most = min(max_components, len(np.unique(rows, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a mixture with too many components does not converge
        fitted = [GaussianMixture(k, reg_covar=reg_covar, random_state=seed).fit(rows) for k in range(1, most + 1)]
        scored = [(float(mixture.bic(rows)), mixture) for mixture in fitted]
    return min(scored, key=itemgetter(0))
