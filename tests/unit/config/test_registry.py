import pytest

from gumbel_mpnn._util.errors import UnknownNameError, UserError
from gumbel_mpnn.config.registry import Registry, checked_like


class Base:
    def __init__(self, channels, width=8, rate=0.5, *, norm="none", residual=False, seeds=None):
        pass


class Plain(Base):
    pass


class Special(Base):
    def __init__(self, channels, *args, heads=2, rate=0.25, **options):
        super().__init__(channels, *args, rate=rate, **options)


@pytest.fixture
def registry():
    registry = Registry("layer", reserved=("seeds",))
    registry.register("plain")(Plain)
    registry.register("special-one", "special", "other")(Special)
    return registry


def test_register_returns_the_class_and_keeps_the_order(registry):
    class Third(Base):
        pass

    assert registry.register("a-third")(Third) is Third
    assert list(registry) == ["plain", "special-one", "a-third"]


class Whole:
    def __init__(self, channels, part="plain", **options):
        pass


def test_options_that_are_passed_on_are_looked_up_when_they_are_asked_for():
    """A part that a plugin registers later has its options passed on too."""
    parts, wholes = Registry("part", reserved=("seeds",)), Registry("whole")
    parts.register("plain")(Plain)
    wholes.register("whole", "all", passes_on=parts.all_defaults)(Whole)
    of_plain = {"width": 8, "rate": 0.5, "norm": "none", "residual": False}
    assert wholes.defaults("all") == {"part": "plain", **of_plain}
    with pytest.raises(UserError, match="has no option 'heads'"):
        wholes.complete("whole", {"heads": 3})
    parts.register("special")(Special)
    assert wholes.complete("whole", {"heads": 3}) == {"part": "plain", **of_plain, "rate": 0.25, "heads": 3}
    with pytest.raises(UserError, match="option 'heads' of whole 'whole' must be of type int"):
        wholes.complete("whole", {"heads": "3"})


class TestParent:
    @pytest.fixture
    def parent(self):
        return Registry("module", reserved=("residual", "seeds"))

    def test_it_knows_every_component_by_all_its_names(self, parent):
        child = Registry("layer", reserved=("seeds",), parent=parent)
        child.register("special-one", "special")(Special)
        assert list(parent) == list(child) == ["special-one"]
        assert parent["Special"] is Special
        assert parent.canonical("special") == "special-one"

    def test_what_is_registered_with_it_alone_is_unknown_below(self, parent):
        child = Registry("layer", parent=parent)
        parent.register("plain")(Plain)
        assert "plain" not in child

    def test_each_leaves_out_its_own_reserved_keywords(self, parent):
        child = Registry("layer", reserved=("seeds",), parent=parent)
        child.register("plain")(Plain)
        assert child.defaults("plain") == {"width": 8, "rate": 0.5, "norm": "none", "residual": False}
        assert parent.defaults("plain") == {"width": 8, "rate": 0.5, "norm": "none"}

    def test_options_are_passed_on_there_too(self, parent):
        child = Registry("layer", parent=parent)
        child.register("whole", passes_on=lambda: {"depth": 3})(Whole)
        assert parent.defaults("whole") == child.defaults("whole") == {"part": "plain", "depth": 3}

    def test_a_name_that_it_has_already(self, parent):
        """Nothing is half registered: a later attempt under another name succeeds."""
        parent.register("plain")(Plain)
        child = Registry("layer", parent=parent)
        with pytest.raises(ValueError, match="a module called 'plain' is registered already"):
            child.register("plain")(Special)
        assert "plain" not in child
        assert parent["plain"] is Plain


class TestChanged:
    def test_what_has_its_default_value_is_left_out(self, registry):
        assert registry.changed("special", {"heads": 4, "norm": "none", "rate": 0.25}) == {"heads": 4}
        assert registry.changed("special", {"rate": 0.5}) == {"rate": 0.5}
        assert registry.changed("plain", {"rate": 0.5}) == registry.changed("plain", {}) == {}

    def test_values_have_the_type_of_the_default(self, registry):
        (rate,) = registry.changed("plain", {"rate": 1}).values()
        assert (type(rate), rate) == (float, 1.0)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"widht": 8}, "^layer 'plain' has no option 'widht': did you mean 'width'"),
            ({"heads": 2}, "has no option 'heads'"),
            ({"seeds": None}, "has no option 'seeds'"),
            ({"width": "8"}, "option 'width' of layer 'plain' must be of type int, like 8"),
        ],
    )
    def test_what_is_unknown_or_of_a_wrong_type_is_refused(self, registry, options, sentence):
        with pytest.raises(UserError, match=sentence):
            registry.changed("plain", options)


@pytest.mark.parametrize("name", ["special-one", "special_one", "Special_One", "SPECIAL", "other"])
def test_names_and_aliases_lead_to_the_component(registry, name):
    assert registry[name] is Special
    assert registry.canonical(name) == "special-one"
    assert name in registry


def test_aliases_are_not_listed(registry):
    assert "other" not in list(registry)


@pytest.mark.parametrize("look_up", [Registry.__getitem__, Registry.canonical, Registry.defaults])
def test_an_unknown_name_is_answered_with_the_nearest(registry, look_up):
    assert "plian" not in registry
    with pytest.raises(UnknownNameError, match=r"^there is no layer called 'plian': did you mean 'plain'\?$"):
        look_up(registry, "plian")


@pytest.mark.parametrize("names", [("plain",), ("PLAIN",), ("new", "special_one"), ("new", "other")])
def test_a_name_is_given_once(registry, names):
    with pytest.raises(ValueError, match=f"a layer called '{names[-1]}' is registered already"):
        registry.register(*names)(Plain)
    assert "new" not in registry


def test_defaults_are_those_of_the_base_class_without_the_reserved(registry):
    assert registry.defaults("plain") == {"width": 8, "rate": 0.5, "norm": "none", "residual": False}


def test_defaults_of_a_class_win_over_its_base_class(registry):
    expected = {"width": 8, "rate": 0.25, "norm": "none", "residual": False, "heads": 2}
    assert registry.defaults("special") == expected


def test_complete_fills_up_with_defaults(registry):
    completed = registry.complete("special", {"heads": 4, "norm": "layer"})
    assert completed == {"width": 8, "rate": 0.25, "norm": "layer", "residual": False, "heads": 4}
    assert registry.defaults("special")["heads"] == 2


def test_complete_makes_a_float_of_an_int(registry):
    rate = registry.complete("plain", {"rate": 1})["rate"]
    assert (type(rate), rate) == (float, 1.0)


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("width", True, "int"),
        ("width", 8.0, "int"),
        ("width", "8", "int"),
        ("rate", True, "float"),
        ("rate", "0.5", "float"),
        ("norm", 1, "str"),
        ("residual", 1, "bool"),
        ("residual", "true", "bool"),
    ],
)
def test_complete_refuses_a_wrong_type(registry, option, value, wanted):
    with pytest.raises(
        UserError, match=f"^option '{option}' of layer 'plain' must be of type {wanted}, like .*{value!r}"
    ):
        registry.complete("plain", {option: value})


@pytest.mark.parametrize(("option", "answer"), [("widht", "'width'"), ("seeds", "known are|did you mean")])
def test_complete_refuses_an_unknown_or_reserved_option(registry, option, answer):
    with pytest.raises(UserError, match=f"^layer 'plain' has no option '{option}': .*{answer}"):
        registry.complete("plain", {option: 1})


def test_an_option_of_another_component_is_unknown(registry):
    with pytest.raises(UserError, match="has no option 'heads'"):
        registry.complete("plain", {"heads": 2})


@pytest.mark.parametrize(("default", "value"), [(1, 2), (0.5, 0.25), ("a", ""), (True, False)])
def test_checked_like_gives_a_value_of_the_right_type_back(default, value):
    assert checked_like(default, value, "it") is value


def test_checked_like_says_what_was_wrong():
    with pytest.raises(UserError, match=r"^setting 'lr' must be of type float, like 0\.5, but is 'fast'$"):
        checked_like(0.5, "fast", "setting 'lr'")
