"""Number of mixture components of the classes of each data set, and measures with components as labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import MissingDataError
from gumbel_mpnn.data import get_spec, load
from gumbel_mpnn.measures import MEASURES, Decomposition, decompose, measure
from gumbel_mpnn.paper import backbones
from gumbel_mpnn.paper.base import Columns, published
from gumbel_mpnn.paper.page import Analysis
from gumbel_mpnn.paper.paper_numbers import SHARE, PaperNumber
from gumbel_mpnn.report import Row

MEASURED = ("edge_homophily", "adjusted_homophily", "label_informativeness")
DATASETS = (*backbones.DATASETS, "roman-empire", "questions", "amazon-ratings", "ogbn-arxiv")
LARGE = "ogbn-arxiv"
"""Data set with a single seed: on a CPU its 40 classes take longer than all other data sets together."""
PAPERS = 1e-6
"""Default regularization of scikit-learn, which the paper probably used; that of all clusters compared with its own."""
REGULARIZATIONS = (1e-4, PAPERS)
SEEDS = 3


class MixturesTable(Analysis):
    """Classes, components for two regularizations, and the paper's pseudo labels."""

    name = "mixtures"
    title = "Classes as mixtures of neighborhoods"
    headings: Mapping[str, str] = {
        "fewest": "fewest by a seed",
        "most": "most by a seed",
        "per_class": "components per class",
        "bic": "BIC",
        "edge_homophily": "edge homophily",
        "adjusted_homophily": "adjusted homophily",
        "label_informativeness": "label informativeness",
    }
    digits = 3
    datasets = DATASETS

    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """Return rows for the classes, for our components with each regularization, and for the paper."""
        paper = published("mixtures").get(dataset)
        rows: list[Row] = []
        try:
            data = load(dataset, root=root, features=False)
            # The paper counts directions and repeated edges, if the files have them.
            directed = get_spec(dataset).has_directions
            edges = load(dataset, root=root, features=False, directed=True) if directed else data
        except MissingDataError:
            rows.append(_row(dataset, "no data", {}))
        else:
            rows.append(_row(dataset, "classes", {"components": int(data.y.max()) + 1, **_measures(dataset, edges)}))
            for reg_covar in REGULARIZATIONS:
                found = decompose(data, seeds=1 if dataset == LARGE else SEEDS, reg_covar=reg_covar, cache=True)
                values = {**_describe(found), **_measures(dataset, found.relabel(edges))}
                rows.append(_row(dataset, _labels(reg_covar), values))
        return [*rows, *([_row(dataset, "components, paper", paper)] if paper else [])]

    def numbers(self) -> list[PaperNumber]:
        """Return the published row of each data set, to be compared with ours for the regularization `PAPERS`."""
        quantities = {"components": "clusters"} | {
            name: f"{MEASURES[name].heading}, pseudo labels" for name in MEASURED
        }
        return [
            PaperNumber(
                dataset,
                quantities[name],
                value,
                {"dataset": dataset, "labels": _labels(PAPERS)},
                name,
                tolerance=SHARE * abs(value),
            )
            for dataset, values in published("mixtures").items()
            for name, value in values.items()
        ]


def _labels(reg_covar: float) -> str:
    return f"components, {reg_covar:.0e}"


def _measures(dataset: str, data: Data) -> dict[str, int | float | None]:
    return measure(data, MEASURED, "as_listed" if get_spec(dataset).has_directions else "coalesced")


def _describe(found: Decomposition) -> Columns:
    fewest, most = found.spread
    return {
        "components": found.total,
        "fewest": fewest,
        "most": most,
        "per_class": " ".join(map(str, found.num_components)),
        "bic": round(sum(found.bic)),
    }


def _row(dataset: str, labels: str, values: Row) -> Row:
    columns = ("components", "fewest", "most", "per_class", "bic", *MEASURED)
    return {"dataset": dataset, "labels": labels, **{name: values.get(name) for name in columns}}
