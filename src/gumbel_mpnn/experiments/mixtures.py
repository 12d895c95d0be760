"""How many components the classes of each data set have, and what the measures say of them as labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec, load
from gumbel_mpnn.errors import MissingDataError
from gumbel_mpnn.experiments.backbones import DATASETS
from gumbel_mpnn.experiments.base import Row, published
from gumbel_mpnn.measures import Decomposition, decompose, measure

MEASURED = ("edge_homophily", "adjusted_homophily", "label_informativeness")
REGULARIZATIONS = (1e-4, 1e-6)
"""Ours, and scikit-learn's default, which the paper is likely to have used."""
SEEDS = 3


class MixturesTable:
    """The labels as they are, split into components by two regularizations, and the paper's pseudo labels."""

    name = "mixtures"
    title = "Classes as mixtures of neighborhoods"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        "fewest": "fewest by a seed",
        "most": "most by a seed",
        "per_class": "components per class",
        "bic": "BIC",
        "edge_homophily": "edge homophily",
        "adjusted_homophily": "adjusted homophily",
        "label_informativeness": "label informativeness",
    }
    digits = 3

    def datasets(self) -> list[str]:
        """The data sets that come with labels and edges."""
        return list(DATASETS)

    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """The labels, ours for each regularization, and the paper's."""
        paper = published("mixtures").get(dataset)
        rows: list[Row] = []
        try:
            data = load(dataset, root=root, features=False)
            edges = _as_the_paper_counts(dataset, data, root)
        except MissingDataError:
            rows.append(_row(dataset, "no data", {}))
        else:
            rows.append(_row(dataset, "classes", {"components": int(data.y.max()) + 1, **_measures(dataset, edges)}))
            for reg_covar in REGULARIZATIONS:
                found = decompose(data, seeds=SEEDS, reg_covar=reg_covar)
                values = {**_describe(found), **_measures(dataset, found.relabel(edges))}
                rows.append(_row(dataset, f"components, {reg_covar:.0e}", values))
        return [*rows, *([_row(dataset, "components, paper", paper)] if paper else [])]


def _as_the_paper_counts(dataset: str, data: Data, root: Path | None) -> Data:
    """The graph whose edges the measures count: with their directions and repetitions, where the files have them."""
    return load(dataset, root=root, features=False, directed=True) if get_spec(dataset).has_directions else data


def _measures(dataset: str, data: Data) -> dict[str, int | float | None]:
    return measure(data, MEASURED, "as_listed" if get_spec(dataset).has_directions else "coalesced")


def _describe(found: Decomposition) -> dict[str, str | int | float | None]:
    fewest, most = found.spread
    return {
        "components": found.total,
        "fewest": fewest,
        "most": most,
        "per_class": " ".join(map(str, found.num_components)),
        "bic": round(sum(found.bic)),
    }


def _row(dataset: str, labels: str, values: Mapping[str, str | int | float | None]) -> Row:
    columns = ("components", "fewest", "most", "per_class", "bic", *MEASURED)
    return {"dataset": dataset, "labels": labels, **{name: values.get(name) for name in columns}}
