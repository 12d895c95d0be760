"""Published numbers: what they are, how ours are compared with them, and that none is missing from the summary."""

import tomllib
from pathlib import Path

import pytest

from experiments import PAGES, published
from experiments.experiment import TUNED_DATASETS
from experiments.paper.summary import NOT_RUN, Summary
from experiments.published import Fixed, PaperNumber
from gumbel_mpnn.data import specs
from gumbel_mpnn.report import Table

FILES = sorted((Path(__file__).parents[2] / "experiments" / "paper" / "published").glob("*.toml"))
OF_OTHER_PAPERS = ("poison",)
WHOLE = ("accuracy", "ablation", "consistency", "degree", "long-range", "measures", "mixtures")


@pytest.mark.parametrize(
    ("table", "row", "column", "value"),
    [
        ("accuracy", "cora", "gcn", [87.47, 0.12]),
        ("accuracy", "squirrel-unfiltered", "gcn", [55.80, 0.13]),
        ("accuracy", "chameleon-unfiltered", "sdrf", [63.82, 0.06]),
        ("measures", "cora", "std_per_class", 0.0957),
        ("measures", "squirrel-unfiltered", "num_edges", 217_073),
        ("mixtures", "cora", "components", 47),
        ("degree", "cora", "degree_mean", 11.5),
        ("consistency", "cora", "clusters", 41),
        ("long-range", "gcn", "2", 14.29),
    ],
)
def test_values_of_the_papers_tables(table, row, column, value):
    assert published(table)[row][column] == value


def test_every_model_has_a_number_on_every_data_set():
    accuracy = published("accuracy")
    assert set(TUNED_DATASETS) < set(accuracy) <= set(specs)
    assert len(accuracy) == 14
    for dataset, models in accuracy.items():
        assert len(models) == (6 if dataset == "ogbn-arxiv" else 7)  # SDRF ran out of time there
        assert all(20 < value < 100 and 0 < error < 1 for value, error in models.values())


def leaves(values):
    """All numbers of a file; [value, ±] is one."""
    return sum(leaves(value) if isinstance(value, dict) else 1 for value in values.values())


def test_no_published_number_is_missing_from_the_summary():
    """A number counts once for each preset; those of the ablation with a regularizer are the main table's."""
    assert {file.stem for file in FILES} == {*WHOLE, *OF_OTHER_PAPERS}
    listed = {name: page.numbers() for name, page in PAGES.items() if page.numbers()}
    assert set(listed) == {*WHOLE, "accuracy-unfiltered"}
    for file in FILES:
        if file.stem in OF_OTHER_PAPERS:
            continue
        expected = leaves(tomllib.loads(file.read_text(encoding="utf-8")))
        numbers = listed[file.stem] + (listed["accuracy-unfiltered"] if file.stem == "accuracy" else [])
        presets = len({number.preset for number in numbers})
        if file.stem == "ablation":
            expected //= 2
        assert len(numbers) == expected * presets
        keys = [(n.dataset, n.model, n.quantity, n.preset) for n in numbers]
        assert len(set(keys)) == len(keys)


class TestVerdicts:
    MEAN = PaperNumber("cora", "test %", Fixed(87.47, 2), {}, "test", "gcn", 0.12, "stderr", accuracy=True)
    COUNT = PaperNumber("cora", "clusters", 47, {}, "clusters", tolerance=4.7)

    @pytest.mark.parametrize(
        ("ours", "error", "verdict", "within"),
        [
            (87.70, 0.0, "same", True),  # 2 · .12 apart, but for rounding
            (87.72, 0.0, "above", True),
            (87.90, 0.20, "same", True),
            (85.97, 0.12, "below", True),
            (85.90, 0.12, "below", False),
            (87.47, None, "too few runs", True),
        ],
    )
    def test_means_over_runs(self, ours, error, verdict, within):
        assert (self.MEAN.verdict(ours, error), self.MEAN.within(ours)) == (verdict, within)

    @pytest.mark.parametrize(
        ("ours", "verdict", "within"),
        [(47.5, "equal", True), (51.7, "close", True), (42.3, "close", True), (51.8, "differs", False)],
    )
    def test_other_numbers(self, ours, verdict, within):
        assert (self.COUNT.verdict(ours, None), self.COUNT.within(ours)) == (verdict, within)


class TestSummary:
    def rows(self, tmp_path, text, name="long-range"):
        (tmp_path / f"{name}.csv").write_text(text)
        return {
            (row["page"], row["dataset"], row["model"], row["quantity"]): row
            for row in Summary().rows(PAGES.values(), tmp_path)
        }

    def test_numbers_are_read_from_the_rows_beside_the_pages(self, tmp_path):
        rows = self.rows(tmp_path, "dataset,model,layers,test,stderr,n\nleaf-count,gcn,4,99.95,0.03,30\n")
        found = rows["long-range", "leaf-count", "gcn", "test %, 4 layers"]
        assert (found["ours"], found["difference"], found["verdict"], found["within"]) == (
            99.95,
            pytest.approx(-0.05),
            "same",
            "yes",
        )
        assert rows["long-range", "leaf-count", "gumbel-mpnn", "test %, 2 layers"]["verdict"] == NOT_RUN
        assert rows["accuracy", "cora", "gcn", "test %"]["verdict"] == NOT_RUN


def test_numbers_with_decimals_of_their_own():
    table = Table(["a"], [[Fixed.parse("0.80")], [0.8]], digits=4)
    assert table.render("markdown").splitlines()[2:] == ["| 0.80 |", "| 0.8000 |"]
    assert table.render("csv").splitlines()[1:] == ["0.8", "0.8"]
    assert type(Fixed(0.1, 1) + 1) is float
