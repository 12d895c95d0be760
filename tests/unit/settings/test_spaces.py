"""Search spaces: what a list and a range mean, how they are drawn from, and what is refused."""

import math

import pytest

from gumbel_mpnn.settings.spaces import Choices, Range, Space
from gumbel_mpnn.util.errors import UserError

SPACE = {
    "model": {"hidden_channels": [4, 8], "norm": "none"},
    "train": {"lr": [0.001, 0.01, 0.1], "epochs": 3},
}


def values(drawn):
    return [tuple(chosen.values()) for chosen in drawn]


def test_what_a_space_leaves_open_and_what_it_fixes():
    space = Space.of({**SPACE, "data": {"x": {"low": 1, "high": 3}}})
    assert space.open == {
        "model.hidden_channels": Choices((4, 8)),
        "train.lr": Choices((0.001, 0.01, 0.1)),
        "data.x": Range(1, 3),
    }
    assert space.fixed == {"model": {"norm": "none"}, "train": {"epochs": 3}}


class TestLists:
    def test_every_setting_is_drawn_once_in_an_order_of_the_seed(self):
        drawn = values(Space.of(SPACE).draws(seed=0))
        assert sorted(drawn) == [(h, lr) for h in (4, 8) for lr in (0.001, 0.01, 0.1)]
        assert drawn == values(Space.of(SPACE).draws(seed=0))
        assert drawn != values(Space.of(SPACE).draws(seed=1))

    def test_a_huge_space_is_drawn_without_listing_it(self):
        space = Space.of({"train": {f"x{k}": list(range(10)) for k in range(9)}})
        drawn = [tuple(chosen.values()) for chosen, _ in zip(space.draws(0), range(50), strict=False)]
        assert len(set(drawn)) == 50

    def test_a_choice_counts_once_but_true_is_not_1(self):
        assert Space.of({"train": {"lr": [0.1, 0.1]}}).total == 1
        assert Space.of({"model": {"residual": [True, 1]}}).open["model.residual"].values == (True, 1)

    def test_tables_hold_the_choice_and_what_is_fixed(self):
        tables = Space.of(SPACE).tables({"model.hidden_channels": 8, "train.lr": 0.1})
        assert tables == {"model": {"norm": "none", "hidden_channels": 8}, "train": {"epochs": 3, "lr": 0.1}}

    def test_options_of_a_component_keep_their_dots(self):
        tables = {"rewiring": {"regularizer": {"margin": [0.1, 0.2]}}}
        (key,) = Space.of(tables).open
        assert Space.of(tables).tables({key: 0.2}) == {"rewiring": {"regularizer.margin": 0.2}}


class TestRanges:
    def drawn(self, **entries):
        space = Space.of({"t": {"x": entries}})
        return [chosen["t.x"] for chosen, _ in zip(space.draws(0), range(400), strict=False)]

    def test_floats(self):
        found = self.drawn(low=1.0, high=2.0)
        assert min(found) < 1.05
        assert max(found) > 1.95
        assert all(1 <= value <= 2 and float(f"{value:.4g}") == value for value in found)

    def test_logarithms_are_drawn_evenly(self):
        found = self.drawn(low=1e-4, high=1.0, log=True)
        assert 0.4 < sum(value < 1e-2 for value in found) / len(found) < 0.6

    def test_whole_numbers_are_all_reached_and_none_twice(self):
        assert sorted(self.drawn(low=2, high=6)) == [2, 3, 4, 5, 6]
        assert sorted(self.drawn(low=1, high=4, log=True)) == [1, 2, 3, 4]
        assert all(type(value) is int for value in self.drawn(low=1, high=100, log=True))

    def test_steps(self):
        assert sorted(self.drawn(low=0.0, high=0.8, step=0.1)) == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
        assert sorted(self.drawn(low=1, high=8, step=3)) == [1, 4, 7]

    def test_a_range_of_one_number(self):
        assert self.drawn(low=3, high=3) == [3]

    def test_rounding_stays_within_the_range(self):
        assert Range(0.123456, 0.2).readable(0.12346) == 0.1235
        assert Range(0.123456, 0.2).readable(0.123457) == 0.1235
        assert Range(0.1, 0.123456).readable(0.1234559) == 0.123456


def test_settings_of_a_component_are_chosen_only_with_it():
    space = Space(
        {"rewiring.candidates": Choices(("none", "local"))},
        parts={("rewiring.candidates", "local"): {"rewiring.candidates.per_node": Choices((3, 5))}},
    )
    names = []

    def choose(candidates):
        def suggest(name, dimension):
            names.append(name)
            return candidates if candidates in dimension.values else dimension.values[-1]

        return space.choose(suggest)

    assert choose("none") == {"rewiring.candidates": "none"}
    assert choose("local") == {"rewiring.candidates": "local", "rewiring.candidates.per_node": 5}
    assert names[-1] == "rewiring.candidates.per_node of local"
    assert space.total == math.inf
    drawn = values(space.draws(0))
    assert sorted(drawn) == [("local", 3), ("local", 5), ("none",)]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([], "the list of choices of train.lr is empty: add values to it"),
        ({}, "the range of train.lr needs low and high: add low"),
        ({"low": 1}, "the range of train.lr needs low and high: add high"),
        ({"low": 2, "high": 1}, "the range of train.lr is backwards: low is 2 and high is 1"),
        ({"low": 0, "high": 1, "log": True}, "a logarithmic range needs a low above 0, but that of train.lr is 0"),
        ({"low": 1, "hihg": 2}, "the range of train.lr has no entry 'hihg': did you mean 'high'?"),
        ({"low": "a", "high": 2}, "low of the range of train.lr must be a number, but is 'a'"),
        ({"low": True, "high": 2}, "low of the range of train.lr must be a number, but is True"),
        ({"low": 0.0, "high": math.inf}, "high of the range of train.lr must be a number, but is inf"),
        ({"low": 1, "high": 2, "log": 1}, "log of the range of train.lr must be true or false, but is 1"),
        ({"low": 1, "high": 2, "step": 0}, "step of the range of train.lr must be above 0, but is 0"),
        ({"low": 1, "high": 2, "step": 1, "log": True}, "has log and step: leave out one of them"),
    ],
)
def test_what_is_refused(value, sentence):
    with pytest.raises(UserError) as error:
        Space.of({"train": {"lr": value}})
    assert sentence in str(error.value)


def test_a_space_is_made_of_tables():
    with pytest.raises(UserError, match=r"setting 'lr' must be a table, but is 0.1"):
        Space.of({"lr": 0.1})
