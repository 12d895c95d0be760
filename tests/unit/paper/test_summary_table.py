"""Every number of the paper beside ours: none is left out, none is told twice, and what is said of them."""

from dataclasses import replace
from importlib import resources

import pytest

from gumbel_mpnn.paper import Page, Reproduction, analyses, experiments, published
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.paper.summary import GIVEN, ORDER, Collected, SummaryTable
from gumbel_mpnn.report.table import Fixed

PAGES = [*experiments.values(), *analyses.values()]
FILES = (resources.files("gumbel_mpnn.paper") / "published").iterdir()
OF_OTHER_PAPERS = {"poison"}
TABLES = {file.name.removesuffix(".toml") for file in FILES} - OF_OTHER_PAPERS
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
        once = {(n.dataset, n.model, n.quantity) for n in numbers}
        assert len({(number.dataset, number.model, number.quantity, number.preset) for number in numbers}) == len(
            numbers
        )
        assert sum(leaves(published(table)) for table in TABLES) == 340
        assert len(once) == 340 - len(published("ablation"))  # its column "with" repeats the main table

    def test_every_number_of_a_trained_model_names_a_preset_of_the_summary(self):
        presets = {page.name: {number.preset for number in page.numbers()} for page in PAGES if page.numbers()}
        assert set().union(*presets.values()) == {"paper", "literal", "tuned", ""} == {*ORDER, ""} - {GIVEN}
        assert presets["accuracy"] == presets["accuracy-unfiltered"] == {"tuned", "paper", "literal"}
        assert presets["ablation"] == {"paper", "literal"}
        assert presets["measures"] == presets["mixtures"] == {""}

    @pytest.mark.parametrize("page", [page for page in PAGES if page.numbers()], ids=lambda page: page.name)
    def test_what_is_counted_in_points(self, page):
        for number in page.numbers():
            assert number.accuracy == number.quantity.startswith("test %")

    @pytest.mark.parametrize("page", [page for page in PAGES if hasattr(page, "numbers")], ids=lambda page: page.name)
    def test_the_columns_are_those_of_the_page(self, page):
        columns = {
            *page.all_headings(),
            "model",
            "preset",
            "layers",
            "graph",
            "source",
            "labels",
            "clusters",
            "components",
        }
        for number in page.numbers():
            assert {*number.row, number.column} <= columns
            assert not number.error_column or number.error_column in page.all_headings()

    def test_values_and_errors_as_printed(self):
        found = [n for n in experiments["accuracy"].numbers() if (n.dataset, n.model) == ("tolokers", "gumbel-mpnn")]
        assert [(n.value, n.error, n.value.digits) for n in found] == [(81.56, 0.41, 2)] * 3
        paper, literal = [n for n in experiments["ablation"].numbers() if n.dataset == "actor"]
        assert (paper.quantity, paper.value, paper.column) == ("test %, without regularizer", 34.92, "without")
        assert (paper.preset, literal.preset, literal.row["preset"]) == ("paper", "literal", "literal")
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
            "preset": "given graph",
            "dataset": "cora",
            "model": "gcn",
            "quantity": "test %",
            "paper": 87.95,
            "paper_pm": 0.3,
            "ours": 89.0,
            "pm": 0.1,
            "n": 30,
            "difference": pytest.approx(1.05),
            "within": "yes",
            "verdict": "above",
        }

    def test_one_run_has_no_error(self):
        row = summary(MEAN, {"dataset": "cora", "test": 95.0, "stderr": 0.0, "n": 1})
        assert (row["ours"], row["pm"], row["verdict"]) == (95.0, None, "too few runs")

    @pytest.mark.parametrize("rows", [(), ({"dataset": "cora", "test": None},)], ids=["no row", "no value"])
    def test_not_run_and_no_data(self, rows):
        assert summary(MEAN, *rows)["verdict"] == "not run"
        row = summary(MEAN, *rows, missing=["cora"])
        assert (row["verdict"], row["ours"], row["difference"], row["within"]) == ("no data", None, None, None)

    def test_its_preset_and_whether_it_is_within_reach(self):
        number = replace(MEAN, preset="literal", accuracy=True)
        row = summary(number, {"dataset": "cora", "test": 86.0, "stderr": 0.1, "n": 30})
        assert (row["preset"], row["within"], row["verdict"]) == ("literal", "no", "below")

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
            "| page | given graph | cora | GCN | test % | 87.95 | 0.30 | 88.12 | 0.10 | 30 | 0.17 | yes | same |",
            "| page | given graph | cora |  | homophily | 0.80 | – | 0.801 | – | – | 0.001 | yes | equal |",
            "| page | given graph | cora |  | edges | 5278 | – | 5280 | – | – | 2 | yes | differs |",
        ]


def judged(page, preset, dataset, verdict, within=None, model="gcn"):
    return {
        "page": page,
        "preset": preset,
        "dataset": dataset,
        "model": model,
        "quantity": "test %",
        "verdict": verdict,
        "within": within,
    }


JUDGED = [
    judged("a", "tuned", "cora", "same", "yes"),
    judged("a", "paper", "cora", "above", "yes"),
    judged("a", "tuned", "questions", "no data"),
    judged("a", "paper", "questions", "no data"),
    judged("b", "paper", "cora", "not run"),
    judged("b", "paper", "actor", "below", "no", "sdrf"),
    judged("b", "paper", "pubmed", "above", "yes"),
    judged("c", GIVEN, "cora", "differs", "no"),
]


class TestHead:
    def test_how_many_numbers_and_how_many_within_for_each_preset(self):
        first, empty, *items = SummaryTable().lead(JUDGED).splitlines()
        assert first.startswith(
            "6 numbers of the paper's tables are listed. The available data allows 5 of them (1 need data sets that are"
            " missing)."
        )
        assert "at most 1.5 points" in first
        assert "at most 10 %" in first
        assert first.endswith("The target is 80 % for `paper`.")
        assert empty == ""
        assert items == [
            "- `paper`: 4 numbers that the data allows, 2 of them within (50 %); 1 were not run",
            "  - accuracies of plain models, which chose the readings: 3 numbers that the data allows, 2 of them within"
            " (67 %); 1 were not run",
            "  - accuracies of other models, which test them: 1 numbers that the data allows, 0 of them within (0 %)",
            "- `tuned`: 1 numbers that the data allows, 1 of them within (100 %)",
            "- given graph: 1 numbers that the data allows, 0 of them within (0 %)",
        ]

    def test_no_share_of_nothing(self):
        last = SummaryTable().lead([judged("a", "tuned", "cora", "no data")]).splitlines()[-1]
        assert last == "- `tuned`: 0 numbers that the data allows, 0 of them within"

    def test_by_page_and_preset(self):
        rows = {(row.pop("page"), row.pop("preset")): row for row in SummaryTable().counts(JUDGED)}
        none = dict.fromkeys(("same", "above", "below", "differs", "not run", "no data"), 0)
        assert rows == {
            ("a", "tuned"): {**none, "numbers": 2, "within": 1, "same": 1, "no data": 1},
            ("a", "paper"): {**none, "numbers": 2, "within": 1, "above": 1, "no data": 1},
            ("b", "paper"): {**none, "numbers": 3, "within": 1, "above": 1, "below": 1, "not run": 1},
            ("c", GIVEN): {**none, "numbers": 1, "within": 0, "differs": 1},
            ("all", "tuned"): {**none, "numbers": 2, "within": 1, "same": 1, "no data": 1},
            ("all", "paper"): {**none, "numbers": 5, "within": 2, "above": 2, "below": 1, "not run": 1, "no data": 1},
            ("all", GIVEN): {**none, "numbers": 1, "within": 0, "differs": 1},
        }
