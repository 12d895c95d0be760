"""Tables and figures of runs, and the demo."""

import json
from dataclasses import replace

import matplotlib.image
import pytest
import torch

from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.report import demo as demo_module
from gumbel_mpnn.report import run_table
from gumbel_mpnn.report.demo import demo_figure, run_demo
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


def test_a_row_for_each_setting_in_shares_of_one(runs):
    rows = json.loads(run_table(runs).render("json"))
    assert [row["model"] for row in rows] == ["mlp", "gcn"]
    assert rows[0] == {
        "dataset": "toy",
        "model": "mlp",
        "metric": "accuracy",
        "n": 2,
        "test": pytest.approx(0.6),
        "std": pytest.approx(0.02**0.5),
        "stderr": pytest.approx(0.1),
        "val": pytest.approx(0.6),
        "seconds": 8.0,
        "unit": "share",
    }


def test_the_text_people_read(runs):
    assert run_table(runs[:1]).render("text").splitlines() == [
        "data set  model  metric      runs   test    std  std error    val  seconds",
        "────────  ─────  ──────────  ────  ─────  ─────  ─────────  ─────  ───────",
        "toy       mlp    accuracy %     2  60.00  14.14      10.00  60.00     8.00",
    ]


def test_the_metric_has_its_usual_name(runs):
    assert " ROC-AUC % " in run_table([replace(runs[0], metric="roc_auc")]).render("text")


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


def test_the_demo_trains_its_models_with_their_presets(monkeypatch, runs, tmp_path):
    calls = []

    def note(data, model, **keywords):
        calls.append((data.name, model, keywords))
        return runs[0]

    monkeypatch.setattr(demo_module, "fit", note)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert run_demo(tmp_path) == [runs[0]] * len(demo_module.MODELS)
    assert [(name, model) for name, model, _ in calls] == [("demo", model) for model in demo_module.MODELS]
    assert demo_module.MODELS[:2] == ("mlp", "gcn")
    assert all(keywords["runs"] == tmp_path for _, _, keywords in calls)
    assert [keywords["on"].workers for _, _, keywords in calls] == [1, 1, 1, 1, 2]
    budgets = [read_preset("tuned", "demo", model).tables["train"]["epochs"] for model in demo_module.MODELS[:-1]]
    assert len(set(budgets)) == 1
