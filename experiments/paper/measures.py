"""Measures of the data sets (homophily, label informativeness, std per class, degrees), compared with the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.experiment import PAPER_DATASETS, UNFILTERED, Analysis
from experiments.published import PaperNumber, published
from experiments.rows import DASH, NO_DATA, paragraphs
from gumbel_mpnn.data import get_spec, load
from gumbel_mpnn.measures import MEASURES, measure
from gumbel_mpnn.report import Markdown, Row, Table
from gumbel_mpnn.util import MissingDataError

DATASETS = tuple(
    each for name in PAPER_DATASETS for each in (f"{name}-unfiltered", name) if each in (*PAPER_DATASETS, *UNFILTERED)
)
"""Those of the paper and the filtered graphs, which its tables of measures do not contain."""
# Differences up to these count as agreement: the precision of the printed digits, or 0.01 for two digits.
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
OURS, LISTED, PAPER = "ours", "ours, as listed", "paper"
"""Rows that count each pair of different nodes once, those that count every edge of the files, and the paper's."""
BY_LISTED_EDGES = ("edge_homophily", "adjusted_homophily", "label_informativeness", "num_edges")
"""Measures for which the paper counts the edges as listed; for degrees it counts each pair once."""

Values = Mapping[str, int | float | None]


class Measures(Analysis):
    """Our measures, the published ones, and their difference. Directed edges are counted in both ways."""

    name = "measures"
    title = "Measures of the data sets"
    headings: Mapping[str, str] = {**{name: MEASURES[name].heading for name in TOLERANCE}, "apart": "apart in"}
    digits = 4
    datasets = DATASETS

    def rows(self, dataset: str) -> list[Row]:
        """Return up to four rows: ours, ours as listed, the paper's, and our difference to the paper."""
        paper = published("measures").get(dataset)
        try:
            ours = measure(load(dataset, features=False), TOLERANCE)
        except MissingDataError:
            return [] if paper is None else [_row(dataset, PAPER, paper, NO_DATA)]
        rows = [_row(dataset, OURS, ours)]
        if get_spec(dataset).has_directions:
            listed = measure(load(dataset, features=False, directed=True), BY_LISTED_EDGES, "as_listed")
            rows.append(_row(dataset, LISTED, listed))
            ours = {**ours, **listed}
        if paper is not None:
            difference = {name: None if (own := ours[name]) is None else own - paper[name] for name in TOLERANCE}
            rows.append(_row(dataset, PAPER, paper))
            rows.append(_row(dataset, "difference", difference, _apart(difference)))
        return rows

    def numbers(self) -> list[PaperNumber]:
        """Return the published row of each data set; edges are counted as listed if the files have directions."""
        return [
            PaperNumber(
                dataset,
                MEASURES[name].heading,
                value,
                {"dataset": dataset, "source": LISTED if listed and name in BY_LISTED_EDGES else OURS},
                name,
                tolerance=TOLERANCE[name],
            )
            for dataset, values in published("measures").items()
            for listed in [get_spec(dataset).has_directions]
            for name, value in values.items()
        ]

    def shown(self, rows: Sequence[Row]) -> str:
        """Return a line for each data set, with the paper's number in brackets where ours is apart from it."""
        by_dataset: dict[str, dict[str, Row]] = {}
        for row in rows:
            by_dataset.setdefault(str(row["dataset"]), {})[str(row["source"])] = row
        lines = [
            [dataset, *(_beside(name, found) for name in TOLERANCE)]
            for dataset, found in by_dataset.items()
            if OURS in found
        ]
        return paragraphs(
            "Ours, counted as the paper counts. In brackets: the paper's number, where ours is further from it than the"
            " printed digits allow.",
            Table(["dataset", *TOLERANCE], lines, {"dataset": "data set", **self.headings}).render("markdown"),
        )


def _beside(name: str, found: Mapping[str, Row]) -> str:
    """Return our number, and the paper's if it is apart."""
    listed = found.get(LISTED, {}).get(name)
    ours = found[OURS][name] if listed is None else listed
    paper = found.get(PAPER, {}).get(name)
    if ours is None:
        return DASH
    digits = 4 if name == "std_per_class" else 2
    text = f"{ours}" if name.startswith("num_") or name in ("degree_min", "degree_max") else f"{ours:.{digits}f}"
    apart = paper is not None and abs(float(ours) - float(paper)) > TOLERANCE[name]
    return Markdown(f"**{text}** ({paper})" if apart else text)


def _apart(difference: Values) -> str:
    """Return the names of the measures that differ from the paper by more than the tolerance."""
    apart = [
        MEASURES[name].heading
        for name, value in difference.items()
        if value is not None and abs(value) > TOLERANCE[name]
    ]
    return ", ".join(apart)


def _row(dataset: str, source: str, values: Values, apart: str = "") -> Row:
    return {"dataset": dataset, "source": source, **{name: values.get(name) for name in TOLERANCE}, "apart": apart}
