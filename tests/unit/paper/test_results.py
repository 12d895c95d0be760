"""The result of a reproduction: its table, its page, and the files beside the page."""

from dataclasses import replace
from pathlib import Path

import pytest

from gumbel_mpnn.paper import Job, Page, Reproduction
from gumbel_mpnn.paper.backbones import Backbones
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.report.chart import Chart
from gumbel_mpnn.runs import fit
from helpers import changed, small_data

CHART = Chart(x="k", y="test", series=("model",), x_label="number", y_label="accuracy, %", title="By number")
ROWS = [
    {"model": "a", "k": 2, "test": 20.0, "stderr": 2.0, "paper": None},
    {"model": "a", "k": 1, "test": 10.0, "stderr": 1.0, "paper": 15.0},
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of two splits whose figures are 50 and 70 per cent, in 3 and 5 seconds."""
    data = changed(small_data(), name="toy")
    settings = {"model": {"hidden_channels": 4}, "train": {"epochs": 1}}
    made = []
    for model in ("mlp", "gcn"):
        run = fit(data, model, settings=settings, runs=tmp_path_factory.mktemp(model), device="cpu")
        figures = ((0.5, 0.6, 3.0), (0.7, 0.6, 5.0))
        records = [replace(r, test=t, val=v, seconds=s) for r, (t, v, s) in zip(run.records, figures, strict=True)]
        made.append(replace(run, records=tuple(records)))
    return made


def test_the_page_has_the_command_the_machine_and_the_table(runs):
    experiment = Backbones()
    rows = experiment.collect({Job("cora", "mlp"): runs[0], Job("cora", "gcn"): None})
    page = Reproduction(experiment, rows, runs[:1]).markdown(Path("page.md"))
    machine = runs[0].records[0].machine
    assert page.startswith("# Plain models\n\n")
    assert "```\ngumbel-mpnn reproduce backbones --seeds 3 --out page.md\n```" in page
    assert f"on {machine['device']} with torch {machine['torch']}." in page
    assert Reproduction(experiment, rows).table().render("markdown") in page
    assert "| cora | MLP | 60.00 | 14.14 | 10.00 | 2 | 60.00 | 75.61 | 0.20 | -15.61 | by val |" in page
    assert "| cora | GCN | – | – | – | – | – | 87.47 | 0.12 | – | no data |" in page
    assert page.endswith("\n")


def test_a_page_without_runs_names_no_machine():
    page = Reproduction(Backbones(), Backbones().collect({Job("cora", "gcn"): None})).markdown(Path("page.md"))
    assert "with torch" not in page
    assert "with ." not in page


def test_every_machine_is_named_once(runs):
    elsewhere = replace(runs[1].records[0], machine={**runs[1].records[0].machine, "device": "cuda (a big one)"})
    mixed = [runs[0], replace(runs[1], records=(runs[1].records[0], elsewhere))]
    page = Reproduction(Backbones(), Backbones().collect({}), mixed).markdown(Path("page.md"))
    assert page.count("cuda (a big one)") == 1
    assert page.count(runs[0].records[0].machine["device"]) == 1


def test_headings_are_what_people_read(runs):
    table = Reproduction(Backbones(), Backbones().collect({Job("cora", "mlp"): runs[0]})).table()
    assert table.render("markdown").splitlines()[0] == (
        "| data set | model | test % | std | std error | runs | val % | paper % | paper ± | ours − paper | best here |"
    )
    assert table.render("csv").splitlines()[0] == ("dataset,model,test,std,stderr,n,val,paper,paper_pm,difference,best")


class Toy(Page):
    """An experiment with a chart."""

    name, title, headings, charts = "toy", "A toy", {"k": "number"}, (CHART,)


def test_a_page_has_its_figure_and_its_data_beside_it(tmp_path):
    written = Reproduction(Toy(), ROWS, remarks="A remark.").write(tmp_path / "deep" / "toy.md")
    assert sorted(path.name for path in written) == ["toy.csv", "toy.md", "toy.pdf", "toy.png"]
    beginnings = {path.suffix: path.read_bytes()[:8] for path in written}
    assert beginnings[".png"] == b"\x89PNG\r\n\x1a\n"
    assert beginnings[".pdf"].startswith(b"%PDF-")
    assert beginnings[".csv"] == b"model,k,"
    page = (tmp_path / "deep" / "toy.md").read_text()
    assert "![A toy](toy.png)" in page
    assert "A remark." in page
    lines = (tmp_path / "deep" / "toy.csv").read_text().splitlines()
    assert lines[:2] == ["model,k,test,stderr,paper", "a,2,20.0,2.0,"]


def test_no_figure_without_a_chart(tmp_path):
    class Bare(Page):
        name, title, headings = "bare", "Bare", {}

    written = Reproduction(Bare(), ROWS).write(str(tmp_path / "bare.md"))
    assert [path.name for path in written] == ["bare.md", "bare.csv"]
    assert "![" not in written[0].read_text()


def test_the_page_of_the_whole_table_has_its_notes_and_no_remark_on_them():
    page = Reproduction(Backbones(), Backbones().collect({})).markdown(Path("page.md"))
    assert "The notes below describe the full table" not in page
    only = Reproduction(Backbones(), Backbones().collect({}), request=Request(only=("cora",))).markdown(Path("page.md"))
    assert "The notes below describe the full table, made without `--only`" in only
