"""Every number of the paper beside ours: none is left out, none is told twice, and what is said of them."""

from dataclasses import replace
from importlib import resources

import pytest

from gumbel_mpnn.paper import Page, Reproduction, analyses, experiments, published
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.paper.summary import Collected, SummaryTable
from gumbel_mpnn.report.table import Fixed

PAGES = [*experiments.values(), *analyses.values()]
TABLES = [file.name.removesuffix(".toml") for file in (resources.files("gumbel_mpnn.paper") / "published").iterdir()]
MEAN = PaperNumber("cora", "test %", Fixed(87.95, 2), {"dataset": "cora"}, "test", "gcn", Fixed(0.3, 2), "stderr")
PLAIN = PaperNumber("cora", "homophily", Fixed(0.8, 2), {"dataset": "cora"}, "h", tolerance=0.01)
COUNT = PaperNumber("cora", "edges", 5_278, {"dataset": "cora"}, "edges")


def leaves(value):
    """The numbers in a published table; [value, ±] is one."""
    return sum(map(leaves, value.values())) if isinstance(value, dict) else 1


class Answers(Page):
    """A page with some numbers of the paper."""

    name = "page"

    def __init__(self, *numbers):
        self.answered = list(numbers)

    def numbers(self):
        return self.answered


def summary(number, *rows, missing=()):
    """The row that the summary has for one number."""
    (row,) = SummaryTable().rows([Answers(number)], {"page": Collected(rows, frozenset(missing))})
    return row


class TestNumbers:
    def test_every_published_number_is_there_once(self):
        numbers = [number for page in PAGES if hasattr(page, "numbers") for number in page.numbers()]
        assert len(numbers) == sum(leaves(published(table)) for table in TABLES) == 340
        assert len({(number.dataset, number.model, number.quantity) for number in numbers}) == len(numbers)

    @pytest.mark.parametrize("page", [page for page in PAGES if hasattr(page, "numbers")], ids=lambda page: page.name)
    def test_the_columns_are_those_of_the_page(self, page):
        columns = {*page.all_headings(), "model", "layers", "graph", "source", "labels", "clusters", "components"}
        for number in page.numbers():
            assert {*number.row, number.column} <= columns
            assert not number.error_column or number.error_column in page.all_headings()

    def test_values_and_errors_as_printed(self):
        (number,) = [
            n for n in experiments["accuracy"].numbers() if (n.dataset, n.model) == ("tolokers", "gumbel-mpnn")
        ]
        assert (number.value, number.error, number.value.digits) == (81.56, 0.41, 2)
        without, with_ = [n for n in experiments["ablation"].numbers() if n.dataset == "actor"]
        assert (without.quantity, without.value, without.column) == ("test %, without regularizer", 34.92, "without")
        assert (with_.quantity, with_.value, with_.error_column) == ("test %, with regularizer", 37.13, "stderr")
        edges = {n.dataset: n.row["source"] for n in analyses["measures"].numbers() if n.column == "num_edges"}
        assert (edges["cora"], edges["squirrel-unfiltered"]) == ("ours", "ours, as listed")


class TestVerdict:
    @pytest.mark.parametrize(
        ("ours", "error", "verdict"),
        [
            (88.95, 0.4, "same"),  # the joint error is 0.5, by Pythagoras
            (88.96, 0.4, "above"),
            (86.95, 0.4, "same"),
            (86.94, 0.4, "below"),
            (95.0, None, "too few runs"),
        ],
    )
    def test_a_mean_is_apart_beyond_two_joint_standard_errors(self, ours, error, verdict):
        assert MEAN.verdict(ours, error) == verdict

    def test_a_mean_without_a_published_error(self):
        number = replace(MEAN, value=Fixed(100.0, 2), error=None)
        assert [number.verdict(value, 0.01) for value in (99.99, 99.97)] == ["same", "below"]
        chance = replace(number, value=Fixed(14.29, 2))
        assert [chance.verdict(value, 0.0) for value in (100 / 7, 14.30)] == ["same", "above"]

    @pytest.mark.parametrize(
        ("ours", "verdict"),
        [(0.8, "equal"), (0.805, "equal"), (0.795, "equal"), (0.8051, "close"), (0.81, "close"), (0.7899, "differs")],
    )
    def test_any_other_number_by_its_printed_digits_and_the_tolerance(self, ours, verdict):
        assert PLAIN.verdict(ours, None) == verdict

    def test_counts(self):
        assert [COUNT.verdict(value, None) for value in (5_278, 5_279)] == ["equal", "differs"]


class TestWithin:
    @pytest.mark.parametrize(("ours", "within"), [(89.45, True), (86.45, True), (89.46, False), (86.44, False)])
    def test_an_accuracy_by_points(self, ours, within):
        assert replace(MEAN, accuracy=True).within(ours) is within

    @pytest.mark.parametrize(("ours", "within"), [(5805, True), (5806, False), (4751, True), (4750, False)])
    def test_any_other_number_by_a_share_of_the_published_one(self, ours, within):
        assert COUNT.within(ours) is within  # 5278 ± 527.8

    @pytest.mark.parametrize(
        ("value", "ours", "within"),
        [(0, 0, True), (0, 1, False), (4, 4, True), (4, 5, False), (Fixed(0.04, 2), 0.045, True), (-0.5, -0.55, True)],
    )
    def test_by_the_printed_digits_at_least(self, value, ours, within):
        assert replace(COUNT, value=value).within(ours) is within


class TestRows:
    def test_ours_and_the_difference(self):
        row = summary(
            MEAN, {"dataset": "citeseer", "test": 1.0}, {"dataset": "cora", "test": 89.0, "stderr": 0.1, "n": 30}
        )
        assert row == {
            "page": "page",
            "dataset": "cora",
            "model": "gcn",
            "quantity": "test %",
            "paper": 87.95,
            "paper_pm": 0.3,
            "ours": 89.0,
            "pm": 0.1,
            "n": 30,
            "difference": pytest.approx(1.05),
            "verdict": "above",
        }

    def test_one_run_has_no_error(self):
        row = summary(MEAN, {"dataset": "cora", "test": 95.0, "stderr": 0.0, "n": 1})
        assert (row["ours"], row["pm"], row["verdict"]) == (95.0, None, "too few runs")

    @pytest.mark.parametrize("rows", [(), ({"dataset": "cora", "test": None},)], ids=["no row", "no value"])
    def test_not_run_and_no_data(self, rows):
        assert summary(MEAN, *rows)["verdict"] == "not run"
        row = summary(MEAN, *rows, missing=["cora"])
        assert (row["verdict"], row["ours"], row["difference"]) == ("no data", None, None)

    def test_a_number_of_ours_is_told_whatever_is_missing(self):
        assert summary(COUNT, {"dataset": "cora", "edges": 5_278}, missing=["cora"])["verdict"] == "equal"

    def test_a_page_that_was_not_made(self):
        (row,) = SummaryTable().rows([Answers(MEAN), SummaryTable()], {})
        assert row["verdict"] == "not run"

    def test_shown_with_the_printed_digits(self):
        mean = summary(MEAN, {"dataset": "cora", "test": 88.1234, "stderr": 0.1, "n": 30})
        plain = summary(PLAIN, {"dataset": "cora", "h": 0.80123})
        count = summary(COUNT, {"dataset": "cora", "edges": 5_280})
        table = Reproduction(SummaryTable(), [mean, plain, count]).table().render("markdown").splitlines()[2:]
        assert table == [
            "| page | cora | GCN | test % | 87.95 | 0.30 | 88.12 | 0.10 | 30 | 0.17 | same |",
            "| page | cora |  | homophily | 0.80 | – | 0.801 | – | – | 0.001 | equal |",
            "| page | cora |  | edges | 5278 | – | 5280 | – | – | 2 | differs |",
        ]


JUDGED = [
    {"page": page, "verdict": verdict}
    for page, verdicts in {"a": ("same", "above", "no data"), "b": ("not run", "same", "differs")}.items()
    for verdict in verdicts
]


class TestHead:
    def test_how_many(self):
        assert SummaryTable().lead(JUDGED) == (
            "6 numbers of the paper's tables are listed. The available data allows 5 of them (1 need data sets that are"
            " missing): 2 same, 1 above, 1 differs, 1 not run."
        )

    def test_by_page(self):
        a, b, both = SummaryTable().counts(JUDGED)
        assert a == {"page": "a", "numbers": 3, "same": 1, "above": 1, "differs": 0, "not run": 0, "no data": 1}
        assert (b["same"], b["not run"], both["page"], both["numbers"], both["same"]) == (1, 1, "all", 6, 2)
