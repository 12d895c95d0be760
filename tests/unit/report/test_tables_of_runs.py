"""The five ways a table is printed, each worked out by hand; the table of runs and the figure of the demo."""

import json
from dataclasses import replace
from textwrap import dedent

import matplotlib as mpl
import matplotlib.image
import matplotlib.pyplot as plt
import pytest
import torch

from gumbel_mpnn.report import Table, run_table
from gumbel_mpnn.report.demo import demo_figure
from gumbel_mpnn.runs.fit import fit
from helpers import changed, small_data

TABLE = Table(
    columns=["name", "n", "score"],
    rows=[["a_b & c", 3, 1.005], ["50 % | ±", 12, None], [None, 7, 22.0]],
    headings={"n": "runs"},
)


def block(text):
    return dedent(text).strip("\n")


def test_text():
    assert TABLE.render("text") == block(
        """
        name      runs  score
        ────────  ────  ─────
        a_b & c      3   1.00
        50 % | ±    12      –
        –            7  22.00
        """
    )


def test_markdown():
    assert TABLE.render("markdown") == block(
        r"""
        | name | runs | score |
        | --- | --: | --: |
        | a_b & c | 3 | 1.00 |
        | 50 % \| ± | 12 | – |
        | – | 7 | 22.00 |
        """
    )


def test_latex():
    assert TABLE.render("latex") == block(
        r"""
        \begin{tabular}{lrr}
        \toprule
        name & runs & score \\
        \midrule
        a\_b \& c & 3 & 1.00 \\
        50 \% | ± & 12 & – \\
        – & 7 & 22.00 \\
        \bottomrule
        \end{tabular}
        """
    )


def test_csv_keeps_the_columns_names_and_all_digits():
    assert TABLE.render("csv") == "name,n,score\na_b & c,3,1.005\n50 % | ±,12,\n,7,22.0"


def test_json_keeps_the_columns_names_and_all_digits():
    assert json.loads(TABLE.render("json")) == [
        {"name": "a_b & c", "n": 3, "score": 1.005},
        {"name": "50 % | ±", "n": 12, "score": None},
        {"name": None, "n": 7, "score": 22.0},
    ]


def test_shares_are_in_per_cent_except_in_json_which_says_so():
    table = Table(["n", "test"], [[3, 0.29], [1, None]], shares=("test",))
    assert json.loads(table.render("json")) == [
        {"n": 3, "test": 0.29, "unit": "share"},
        {"n": 1, "test": None, "unit": "share"},
    ]
    assert [line.split() for line in table.render("text").splitlines()[2:]] == [["3", "29.00"], ["1", "–"]]
    assert table.render("csv") == f"n,test\n3,{100 * 0.29}\n1,"
    assert "| 3 | 29.00 |" in table.render("markdown")
    assert r"3 & 29.00 \\" in table.render("latex")


def test_a_column_of_numbers_stands_right():
    columns = [[1, 2.5], [1, None], ["1", "2"], [1, "n/a"], [None, None]]
    table = Table(list("abcde"), [list(row) for row in zip(*columns, strict=True)])
    assert table.render("markdown").splitlines()[1] == "| --: | --: | --- | --- | --- |"
    assert Table(["a", "bb"], []).render("text").splitlines() == ["a  bb", "─  ──"]


def test_small_numbers_are_kept_where_they_are_asked_for():
    rows = [[2.6e-8], [-4e-5], [0.0], [6e-5], [None], [3]]
    shown = Table(["gap"], rows, digits=4, keep_small=True).render("text").split()[2:]
    assert shown == ["2.6e-08", "-4.0e-05", "0.0000", "0.0001", "–", "3"]
    assert Table(["gap"], rows, digits=4).render("text").split()[2] == "0.0000"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of two splits whose figures are 50 and 70 per cent, in 3 and 5 seconds."""
    data = changed(small_data(), name="toy", edge_is_core=torch.arange(72) % 2 == 0)
    settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
    made = []
    for model in ("mlp", "gcn"):
        run = fit(data, model, settings=settings, runs=tmp_path_factory.mktemp(model), device="cpu")
        figures = ((0.5, 0.6, 3.0), (0.7, 0.6, 5.0))
        records = [replace(r, test=t, val=v, seconds=s) for r, (t, v, s) in zip(run.records, figures, strict=True)]
        made.append(replace(run, records=tuple(records)))
    return made


def test_the_text_people_read(runs):
    assert run_table(runs[:1]).render("text").splitlines() == [
        "data set  model  metric    runs  test %    std  std error  val %  seconds",
        "────────  ─────  ────────  ────  ──────  ─────  ─────────  ─────  ───────",
        "toy       mlp    accuracy     2   60.00  14.14      10.00  60.00     8.00",
    ]


def test_the_figure_needs_no_display_and_leaves_others_alone(runs, tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND"):
        monkeypatch.delenv(name, raising=False)
    before = mpl.rcParams["font.size"], mpl.rcParams["axes.spines.top"], plt.get_fignums()
    demo_figure(runs[0].data, runs, tmp_path / "demo.png")
    assert (mpl.rcParams["font.size"], mpl.rcParams["axes.spines.top"], plt.get_fignums()) == before
    pixels = matplotlib.image.imread(tmp_path / "demo.png")
    assert pixels.shape[1] > pixels.shape[0] > 300
    assert pixels[..., :3].std() > 0.01
