"""Registries: names, aliases, and options from signatures."""

from typing import ClassVar

import pytest

from gumbel_mpnn.settings.registry import Registry
from gumbel_mpnn.util.errors import UnknownNameError, UserError


class Base:
    space: ClassVar = {"width": [4, 8]}

    def __init__(self, channels, width=8, rate=0.5, *, norm="none", residual=False, seeds=None):
        pass


class Plain(Base):
    pass


class Special(Base):
    space: ClassVar = {"heads": [1, 2]}

    def __init__(self, channels, *args, heads=2, rate=0.25, **options):
        super().__init__(channels, *args, rate=rate, **options)


class Whole:
    def __init__(self, channels, part="plain", depth=1, **options):
        pass


OF_PLAIN = {"width": 8, "rate": 0.5, "norm": "none", "residual": False}
OF_SPECIAL = {**OF_PLAIN, "rate": 0.25, "heads": 2}


@pytest.fixture
def registry():
    registry = Registry("layer", reserved=("seeds",))
    registry.register("plain")(Plain)
    assert registry.register("special-one", "special", "other")(Special) is Special
    return registry


@pytest.mark.parametrize("name", ["special-one", "special_one", "Special_One", "SPECIAL", "other"])
def test_names_and_aliases_lead_to_the_component(registry, name):
    assert registry[name] is Special
    assert registry.canonical(name) == "special-one"
    assert name in registry
    assert list(registry) == ["plain", "special-one"]


@pytest.mark.parametrize("look_up", [Registry.__getitem__, Registry.canonical, Registry.defaults])
def test_the_nearest_name_is_suggested(registry, look_up):
    assert "plian" not in registry
    with pytest.raises(UnknownNameError, match=r"^there is no layer called 'plian': did you mean 'plain'\?$"):
        look_up(registry, "plian")


@pytest.mark.parametrize("names", [("plain",), ("PLAIN",), ("new", "special_one"), ("new", "other")])
def test_a_name_is_given_once(registry, names):
    with pytest.raises(ValueError, match=f"a layer called '{names[-1]}' is registered already"):
        registry.register(*names)(Plain)
    assert "new" not in registry


def test_options_are_keyword_arguments_of_the_class_and_its_base_classes(registry):
    assert registry.defaults("plain") == OF_PLAIN
    assert registry.defaults("special") == OF_SPECIAL
    assert registry.all_defaults() == OF_SPECIAL
    assert registry.space("special") == {"width": [4, 8], "heads": [1, 2]}


def test_the_given_options_are_completed_by_the_defaults(registry):
    completed = registry.complete("special", {"heads": 4, "norm": "layer", "rate": 1})
    assert completed == {**OF_SPECIAL, "heads": 4, "norm": "layer", "rate": 1.0}
    assert type(completed["rate"]) is float
    assert registry.defaults("special")["heads"] == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"widht": 8}, "^layer 'plain' has no option 'widht': did you mean 'width'"),
        ({"heads": 2}, "^layer 'plain' has no option 'heads'"),
        ({"seeds": None}, "^layer 'plain' has no option 'seeds'"),
        ({"width": "8"}, "^option 'width' of layer 'plain' must be of type int, like 8, but is '8'"),
        ({"width": True}, "of type int"),
        ({"width": 8.0}, "of type int"),
        ({"width": 2**63}, "an integer of 64 bits"),
        ({"rate": True}, "of type float"),
        ({"rate": float("nan")}, "must be finite"),
        ({"rate": 10**400}, "must be finite"),
        ({"norm": 1}, "of type str"),
        ({"residual": 1}, "of type bool"),
    ],
)
def test_what_is_unknown_or_of_a_wrong_type_is_refused(registry, options, sentence):
    with pytest.raises(UserError, match=sentence):
        registry.complete("plain", options)


class TestParts:
    @pytest.fixture
    def wholes(self, registry):
        wholes = Registry("whole", reserved=("norm",))
        wholes.register("whole", part=registry)(Whole)
        return wholes

    def test_options_of_the_part_that_is_named_are_options_of_the_whole(self, wholes):
        of_plain, of_special = ({k: v for k, v in of.items() if k != "norm"} for of in (OF_PLAIN, OF_SPECIAL))
        assert wholes.defaults("whole") == {"part": "plain", "depth": 1, **of_plain}
        assert wholes.defaults("whole", {"part": "special"}) == {"part": "plain", "depth": 1, **of_special}
        assert wholes.complete("whole", {"part": "Special", "heads": 3})["heads"] == 3

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"heads": 3}, "^whole 'whole' with part 'plain' has no option 'heads'"),
            ({"part": "plian"}, "there is no layer called 'plian'"),
            ({"part": 3}, "option 'part' must be of type str"),
            ({"part": "special", "heads": "3"}, "option 'heads' of whole 'whole' must be of type int"),
        ],
    )
    def test_others_are_refused(self, wholes, options, sentence):
        with pytest.raises(UserError, match=sentence):
            wholes.complete("whole", options)


class TestParent:
    @pytest.fixture
    def parent(self):
        return Registry("module", reserved=("residual", "seeds"))

    def test_it_knows_every_component_by_all_its_names_with_its_own_reserved_keywords(self, parent):
        child = Registry("layer", reserved=("seeds",), parent=parent)
        child.register("special-one", "special")(Special)
        parent.register("plain")(Plain)
        assert (list(parent), list(child)) == (["special-one", "plain"], ["special-one"])
        assert parent["Special"] is Special
        assert "residual" in child.defaults("special")
        assert "residual" not in parent.defaults("special")

    def test_nothing_is_half_registered(self, parent):
        parent.register("plain")(Plain)
        child = Registry("layer", parent=parent)
        with pytest.raises(ValueError, match="a module called 'plain' is registered already"):
            child.register("plain")(Special)
        assert "plain" not in child
        assert parent["plain"] is Plain
