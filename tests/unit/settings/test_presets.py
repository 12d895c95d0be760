"""Presets that come with the package, families of the user's own, and the rungs of `auto`."""

import csv
import dataclasses
import tomllib
from pathlib import Path

import pytest

from experiments.studies.budget import START, START_FILE
from gumbel_mpnn.data import specs
from gumbel_mpnn.nn import models
from gumbel_mpnn.settings import presets
from gumbel_mpnn.settings.presets import Preset, list_presets, preset_families, read_preset, save_preset
from gumbel_mpnn.training import build_model
from gumbel_mpnn.util.errors import UnknownNameError, UserError
from helpers import changed, make_task, replicas, small_data
from quick_fit import resolved

PRESETS = list_presets()
PAPER = sorted({dataset for family, dataset, _ in PRESETS if family == "paper"})


@pytest.mark.parametrize(("family", "dataset", "model"), PRESETS, ids=list(map("-".join, PRESETS)))
def test_a_preset_is_complete_says_where_it_comes_from_and_builds_its_model(family, dataset, model):
    assert dataset in specs
    assert model in models
    preset = read_preset(family, dataset, model)
    assert len(preset.source) > 10
    assert {"epochs", "patience"} <= preset.tables["train"].keys()
    settings = resolved(changed(small_data(), name=dataset), model, preset=family)
    complete = settings.to_dict()
    assert all(complete[table][name] == value for table, of in preset.tables.items() for name, value in of.items())
    assert sum(p.numel() for p in build_model(settings, make_task(), replicas((0, 0))).parameters()) > 0


def test_all_families_are_there():
    assert preset_families() == ["few-labels", "literal", "paper", "robust", "tuned"]
    assert len(set(PRESETS)) == len(PRESETS) == 184
    assert {(dataset, model) for family, dataset, model in PRESETS if family == "paper"} == {
        (dataset, model) for dataset in PAPER for model in ("mlp", "gcn", "sage", "gat", "gumbel-mpnn")
    }
    assert len(PAPER) == 14


@pytest.mark.parametrize("dataset", PAPER)
def test_literal_differs_from_the_paper_in_the_rewiring_only(dataset):
    for model in ("mlp", "gcn", "sage", "gat", "drop-edge", "sdrf"):
        assert resolved(dataset, model, preset="literal") == resolved(dataset, model, preset="paper")
    literal, paper = (resolved(dataset, "gumbel-mpnn", preset=family) for family in ("literal", "paper"))
    assert (literal.data, literal.train, literal.options) == (paper.data, paper.train, paper.options)
    ours = {"scorer": "literal", "origin": "none", "symmetric": False}
    options = {key: value for key, value in literal.rewiring.options.items() if not key.startswith("scorer.")}
    as_printed = {"labels": "one-hot", "weighting": "entropy", "prototypes": "labels", "factor": "printed"}
    for name, value in paper.rewiring.options.items():
        if not name.startswith("scorer."):
            assert options[name] == (as_printed.get(name.partition(".")[2], value))
    assert dataclasses.replace(literal.rewiring, options={}) == dataclasses.replace(paper.rewiring, **ours, options={})


def test_a_preset_like_that_of_a_backbone_has_all_that_it_does_not_change():
    for family, dataset in (("tuned", "cora"), ("few-labels", "cora"), ("few-labels", "citeseer")):
        backbone, rewired = (resolved(dataset, model, preset=family) for model in ("gcn", "gumbel-mpnn"))
        assert (rewired.train, rewired.data) == (backbone.train, backbone.data)
        assert backbone.options.items() <= rewired.options.items()
    over_sage = resolved("cora", "gumbel-mpnn", overrides=["model.backbone=sage"])
    assert over_sage.train == resolved("cora", "sage").train != resolved("cora", "gcn").train


CHOSEN = Path(__file__).parents[3] / "docs" / "results" / "budget.csv"


@pytest.mark.skipif(not CHOSEN.is_file(), reason="the pages of results are not here")
def test_presets_are_what_the_page_of_the_budget_says():
    with CHOSEN.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tried = {(d, m): read_preset("tuned", d, m).tried for family, d, m in PRESETS if family == "tuned"}
    assert {key: count for key, count in tried.items() if count is not None} == {
        (row["dataset"], row["model"]): int(row["tried"]) for row in rows
    }
    before = tomllib.loads(START_FILE.read_text(encoding="utf-8"))
    for row in rows:
        dataset, model, chosen = row["dataset"], row["model"], row["chosen"]
        assert (chosen == START) == (model not in before.get(dataset, {}))
        if chosen != START:
            assert resolved(dataset, model) == resolved(dataset, model, preset=START_FILE, overrides=chosen.split(", "))


FAMILY = """
train.epochs = 7
train.lr = 0.1
[cora]
train.epochs = 5
tried = 3
[gcn]
source = "me"
model.dropout = 0.5
[sdrf]
like = "gcn"
[cora.gcn]
train.lr = 0.5
[cora.sage]
model.dropout = 0.25
[cora.sdrf]
model.iterations = 2
[actor.gcn]
rewiring.candidates = {name = "two_hop", per_node = 3}
"""


class TestOwnFamilies:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        presets.own_folder().mkdir(parents=True)
        (presets.own_folder() / "mine.toml").write_text(FAMILY)
        return presets.own_folder()

    def test_entries_lie_over_each_other_from_the_general_to_the_special(self):
        tables = {"train": {"epochs": 5, "lr": 0.5}, "model": {"dropout": 0.5}}
        assert read_preset("mine", "cora", "gcn") == Preset("gcn", tables, "me", 3)
        assert read_preset("mine", "actor", "gcn").tables == {
            "train": {"epochs": 7, "lr": 0.1},
            "model": {"dropout": 0.5},
            "rewiring": {"candidates": "two_hop", "candidates.per_node": 3},
        }
        assert read_preset("mine", "cora", "gat") is None
        assert read_preset("mine", "pubmed", "gcn") is None

    def test_one_that_is_like_another_lies_over_it_or_over_the_backbone_that_is_asked_for(self):
        train = {"epochs": 5, "lr": 0.5}
        assert read_preset("mine", "cora", "sdrf").tables == {
            "train": train,
            "model": {"dropout": 0.5, "iterations": 2},
        }
        over_sage = read_preset("mine", "cora", "sdrf", "sage").tables
        assert over_sage == {"train": {"epochs": 5, "lr": 0.1}, "model": {"dropout": 0.25, "iterations": 2}}
        assert read_preset("mine", "cora", "sdrf", "gat") == read_preset("mine", "cora", "sdrf")

    def test_a_family_may_lie_over_another(self, folder):
        (folder / "other.toml").write_text('over = "mine"\n[cora.gcn]\ntrain.epochs = 9\n')
        assert read_preset("other", "cora", "gcn").tables["train"] == {"epochs": 9, "lr": 0.5}
        assert read_preset("other", "actor", "gcn") == read_preset("mine", "actor", "gcn")

    def test_they_are_listed_and_do_not_hide_those_of_the_package(self, folder):
        (folder / "tuned.toml").write_text(FAMILY)
        assert preset_families() == [*presets.packaged_families(), "mine"]
        assert set(list_presets()) - set(PRESETS) == {
            ("mine", "cora", "gcn"),
            ("mine", "cora", "sage"),
            ("mine", "cora", "sdrf"),
            ("mine", "actor", "gcn"),
        }
        with pytest.raises(UnknownNameError, match=r"family of presets called 'tunde': did you mean 'tuned'\?"):
            read_preset("tunde", "cora", "gcn")

    def test_one_is_saved_beside_the_others(self):
        tables = {"train": {"lr": 0.5}, "rewiring": {"scorer": "bilinear", "scorer.channels": 8}}
        save_preset("mine", "texas", "gcn", {"source": "a search", "tried": 2, "tuning": {"val": 0.5}, **tables})
        found = read_preset("mine", "texas", "gcn")
        assert (found.source, found.tried) == ("a search", 2)
        assert found.tables == {**tables, "train": {"epochs": 7, "lr": 0.5}, "model": {"dropout": 0.5}}
        assert read_preset("mine", "cora", "gcn").tables["train"]["lr"] == 0.5
        assert ("mine", "texas", "gcn") in list_presets()

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("cora = 3", "'cora' in the family of presets mine must be a table, but is 3"),
            ("cora.gcn = 3", "'gcn' in the family of presets mine must be a table, but is 3"),
            ("cora.gcn.train = 3", "setting 'train' must be a table, but is 3"),
            ('cora.gcn.like = "gcn"', "the preset mine/cora/gcn lies over itself"),
            ('over = "mine"', "the preset mine/cora/gcn lies over itself"),
            ('cora.gcn.like = "gnc"', "the preset mine/cora/gcn is like 'gnc', which has no preset there"),
        ],
    )
    def test_mistakes_are_told(self, folder, content, sentence):
        (folder / "mine.toml").write_text(content)
        with pytest.raises(UserError, match=sentence):
            read_preset("mine", "cora", "gcn")

    @pytest.mark.parametrize("name", ["tuned", "auto", "none", "", "../x", "a.toml", "a b"])
    def test_names_that_a_family_cannot_have(self, name):
        with pytest.raises(UserError, match="name"):
            save_preset(name, "cora", "gcn", {})


def test_rungs_are_in_order_and_start_from_others():
    rungs = {rung.name: rung for rung in presets.read_rungs()}
    assert (len(rungs), next(iter(rungs)), rungs["judged-appnp"].model) == (19, "mlp", "gumbel-mpnn")
    assert all(rung.about and {"epochs", "patience"} <= rung.tables["train"].keys() for rung in rungs.values())
    assert rungs["gcn-regular"].tables["model"] == rungs["gcn"].tables["model"] | {"input_dropout": 0.5}
    assert (rungs["gcn"].suits(False), rungs["mlp"].suits(False), rungs["structure-mlp"].suits(False)) == (
        True,
        False,
        True,
    )
