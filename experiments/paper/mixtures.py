"""Number of mixture components of the classes of each data set, and measures with components as labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_geometric.data import Data

from experiments.experiment import TUNED_DATASETS, Analysis
from experiments.published import SHARE, PaperNumber, published
from experiments.rows import NO_DATA, Columns, paragraphs
from gumbel_mpnn.data import get_spec, load
from gumbel_mpnn.measures import MEASURES, Decomposition, decompose, measure
from gumbel_mpnn.report import Row
from gumbel_mpnn.util import MissingDataError

MEASURED = ("edge_homophily", "adjusted_homophily", "label_informativeness")
LARGE = "ogbn-arxiv"
"""Data set with a single seed: on a CPU its 40 classes take longer than all other data sets together."""
SEEDS = 3
OURS, PAPERS = "components", "components, paper"


class Mixtures(Analysis):
    """Classes, their components, and the paper's pseudo labels."""

    name = "mixtures"
    title = "Classes as mixtures of neighborhoods"
    headings: Mapping[str, str] = {
        "fewest": "fewest by a seed",
        "most": "most by a seed",
        "per_class": "components per class",
        "bic": "BIC",
        **{name: MEASURES[name].heading for name in MEASURED},
    }
    digits = 3
    datasets = (*TUNED_DATASETS, "roman-empire", "questions", "amazon-ratings", LARGE)

    def rows(self, dataset: str) -> list[Row]:
        """Return rows for the classes, for our components, and for the paper."""
        paper = published("mixtures").get(dataset)
        rows: list[Row] = []
        try:
            data = load(dataset, features=False)
            # The paper counts directions and repeated edges, if the files have them.
            directed = get_spec(dataset).has_directions
            edges = load(dataset, features=False, directed=True) if directed else data
        except MissingDataError:
            rows.append(_row(dataset, NO_DATA, {}))
        else:
            rows.append(_row(dataset, "classes", {"components": int(data.y.max()) + 1, **_measures(dataset, edges)}))
            found = decompose(data, seeds=1 if dataset == LARGE else SEEDS)
            rows.append(_row(dataset, OURS, {**_describe(found), **_measures(dataset, found.relabel(edges))}))
        return [*rows, *([_row(dataset, PAPERS, paper)] if paper else [])]

    def numbers(self) -> list[PaperNumber]:
        """Return the published row of each data set, to be compared with our components."""
        quantities = {"components": "clusters"} | {
            name: f"{MEASURES[name].heading}, pseudo labels" for name in MEASURED
        }
        return [
            PaperNumber(
                dataset,
                quantities[name],
                value,
                {"dataset": dataset, "labels": OURS},
                name,
                tolerance=SHARE * abs(value),
            )
            for dataset, values in published("mixtures").items()
            for name, value in values.items()
        ]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return the rows of the data sets that are here, without the components of each class and the BIC."""
        missing = {row["dataset"] for row in rows if row["labels"] == NO_DATA}
        left_out = ("per_class", "bic")
        lines = [
            {name: value for name, value in row.items() if name not in left_out}
            for row in rows
            if row["dataset"] not in missing
        ]
        return paragraphs(
            "Rows called components are ours; the paper's are below them.",
            self.table(lines).render("markdown"),
        )


def _measures(dataset: str, data: Data) -> dict[str, int | float | None]:
    return measure(data, MEASURED, "as_listed" if get_spec(dataset).has_directions else "coalesced")


def _describe(found: Decomposition) -> Columns:
    return {
        "components": found.total,
        "fewest": min(found.totals),
        "most": max(found.totals),
        "per_class": " ".join(map(str, found.num_components)),
        "bic": round(sum(found.bic)),
    }


def _row(dataset: str, labels: str, values: Row) -> Row:
    columns = ("components", "fewest", "most", "per_class", "bic", *MEASURED)
    return {"dataset": dataset, "labels": labels, **{name: values.get(name) for name in columns}}
