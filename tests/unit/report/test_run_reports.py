"""Tables, pages and figures of runs."""

import json
from dataclasses import replace

import matplotlib.image
import pytest
import torch

from gumbel_mpnn.paper import Backbones, Job
from gumbel_mpnn.paper.document import document, rows_table
from gumbel_mpnn.report.demo_figure import demo_figure
from gumbel_mpnn.report.run_table import run_table
from gumbel_mpnn.runs import fit
from helpers import changed, small_data


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


def test_a_row_for_each_setting_in_per_cent(runs):
    rows = json.loads(run_table(runs).render("json"))
    assert [row["model"] for row in rows] == ["mlp", "gcn"]
    assert rows[0] == {
        "dataset": "toy",
        "model": "mlp",
        "metric": "accuracy %",
        "n": 2,
        "test": pytest.approx(60),
        "std": pytest.approx(200**0.5),
        "stderr": pytest.approx(10),
        "val": pytest.approx(60),
        "seconds": 8.0,
    }


def test_the_text_people_read(runs):
    assert run_table(runs[:1]).render("text").splitlines() == [
        "data set  model  metric      runs   test    std  std error    val  seconds",
        "────────  ─────  ──────────  ────  ─────  ─────  ─────────  ─────  ───────",
        "toy       mlp    accuracy %     2  60.00  14.14      10.00  60.00     8.00",
    ]


def test_the_metric_has_its_usual_name(runs):
    (row,) = json.loads(run_table([replace(runs[0], metric="roc_auc")]).render("json"))
    assert row["metric"] == "ROC-AUC %"


def test_the_page_has_the_command_the_machine_and_the_table(runs):
    experiment = Backbones()
    rows = experiment.collect({Job("cora", "mlp"): runs[0], Job("cora", "gcn"): None})
    page = document(experiment, rows, runs[:1], "gumbel-mpnn reproduce backbones --seeds 3")
    machine = runs[0].records[0].machine
    assert page.startswith("# Plain models\n\n")
    assert "```\ngumbel-mpnn reproduce backbones --seeds 3\n```" in page
    assert f"on {machine['device']} with torch {machine['torch']}." in page
    assert rows_table(experiment, rows).render("markdown") in page
    assert "| cora | MLP | 60.00 | 14.14 | 10.00 | 2 | 60.00 | 75.61 | 0.20 | -15.61 | by val |" in page
    assert "| cora | GCN | – | – | – | – | – | 87.47 | 0.12 | – | no data |" in page
    assert page.endswith("\n")


def test_a_page_without_runs_names_no_machine():
    page = document(Backbones(), Backbones().collect({Job("cora", "gcn"): None}), [], "x")
    assert "with torch" not in page
    assert "with ." not in page


def test_every_machine_is_named_once(runs):
    elsewhere = replace(runs[1].records[0], machine={**runs[1].records[0].machine, "device": "cuda (a big one)"})
    mixed = [runs[0], replace(runs[1], records=(runs[1].records[0], elsewhere))]
    page = document(Backbones(), Backbones().collect({}), mixed, "x")
    assert page.count("cuda (a big one)") == 1
    assert page.count(runs[0].records[0].machine["device"]) == 1


def test_headings_are_what_people_read(runs):
    table = rows_table(Backbones(), Backbones().collect({Job("cora", "mlp"): runs[0]}))
    assert table.render("markdown").splitlines()[0] == (
        "| data set | model | test % | std | std error | runs | val % | paper % | paper ± | ours − paper | best here |"
    )
    assert table.render("csv").splitlines()[0] == ("dataset,model,test,std,stderr,n,val,paper,paper_pm,difference,best")


def test_the_figure_needs_no_display(runs, tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND"):
        monkeypatch.delenv(name, raising=False)
    demo_figure(runs[0].data, runs, tmp_path / "demo.png")
    pixels = matplotlib.image.imread(tmp_path / "demo.png")
    assert pixels.shape[1] > pixels.shape[0] > 300
    assert pixels[..., :3].std() > 0.01


def test_a_figure_of_a_single_run_each(runs, tmp_path):
    single = [replace(run, records=run.records[:1]) for run in runs]
    demo_figure(runs[0].data, single, tmp_path / "demo.png")
    assert (tmp_path / "demo.png").stat().st_size > 1000


def test_the_look_of_other_figures_is_left_alone(runs, tmp_path):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before = mpl.rcParams["font.size"], mpl.rcParams["axes.spines.top"], plt.get_fignums()
    demo_figure(runs[0].data, runs, tmp_path / "demo.png")
    assert (mpl.rcParams["font.size"], mpl.rcParams["axes.spines.top"], plt.get_fignums()) == before
