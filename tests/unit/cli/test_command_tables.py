"""The verbs that only show: data, presets, runs, doctor."""

import json
from importlib import import_module

import pytest
import torch
from quick_options import GCN, QUICK
from torch_geometric.data import Data

from gumbel_mpnn import __version__
from gumbel_mpnn.config.presets import list_presets
from gumbel_mpnn.config.rungs import read_rungs
from gumbel_mpnn.data import specs
from gumbel_mpnn.data.attacked import ATTACKS
from quick_fit import resolved


class TestData:
    def test_every_data_set_is_listed(self, command, tiny):
        rows = {row["name"]: row for row in json.loads(command("data", "--format", "json").stdout)}
        assert list(rows) == list(specs)
        assert rows["tiny"] == {
            "name": "tiny",
            "state": "present",
            "nodes": 24,
            "edges": tiny.num_edges,
            "features": 6,
            "classes": 3,
            "metric": "accuracy",
            "protocol": "heterophilous",
            "missing": "",
        }
        assert rows["cora"]["state"] == "missing"
        assert rows["cora"]["missing"] == "planetoid/cora/raw/ind.cora.tx, planetoid/cora/raw/ind.cora.allx, …"
        assert rows["minesweeper"]["missing"] == "heterophilous/minesweeper.npz"
        assert rows["minesweeper"]["metric"] == "roc_auc"
        assert (rows["leaf-count-3"]["state"], rows["leaf-count-3"]["nodes"]) == ("generated", 1260)

    def test_a_structure_without_features_is_told(self, command, tmp_path):
        path = tmp_path / "elsewhere/incomplete/roman_empire_without_features.npz"
        path.parent.mkdir(parents=True)
        path.touch()
        shown = command("data", "--data-root", tmp_path / "elsewhere").stdout
        (line,) = (line for line in shown.splitlines() if line.startswith("roman-empire "))
        assert " without features " in line

    def test_nothing_is_downloaded_or_made(self, command, here, tmp_path):
        result = command("data")
        assert result.exit_code == 0
        assert result.stderr.startswith("searched in ")
        assert list(tmp_path.iterdir()) == [here]

    def test_one_data_set_as_json(self, command, tiny):
        shown = json.loads(command("data", "show", "TINY", "--format", "json").stdout)
        expected = {
            "name": "tiny",
            "metric": "accuracy",
            "nodes": 24,
            "edges": tiny.num_edges,
            "features": 6,
            "classes": 3,
            "class_sizes": [8, 8, 8],
            "unlabelled": 0,
            "protocol": "heterophilous",
            "splits": 2,
            "train": 8,
            "val": 8,
            "test": 8,
            "protocols": ["heterophilous", "random-60-20-20"],
            "source": "this test",
            "licence": "none",
        }
        assert {key: shown[key] for key in expected} == expected
        assert shown["degree_min"] == 0
        assert shown["degree_mean"] == pytest.approx(2 * tiny.num_edges / 24)
        assert shown["isolated_nodes"] >= 1

    @pytest.mark.usefixtures("tiny")
    def test_one_data_set_as_text(self, command):
        lines = command("data", "show", "tiny", "--protocol", "random-60-20-20", "--no-features").stdout.splitlines()
        shown = dict(line.split(maxsplit=1) for line in lines[2:])
        assert (shown["features"], shown["protocol"], shown["splits"]) == ("None", "random-60-20-20", "10")
        assert shown["class_sizes"] == "8, 8, 8"
        assert (shown["train"], shown["val"], shown["test"]) == ("15", "6", "3")
        assert "attack" not in shown

    @pytest.mark.usefixtures("attacked")
    def test_a_data_set_that_was_attacked(self, command):
        clean = json.loads(command("data", "show", "attacked-small", "--format", "json").stdout)
        assert (clean["attack"], clean["attacks"], clean["edges"], clean["test"]) == ("none", list(ATTACKS), 12, 4)
        arguments = ("data", "show", "attacked-small", "--attack", "nettack-1", "--format", "json")
        shown = json.loads(command(*arguments).stdout)
        assert (shown["attack"], shown["edges"], shown["test"]) == ("nettack-1", 13, 2)


class TestPresets:
    def test_all_are_listed(self, command):
        rows = json.loads(command("presets", "--format", "json").stdout)
        assert [(row["family"], row["dataset"], row["model"]) for row in rows] == list_presets()

    @pytest.mark.parametrize("family", ["tuned", "paper"])
    def test_one_as_json(self, command, family):
        shown = json.loads(command("presets", "show", "cora", "gat", "--preset", family, "--format", "json").stdout)
        assert shown == resolved("cora", "gat", preset=family).to_dict()

    @pytest.mark.parametrize("model", ["sdrf", "drop-edge"])
    def test_one_that_is_borrowed_from_the_backbone(self, command, model):
        result = command("presets", "show", "roman-empire", model, "--format", "json")
        assert json.loads(result.stdout) == resolved("roman-empire", model).to_dict()
        assert (
            result.stderr
            == f"there is no tuned preset for {model} on roman-empire: the preset of its backbone is used\n"
        )

    def test_one_of_a_graph_that_is_generated(self, command):
        assert command("presets", "show", "demo", "gcn").exit_code == 0

    def test_the_defaults_for_own_data(self, command):
        result = command("presets", "show", "--model", "gumbel-mpnn", "--format", "json")
        assert json.loads(result.stdout) == resolved(Data(), "gumbel-mpnn", preset=None).to_dict()
        assert result.stderr == "no preset applies to own data: these are the default settings of gumbel-mpnn\n"

    def test_the_model_may_be_an_option(self, command):
        one, other = command("presets", "show", "cora", "gcn"), command("presets", "show", "cora", "--model", "gcn")
        assert one.stdout == other.stdout

    def test_the_rungs_of_auto(self, command):
        result = command("presets", "show", "--model", "auto", "--format", "json")
        rows = json.loads(result.stdout)
        assert list(dict.fromkeys(row["rung"] for row in rows)) == [rung.name for rung in read_rungs()]
        assert {"rung": "gcn-deep", "model": "gcn", "setting": "model.num_layers", "value": "5"} in rows
        assert result.stderr == (
            "auto uses no preset: these are the settings of its rungs, which are otherwise the defaults of their"
            " models\n"
        )

    def test_one_as_text(self, command):
        settings = resolved("cora", "gcn")
        lines = command("presets", "show", "cora", "gcn").stdout.splitlines()
        shown = dict((*line.split(maxsplit=1), "")[:2] for line in lines[2:])
        assert shown["model.name"] == "gcn"
        assert shown["model.dropout"] == str(settings.options["dropout"])
        assert shown["train.epochs"] == str(settings.train.epochs)
        assert shown["data.protocol"] == ""


@pytest.mark.usefixtures("tiny")
class TestRuns:
    def test_one_row_for_each_setting(self, command):
        command("train", "tiny", *GCN)
        command("train", "tiny", *QUICK, "--model", "mlp", "--splits", "1")
        rows = json.loads(command("runs", "--format", "json").stdout)
        assert [(row["dataset"], row["model"], row["metric"], row["n"]) for row in rows] == [
            ("tiny", "gcn", "accuracy", 2),
            ("tiny", "mlp", "accuracy", 1),
        ]
        trained = json.loads(command("train", "tiny", *GCN, "--format", "json").stdout)
        assert rows[0]["test"] == pytest.approx(trained["test"]["mean"])
        assert rows[0]["std"] == pytest.approx(trained["test"]["std"])
        assert rows[0]["unit"] == trained["unit"] == "share"
        assert trained["runs"][0] == f"{rows[0]['folder']}/split0-seed0"

    def test_another_folder(self, command):
        command("train", "tiny", *GCN, "--runs", "kept")
        assert len(json.loads(command("runs", "--runs", "kept", "--format", "json").stdout)) == 1
        assert json.loads(command("runs", "--format", "json").stdout) == []

    def test_no_runs_as_text(self, command, here):
        result = command("runs")
        assert result.exit_code == 0
        assert result.stdout.startswith("data set  model  metric  runs ")
        assert list(here.iterdir()) == []


def test_doctor(command, tmp_path):
    rows = {row["what"]: row["found"] for row in json.loads(command("doctor", "--format", "json").stdout)}
    assert rows["gumbel-mpnn"] == __version__
    assert rows["torch"] == torch.__version__
    assert rows["GUMBEL_MPNN_DATA"] == str(tmp_path / "data")
    assert rows["cache folder"] == str(tmp_path / "cache" / "gumbel-mpnn")
    assert rows["typer"] != "not installed"


def test_doctor_names_what_is_not_installed(command, monkeypatch):
    monkeypatch.setattr(import_module("gumbel_mpnn.cli.doctor"), "PACKAGES", ("no-such-package",))
    assert command("doctor").stdout.splitlines()[-1].split(maxsplit=1) == ["no-such-package", "not installed"]
