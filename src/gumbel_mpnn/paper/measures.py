"""The paper's tables of measures (homophily, label informativeness, std per class, degrees), ours beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gumbel_mpnn._util.errors import MissingDataError
from gumbel_mpnn.data import get_spec, load
from gumbel_mpnn.measures import MEASURES, measure
from gumbel_mpnn.paper.base import published
from gumbel_mpnn.paper.page import Analysis
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.report import Row

DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "ogbn-arxiv",
    "squirrel-unfiltered",
    "squirrel",
    "chameleon-unfiltered",
    "chameleon",
    "actor",
    "roman-empire",
    "questions",
    "minesweeper",
    "tolokers",
    "amazon-ratings",
)
# How far from the paper's number still counts as the same: what its digits leave open, and 0.01 for two of them.
TOLERANCE = {
    "edge_homophily": 0.01,
    "adjusted_homophily": 0.01,
    "label_informativeness": 0.01,
    "std_per_class": 0.0003,
    "num_nodes": 0,
    "num_edges": 0,
    "degree_min": 0,
    "degree_mean": 0.05,
    "degree_max": 0,
}
OURS, LISTED = "ours", "ours, as listed"
"""Each pair of different nodes once, or every edge that the files list."""
BY_LISTED_EDGES = ("edge_homophily", "adjusted_homophily", "label_informativeness", "num_edges")
"""What the paper counts by the edges that the files list; its degrees take each pair once."""

Values = Mapping[str, int | float | None]


class MeasuresTable(Analysis):
    """Each data set counted both ways where its files list edges with a direction, the paper's row, the difference."""

    name = "measures"
    title = "Measures of the data sets"
    headings: Mapping[str, str] = {
        "dataset": "data set",
        **{name: MEASURES[name].heading for name in TOLERANCE},
        "apart": "apart in",
    }
    digits = 4

    def datasets(self) -> list[str]:
        """The paper's twelve, and the filtered graphs that its tables of measures do not have."""
        return list(DATASETS)

    def rows(self, dataset: str, root: Path | None = None) -> list[Row]:
        """Up to four rows: ours, ours as listed, the paper's, the difference of the last two."""
        paper = published("measures").get(dataset)
        try:
            ours = measure(load(dataset, root=root, features=False), TOLERANCE)
        except MissingDataError:
            return [_row(dataset, "paper", paper or {}, "no data")]
        rows = [_row(dataset, OURS, ours)]
        if get_spec(dataset).has_directions:
            listed = _as_listed(dataset, root)
            rows.append(_row(dataset, LISTED, listed))
            ours = {**ours, **listed}
        if paper is not None:
            difference = {name: _difference(ours[name], paper[name]) for name in TOLERANCE}
            rows.append(_row(dataset, "paper", paper))
            rows.append(_row(dataset, "difference", difference, _apart(difference)))
        return rows

    def numbers(self) -> list[PaperNumber]:
        """The paper's row of each data set, edges as the files list them where that makes a difference."""
        return [
            PaperNumber(
                dataset,
                MEASURES[name].heading,
                value,
                {"dataset": dataset, "source": _source(dataset, name)},
                name,
                tolerance=TOLERANCE[name],
            )
            for dataset, values in published("measures").items()
            for name, value in values.items()
        ]


def _source(dataset: str, name: str) -> str:
    """Which of our rows has what the paper counts."""
    return LISTED if get_spec(dataset).has_directions and name in BY_LISTED_EDGES else OURS


def _as_listed(dataset: str, root: Path | None) -> Values:
    """What the paper counts by listed edges."""
    return measure(load(dataset, root=root, features=False, directed=True), BY_LISTED_EDGES, "as_listed")


def _difference(ours: int | float | None, paper: int | float) -> int | float | None:
    return None if ours is None else ours - paper


def _apart(difference: Values) -> str:
    """The measures that are further from the paper than its digits allow."""
    apart = [
        MEASURES[name].heading
        for name, value in difference.items()
        if value is not None and abs(value) > TOLERANCE[name]
    ]
    return ", ".join(apart)


def _row(dataset: str, source: str, values: Values, apart: str = "") -> Row:
    return {"dataset": dataset, "source": source, **{name: values.get(name) for name in TOLERANCE}, "apart": apart}
