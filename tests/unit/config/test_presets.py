"""Every preset file that comes with the package."""

import csv
import dataclasses
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from gumbel_mpnn._util.errors import UnknownNameError, UserError
from gumbel_mpnn.config import presets
from gumbel_mpnn.config.files import to_toml
from gumbel_mpnn.config.presets import Preset, family_base, list_presets, preset_families, read_preset
from gumbel_mpnn.data import specs
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.paper.accuracy import MODELS
from gumbel_mpnn.paper.backbones import DATASETS
from gumbel_mpnn.paper.budget import START
from gumbel_mpnn.training import build_model
from helpers import changed, make_task, replicas, small_data
from quick_fit import resolved

PRESETS = list_presets()
each_preset = pytest.mark.parametrize(("family", "dataset", "model"), PRESETS, ids=list(map("-".join, PRESETS)))


def raw(family, dataset, model):
    file = resources.files("gumbel_mpnn.config.presets") / family / dataset / f"{model}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@each_preset
def test_it_resolves_against_its_model_which_can_be_built(family, dataset, model):
    tables = raw(family, dataset, model)
    for of_the_file in ("source", "tried", "like"):
        tables.pop(of_the_file, None)
    settings = resolved(changed(small_data(), name=dataset), model, preset=family)
    assert (settings.dataset, settings.model) == (dataset, model)
    complete = settings.to_dict()
    for section, values in tables.items():
        assert {name: complete[section][name] for name in values} == values
    assert sum(p.numel() for p in build_model(settings, make_task(), replicas((0, 0))).parameters()) > 0


@each_preset
def test_what_it_is_like_is_the_preset_of_a_backbone_or_of_another_family(family, dataset, model):
    like = raw(family, dataset, model).get("like")
    if like is not None:
        of_family, of_model = like.split("/")
        assert of_model in backbones or (of_model == model and of_family != family)
        assert (of_family, dataset, of_model) in PRESETS


@each_preset
def test_it_does_not_change_with_defaults_that_have_changed_before(family, dataset, model):
    tables = read_preset(family, dataset, model).tables
    assert "patience" in tables["train"]
    if model == "gumbel-mpnn":
        assert {"scorer", "prior"} <= tables["rewiring"].keys()


@each_preset
def test_it_says_where_it_comes_from(family, dataset, model):
    source = raw(family, dataset, model)["source"]
    assert isinstance(source, str)
    assert len(source) > 10
    assert "\n" not in source


@each_preset
def test_it_names_a_known_data_set_and_model(family, dataset, model):
    assert dataset in specs
    assert model == model.lower()
    protocol = raw(family, dataset, model).get("data", {}).get("protocol")
    assert protocol is None or protocol in specs[dataset].protocols


@pytest.mark.parametrize("dataset", DATASETS)
def test_all_models_have_the_same_epochs(dataset):
    assert len({resolved(dataset, model).train.epochs for model in MODELS}) == 1


@pytest.mark.parametrize(("dataset", "model"), [(d, m) for family, d, m in PRESETS if family == "start"])
def test_a_start_is_kept_where_something_else_was_chosen(dataset, model):
    start, tuned = (resolved(dataset, model, preset=family) for family in ("start", "tuned"))
    assert start != tuned


CHOSEN = Path(__file__).parents[3] / "docs" / "results" / "budget.csv"


@pytest.mark.skipif(not CHOSEN.is_file(), reason="the pages of results are not here")
def test_presets_are_what_the_page_of_the_budget_says():
    with CHOSEN.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tried = {(d, m): raw("tuned", d, m).get("tried") for family, d, m in PRESETS if family == "tuned"}
    assert {key: count for key, count in tried.items() if count is not None} == {
        (row["dataset"], row["model"]): int(row["tried"]) for row in rows
    }
    for row in rows:
        dataset, model, chosen = row["dataset"], row["model"], row["chosen"]
        if chosen == START:
            assert ("start", dataset, model) not in PRESETS
        else:
            start = resolved(dataset, model, preset="start", overrides=chosen.split(", "))
            assert resolved(dataset, model) == start


def test_a_preset_like_another_has_all_that_it_does_not_change():
    backbone, rewired = (resolved("cora", model) for model in ("gcn", "gumbel-mpnn"))
    assert rewired.train == backbone.train
    assert rewired.data == backbone.data
    assert backbone.options.items() <= rewired.options.items()


@pytest.mark.parametrize("dataset", ["cora", "citeseer"])
def test_with_few_labels_gumbel_mpnn_differs_from_the_gcn_in_the_rewiring_only(dataset):
    backbone, rewired = (resolved(dataset, model, preset="few-labels") for model in ("gcn", "gumbel-mpnn"))
    assert (rewired.train, rewired.data) == (backbone.train, backbone.data)
    assert backbone.options.items() <= rewired.options.items()


def test_all_families_are_there():
    assert preset_families() == ["few-labels", "literal", "paper", "robust", "start", "tuned"]
    assert len(set(PRESETS)) == len(PRESETS)


def test_the_paper_has_every_model_on_each_of_its_data_sets():
    datasets = {dataset for family, dataset, _ in PRESETS if family == "paper"}
    assert len(datasets) == 14
    assert {(d, m) for family, d, m in PRESETS if family == "paper"} >= {
        (d, m) for d in datasets for m in ("mlp", "gcn", "sage", "gat", "gumbel-mpnn")
    }


PAPER = sorted({dataset for family, dataset, _ in PRESETS if family == "paper"})


@pytest.mark.parametrize("dataset", PAPER)
@pytest.mark.parametrize("model", ["mlp", "gcn", "sage", "gat", "drop-edge", "sdrf"])
def test_models_without_an_edge_model_are_those_of_the_paper_in_literal(dataset, model):
    assert family_base("literal") == "paper"
    assert resolved(dataset, model, preset="literal") == resolved(dataset, model, preset="paper")


@pytest.mark.parametrize("dataset", PAPER)
def test_literal_differs_from_the_paper_in_what_is_ours(dataset):
    literal, paper = (resolved(dataset, "gumbel-mpnn", preset=family) for family in ("literal", "paper"))
    assert (literal.data, literal.train, literal.options) == (paper.data, paper.train, paper.options)
    ours = {"scorer": "literal", "origin": "none", "symmetric": False}
    as_printed = {"weighting": "entropy", "prototypes": "labels", "factor": "printed"}
    names = {"lc": ["labels"], "pc": ["labels"], "mix": ["labels", *as_printed]}.get(paper.rewiring.regularizer, [])
    options = {f"regularizer.{name}": {"labels": "one-hot", **as_printed}[name] for name in names}
    assert literal.rewiring == dataclasses.replace(paper.rewiring, **ours, options=options)


@pytest.mark.parametrize("dataset", PAPER)
def test_all_models_of_the_paper_have_the_epochs_of_the_data_set(dataset):
    found = {resolved(dataset, model, preset=family).train for family in ("paper", "literal") for model in MODELS}
    assert len({(train.epochs, train.patience) for train in found}) == 1


def test_another_backbone_leaves_a_preset_that_is_like_one_of_its_model_as_it_is():
    ours, other = (resolved("cora", "gumbel-mpnn", preset="literal", overrides=o) for o in ([], ["model.backbone=gat"]))
    assert other == dataclasses.replace(ours, options={**ours.options, "backbone": "gat"})


def test_every_model_of_the_demo_has_a_preset():
    assert {model for family, dataset, model in PRESETS if (family, dataset) == ("tuned", "demo")} >= {"mlp", "gcn"}


def test_presets_are_found_by_family_data_set_and_model(tmp_path, monkeypatch):
    folder = tmp_path / "tuned" / "cora"
    folder.mkdir(parents=True)
    (folder / "gcn.toml").write_text('source = "this test"\ntried = 7\n[train]\nlr = 0.5\n', encoding="utf-8")
    (tmp_path / "paper").mkdir()
    monkeypatch.setattr(presets.resources, "files", lambda package: tmp_path)
    assert read_preset("tuned", "cora", "gcn") == Preset("gcn", {"train": {"lr": 0.5}}, "this test", 7)
    assert read_preset("tuned", "cora", "gat") is None
    assert read_preset("paper", "cora", "gcn") is None
    assert preset_families() == ["paper", "tuned"]
    assert list_presets() == [("tuned", "cora", "gcn")]
    with pytest.raises(UnknownNameError, match=r"family of presets called 'tunde': did you mean 'tuned'\?"):
        read_preset("tunde", "cora", "gcn")


class TestOwnFamilies:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        path = presets.own_preset("mine", "cora", "gcn")
        path.parent.mkdir(parents=True)
        path.write_text('source = "me"\ntried = 3\n[train]\nlr = 0.5\n[tuning]\nval = 0.8\n')
        (path.parent / ".gcn.toml.1-0123abcd").write_text("half")
        return path.parents[2]

    def test_are_found_like_others(self):
        assert read_preset("mine", "cora", "gcn") == Preset("gcn", {"train": {"lr": 0.5}}, "me", 3)
        assert read_preset("mine", "cora", "gat") is None
        assert preset_families() == [*presets.packaged_families(), "mine"]
        assert ("mine", "cora", "gcn") in list_presets()
        assert len(list_presets()) == len(PRESETS) + 1

    def test_share_the_settings_of_their_family_and_of_a_data_set(self, folder):
        (folder / "mine" / "family.toml").write_text(
            'source = "me"\n[train]\nlr = 0.1\nepochs = 7\npatience = 3\n[datasets.cora.train]\nepochs = 5\n'
        )
        (folder / "mine" / "actor").mkdir()
        (folder / "mine" / "actor" / "gcn.toml").write_text("[model]\ndropout = 0.5\n")
        assert read_preset("mine", "cora", "gcn").tables == {"train": {"lr": 0.5, "epochs": 5, "patience": 3}}
        assert read_preset("mine", "actor", "gcn").tables == {
            "train": {"lr": 0.1, "epochs": 7, "patience": 3},
            "model": {"dropout": 0.5},
        }
        assert read_preset("mine", "pubmed", "gcn") is None

    @pytest.mark.parametrize(("like", "lr"), [("mine/gcn", 0.5), ("paper/gcn", 0.1)])
    def test_what_a_family_shares_is_below_its_own_presets_and_above_others(self, folder, like, lr):
        (folder / "mine" / "family.toml").write_text("[train]\nlr = 0.1\n")
        (folder / "mine" / "cora" / "sdrf.toml").write_text(f'like = "{like}"\n[model]\ndropout = 0.5\n')
        found = read_preset("mine", "cora", "sdrf").tables
        assert (found["train"]["lr"], found["model"]["dropout"]) == (lr, 0.5)

    @pytest.mark.parametrize(
        ("file", "content", "sentence"),
        [
            (
                "family.toml",
                "datasets = 3",
                r"'datasets' in .+family\.toml must be a table",
            ),
            ("family.toml", "[datasets]\ncora = 3", "settings must be tables"),
            ("family.toml", "like = 3", r"'like' in .+family\.toml must be text, but is 3"),
            ("cora/gcn.toml", "tried = true", r"'tried' in .+gcn\.toml must be a whole number, but is True"),
            ("cora/gcn.toml", 'like = "mine/gcn"', "the preset mine/gcn on cora is like itself"),
            ("cora/gcn.toml", 'like = "tuned/gnc"', "mine/gcn on cora is like 'tuned/gnc', which has no preset there"),
            ("cora/gcn.toml", "source = [1]", "must be text"),
            ("cora/gcn.toml", "train = 3", "setting 'train' must be a table"),
        ],
    )
    def test_values_of_the_wrong_type(self, folder, file, content, sentence):
        (folder / "mine" / file).write_text(content)
        with pytest.raises(UserError, match=sentence):
            read_preset("mine", "cora", "gcn")

    def test_a_family_like_itself(self, folder):
        (folder / "mine" / "family.toml").write_text('like = "mine"')
        with pytest.raises(UserError, match="the preset mine/gat on cora is like itself"):
            read_preset("mine", "cora", "gat")

    def test_do_not_hide_those_of_the_package(self, folder):
        (folder / "mine").rename(folder / "tuned")
        assert read_preset("tuned", "cora", "gcn").source != "me"
        assert preset_families() == presets.packaged_families()

    def test_none_at_all(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nowhere"))
        assert presets.own_families() == []


@pytest.mark.parametrize(
    "value", ["plain", 'a "b" \\ c', "ä\n\t\x00\x7f", "", 3, -1, 0.1, 1e-30, 1e300, True, False, "regularizer.margin"]
)
def test_what_is_written_as_toml_is_read_again(value):
    content = {"x": value, "table": {"y": value, "a.b": value, "none": None}, "z": 1}
    assert tomllib.loads(to_toml(content)) == {"x": value, "table": {"y": value, "a.b": value}, "z": 1}
