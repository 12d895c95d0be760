"""Every registered model has a search space, and everything in it is a setting that the model accepts."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from gumbel_mpnn.candidates import candidates
from gumbel_mpnn.nn import backbones, models
from gumbel_mpnn.rewiring.regularizers import regularizers
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.runs.study import default_space, read_values, search_space
from gumbel_mpnn.settings.settings import COMPONENTS
from gumbel_mpnn.training import models as all_models
from helpers import changed, edges, small_data

DATA = small_data()
ANYWHERE = {"data.features", "train.lr", "train.weight_decay"}
KINDS = {"candidates": candidates, "scorer": scorers, "regularizer": regularizers}


def space_of(model, data=DATA, **arguments):
    spec = RunSpec.of(data, model, preset=None, **arguments)
    return search_space(spec, None, spec.read())


@pytest.mark.parametrize("model", list(all_models))
def test_every_model_has_a_space_of_which_every_value_is_accepted(model):
    space = space_of(model)  # checks every value
    assert space.keys() >= ANYWHERE
    assert "model.hidden_channels" in space
    assert {f"model.{option}" for option in models.space(model)} <= space.keys()
    assert ("rewiring.keep" in space) == models[model].rewires


@pytest.mark.parametrize("model", list(all_models))
def test_a_model_declares_its_own_options(model):
    own, known = models.space(model), models.defaults(model)
    assert own.keys() <= known.keys()
    for option, value in own.items():
        values = read_values(value, option)
        values = [values["low"], values["high"]] if isinstance(values, dict) else values
        assert len(set(values)) > 1
        assert {type(each) for each in values} == {type(known[option])}


@pytest.mark.parametrize("model", ["gumbel-mpnn", "drop-edge", "sdrf"])
def test_a_model_with_a_backbone_searches_that_of_the_backbone_too(model):
    assert "model.heads" not in space_of(model)
    space = space_of(model, overrides=["model.backbone=gat"])
    assert space["model.heads"] == [1, 4, 8]
    assert {f"model.{option}" for option in backbones.space("gat")} <= space.keys()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, registry in KINDS.items() for name in registry])
def test_a_component_declares_options_that_it_has(kind, name):
    space = KINDS[kind].space(name)
    assert space.keys() <= KINDS[kind].defaults(name).keys()
    if kind == "regularizer":
        assert {"low", "high"} <= space["weight"].keys()


def test_options_of_a_component_are_searched_with_it():
    space = space_of("gumbel-mpnn")
    assert space["rewiring.candidates.per_node"] == [3, 5, 10]
    assert space["rewiring.scorer.channels"] == [32, 64, 128]
    fixed = space_of("gumbel-mpnn", overrides=["rewiring.candidates=two_hop", "rewiring.scorer=bilinear"])
    assert fixed["rewiring.candidates.per_node"] == [3, 5, 10]
    assert fixed["rewiring.scorer.channels"] == [32, 64, 128]
    assert not {"rewiring.candidates", "rewiring.scorer"} & fixed.keys()
    without = space_of("gumbel-mpnn", overrides=["rewiring.scorer=literal"])
    assert "rewiring.scorer.channels" not in without


@pytest.mark.parametrize(("kind", "registry"), KINDS.items())
def test_components_that_share_an_option_search_the_same_values(kind, registry):
    of_all = {}
    for name in registry:
        for option, values in registry.space(name).items():
            assert of_all.setdefault(option, values) == values


def test_what_the_user_sets_is_not_searched():
    open_ = space_of("gcn", overrides=["train.lr=0.01"], settings={"model": {"norm": "layer"}})
    assert not {"train.lr", "model.norm"} & open_.keys()
    assert "model.dropout" in open_


def test_what_the_model_sets_itself_is_not_searched():
    open_ = space_of("random")
    assert not {"rewiring.scorer", "rewiring.prior"} & open_.keys()
    assert "rewiring.keep" in open_


def test_candidates_of_the_data_are_not_replaced():
    assert "rewiring.candidates" not in space_of("gumbel-mpnn", changed(DATA, candidate_index=edges((0, 5))))


def test_a_new_model_gets_a_space_for_free(monkeypatch):
    monkeypatch.setattr(models, "_components", dict(models._components))
    monkeypatch.setattr(models, "_names", dict(models._names))
    monkeypatch.setattr(models, "_parts", dict(models._parts))

    @models.register("half")
    class Half(backbones["gcn"]):
        space: ClassVar[Mapping[str, Any]] = {"share": {"low": 0.1, "high": 0.9}}

        def __init__(self, in_channels, *, share: float = 0.5, **options):
            super().__init__(in_channels, **options)

    assert space_of("half")["model.share"] == {"low": 0.1, "high": 0.9, "log": False}
    assert space_of("half").keys() == {*space_of("gcn"), "model.share"}


def test_the_components_of_rewiring_are_those_that_have_spaces():
    assert set(COMPONENTS) == set(KINDS)
    spec = RunSpec.of(DATA, "gumbel-mpnn", preset=None)
    options = [name.split(".")[1] for name in default_space(spec, spec.read()) if name.count(".") == 2]
    assert set(options) <= set(KINDS)
