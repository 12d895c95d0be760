"""`gumbel-mpnn reproduce all --quick` on small stand-ins for the data sets that it takes."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from gumbel_mpnn.data import specs
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.data.raw import count_edges
from gumbel_mpnn.data.spec import DatasetSpec, File, Form
from gumbel_mpnn.data.tasks import bottleneck, leaf_count, tree_neighbors_match
from gumbel_mpnn.paper import Experiment, analyses, base, experiments, mixtures
from gumbel_mpnn.paper.accuracy import MODELS
from gumbel_mpnn.paper.base import QUICK_DATASETS
from gumbel_mpnn.paper.budget import START
from helpers import small_data

STAND_INS = ("cora", "chameleon", "actor")
FIGURES = {"noise", "flood", "missing", "bottleneck", "components", "temperature", "long-range", "neighborhoods"}
OUR_OWN = {"auto", "audit", "poison", "flood", "missing", "no-graph", "adaptive"}
"""Tables that are not of the paper."""
NODES, CLASSES = 300, 5


@pytest.fixture
def stand_ins(tmp_path, monkeypatch, user_cache):
    """The same graph of 300 nodes in the place of three data sets, its mixtures kept, and smaller generated ones."""
    data = small_data(nodes=NODES, classes=CLASSES, splits=2)
    arrays = {
        "node_features": data.x.numpy(),
        "node_labels": data.y.numpy(),
        "edges": data.edge_index.T.numpy(),
        **{f"{part}_masks": data[f"{part}_mask"].T.numpy() for part in ("train", "val", "test")},
    }
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "small.npz", **arrays)
    for name in STAND_INS:
        spec = DatasetSpec(
            name=name,
            metric="accuracy",
            protocols=("heterophilous", "per-class-20-30"),
            num_nodes=NODES,
            num_edges=count_edges(arrays["edges"], NODES),
            num_features=data.x.shape[1],
            num_classes=CLASSES,
            source="this test",
            licence="none",
            forms=(Form((File("small.npz"),), read_graph),),
        )
        monkeypatch.setitem(specs, name, spec)
    makers = {
        "leaf-count": lambda: leaf_count(3, num_trees=100, num_splits=2),
        "tree-neighbors-match": lambda: tree_neighbors_match(2, num_splits=2),
        **dict.fromkeys(("bottleneck", "bottleneck-10"), lambda: bottleneck(5, 2, num_graphs=3, num_splits=2)),
    }
    for name, make in makers.items():
        monkeypatch.setitem(specs, name, replace(specs[name], make=make))
    monkeypatch.setattr(base, "QUICK_LENGTH", ("train.epochs=1",))
    for module in ("noise", "flood"):
        monkeypatch.setattr(f"gumbel_mpnn.paper.{module}.COUNTS", (0, 10))
    monkeypatch.setattr("gumbel_mpnn.paper.flood.TRAINED_COUNTS", (10,))
    monkeypatch.setattr("gumbel_mpnn.paper.consistency.SAMPLE", 1)
    monkeypatch.setattr(mixtures, "SEEDS", 1)


def test_a_page_for_every_table_and_a_picture_for_every_figure(command, here, stand_ins):
    result = command("reproduce", "all", "--quick", "--device", "cpu", "--out", "pages")
    assert result.exit_code == 0, result.stderr
    searches = {"budget", "readings", "readings-training", "readings-rewiring"}
    names = {*experiments, *analyses, "summary"} - searches - OUR_OWN
    assert {path.stem for path in here.glob("pages/*.md")} == names
    assert {path.stem for path in here.glob("pages/*.csv")} == names
    assert {path.stem for path in here.glob("pages/*.png")} == FIGURES - OUR_OWN
    assert {path.stem for path in here.glob("pages/*.pdf")} == FIGURES - OUR_OWN
    assert result.stdout == f"{len(names)} tables are in pages\n"
    assert (
        "gumbel-mpnn reproduce noise --seeds 1 --quick --out pages/noise.md\n" in (here / "pages/noise.md").read_text()
    )
    with (here / "pages/accuracy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["dataset"] for row in rows} == {"cora", "chameleon"}
    assert {row["n"] for row in rows} == {"2"}
    with (here / "pages/accuracy-unfiltered.csv").open() as file:
        assert {(row["test"], row["verdict"]) for row in csv.DictReader(file)} == {("", "no data")}
    with (here / "pages/summary.csv").open() as file:
        keys = ("page", "dataset", "model", "preset")
        verdicts = {tuple(row[key] for key in keys): row["verdict"] for row in csv.DictReader(file)}
    for preset in ("tuned", "paper", "literal"):
        assert verdicts["accuracy", "cora", "gumbel-mpnn", preset] in ("same", "above", "below")
        assert verdicts["accuracy", "citeseer", "gcn", preset] == "not run"
        assert verdicts["accuracy-unfiltered", "chameleon-unfiltered", "gcn", preset] == "no data"
    assert verdicts["measures", "cora", "", "given graph"] in ("equal", "close", "differs")
    again = command("reproduce", "summary", "--quick", "--format", "csv")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == (here / "pages/summary.csv").read_text()
    with (here / "pages/components.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 42


@pytest.mark.parametrize("name", sorted(OUR_OWN))
def test_a_page_of_a_table_that_is_not_of_the_paper(command, here, stand_ins, name):
    result = command("reproduce", name, "--quick", "--device", "cpu", "--out", f"{name}.md")
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in here.glob(f"{name}.*")} == {
        f"{name}.{kind}" for kind in ("md", "csv", *(("png", "pdf") if name in FIGURES else ()))
    }


def test_quick_takes_few_data_sets_splits_and_epochs(command, here, stand_ins):
    command("reproduce", "rewiring", "--quick", "--device", "cpu")
    folders = sorted({path.parent.name for path in here.rglob("record.json")})
    assert folders == ["split0-seed0", "split1-seed0"]
    assert {path.name for path in (here / "runs/rewiring").iterdir()} <= set(QUICK_DATASETS)


def test_tables_made_from_models_do_runs_again_where_what_was_taken_is_gone_too(command, here, stand_ins):
    def learned():
        """What the summary, which trains nothing, says of the table."""
        rows = json.loads(command("reproduce", "summary", "--quick", "--format", "json").stdout)
        return [row for row in rows if (row["page"], row["dataset"]) == ("consistency", "cora")]

    call = ("reproduce", "consistency", "--only", "cora", "--quick", "--device", "cpu", "--format", "json")
    first, answers = command(*call), learned()
    models = list(here.rglob("model.safetensors"))
    assert len(models) == 10  # two splits of tuned, and of the two presets at two epochs
    assert "not run" not in {row["verdict"] for row in answers}
    for file in models:
        file.unlink()
    assert learned() == answers
    assert command(*call).stdout == first.stdout
    assert not list(here.rglob("model.safetensors"))
    for file in here.rglob("figures-*.json"):
        file.unlink()
    assert {row["verdict"] for row in learned()} == {"not run"}
    again = command(*call)
    assert again.exit_code == 0, again.stderr
    assert again.stdout == first.stdout
    assert sorted(here.rglob("model.safetensors")) == sorted(models)


def test_the_budget_in_small(command, here, stand_ins, monkeypatch):
    monkeypatch.setattr("gumbel_mpnn.paper.budget.TRIALS", 3)
    result = command("reproduce", "budget", "--quick", "--only", "cora", "--device", "cpu", "--out", "budget.md")
    assert result.exit_code == 0, result.stderr
    with (here / "budget.csv").open() as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(MODELS)
    assert {(row["tried"], row["diverged"], row["n"]) for row in rows.values()} == {("3", "0", "2")}
    assert all((float(row["gain"]) <= float(row["gain_stderr"])) == (row["chosen"] == START) for row in rows.values())
    assert "test" not in result.stderr
    assert (here / "runs/budget/cora/gcn").is_dir()


def test_one_that_fails_does_not_keep_the_others_from_being_made(command, here, monkeypatch):
    class Fine(Experiment):
        name, title, headings = "fine", "Fine", {}

        def plan(self):
            return []

        def collect(self, results):
            return [{"a": 1}]

    class Broken(Fine):
        name = "broken"

        def collect(self, results):
            raise ValueError("a bug")

    monkeypatch.setattr("gumbel_mpnn.paper.tables.experiments", {"broken": Broken(), "fine": Fine()})
    monkeypatch.setattr("gumbel_mpnn.paper.tables.analyses", {})
    result = command("reproduce", "all")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "failed: broken: ValueError: a bug"
    assert result.stdout == "2 tables are in results\n"
    assert {path.name for path in (here / "results").glob("*.md")} == {"fine.md", "summary.md"}


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (("--only", "cora"), "all makes every table in full: leave out `only` and `dataset`"),
        (("--dataset", "cora"), "all makes every table in full: leave out `only` and `dataset`"),
        (("--format", "json"), "all writes each table to a page: leave out --format"),
    ],
)
def test_all_takes_no_choice(command, here, option, sentence):
    result = command("reproduce", "all", *option)
    assert (result.exit_code, result.stderr) == (2, f"error: {sentence}\n")
    assert list(here.iterdir()) == []


def test_another_data_set(command, stand_ins):
    call = ("reproduce", "components", "--dataset", "chameleon", "--only", "gcn", "--quick", "--device", "cpu")
    result = command(*call, "--format", "csv")
    kinds = ("tuned", "the paper's", "the paper's for Gumbel-MPNN")
    assert [line.split(",")[:4] for line in result.stdout.splitlines()[1:]] == [
        ["chameleon", str(k), "gcn", settings] for k in range(1, 8) for settings in kinds
    ]


def test_a_task_on_trees_at_another_depth(command):
    call = ("reproduce", "long-range", "--dataset", "tree-neighbors-match-2", "--only", "gcn", "--quick")
    result = command(*call, "--device", "cpu", "--format", "csv")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [(row["dataset"], row["depth"], row["layers"], row["n"]) for row in rows] == [
        ("tree-neighbors-match-2", "2", layers, "2") for layers in "23"
    ]


@pytest.mark.parametrize("name", ["accuracy", "measures"])
def test_another_data_set_where_there_is_no_choice(command, name):
    result = command("reproduce", name, "--dataset", "cora")
    assert result.exit_code == 2
    assert f"the data sets of {name} are fixed: select some of them with `only`" in result.stderr
