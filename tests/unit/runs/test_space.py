"""Search spaces: what a list and a range mean, and what is refused."""

import math

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from gumbel_mpnn.runs.space import Space, read_space
from gumbel_mpnn.util.errors import UserError

SPACE = {
    "model": {"hidden_channels": [4, 8], "norm": "none"},
    "train": {"lr": [0.001, 0.01, 0.1, 0.1], "epochs": 3},
}


def test_what_a_space_searches_and_what_it_fixes():
    space = Space.of({**SPACE, "data": {"x": {"low": 1, "high": 3}, "y": {"low": 1, "high": 3}}}, {"data.y": 1.0})
    assert space.searched == {
        "model.hidden_channels": CategoricalDistribution((4, 8)),
        "train.lr": CategoricalDistribution((0.001, 0.01, 0.1)),
        "data.x": IntDistribution(1, 3),
        "data.y": FloatDistribution(1.0, 3.0),
    }
    assert space.fixed == {"model": {"norm": "none"}, "train": {"epochs": 3}}
    assert space.total == math.inf


def test_all_choices_of_lists():
    space = Space.of(SPACE, {})
    found = [tuple(params.values()) for params in space.listed()]
    assert sorted(found) == [(h, lr) for h in (4, 8) for lr in (0.001, 0.01, 0.1)]
    assert space.total == 6


def test_tables_hold_the_choice_and_what_is_fixed():
    tables = Space.of(SPACE, {}).tables({"model.hidden_channels": 8, "train.lr": 0.1})
    assert tables == {"model": {"norm": "none", "hidden_channels": 8}, "train": {"epochs": 3, "lr": 0.1}}


def test_options_of_a_component_keep_their_dots():
    space = Space.of({"rewiring": {"regularizer": {"margin": [0.1, 0.2]}}}, {})
    (key,) = space.searched
    assert space.tables({key: 0.2}) == {"rewiring": {"regularizer.margin": 0.2}}


@pytest.mark.parametrize(
    ("low", "high", "value", "expected"),
    [(0.0, 1.0, 0.123456, 0.1235), (0.123456, 0.2, 0.123457, 0.1235), (0.1, 0.123456, 0.1234559, 0.123456)],
)
def test_numbers_have_few_digits_and_stay_within_their_range(low, high, value, expected):
    space = Space.of({"train": {"lr": {"low": low, "high": high}}}, {})
    assert space.chosen({"train.lr": value}) == {"train.lr": expected}


def test_options_of_a_component_are_chosen_only_with_it():
    name = "rewiring.candidates.per_node of local"
    lists = {"rewiring.candidates": ("none", "local"), name: (3, 5)}
    space = Space({key: CategoricalDistribution(values) for key, values in lists.items()})
    assert space.chosen({"rewiring.candidates": "none", name: 5}) == {"rewiring.candidates": "none"}
    chosen = space.chosen({"rewiring.candidates": "local", name: 5})
    assert chosen == {"rewiring.candidates": "local", "rewiring.candidates.per_node": 5}
    assert space.total == math.inf


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([], "the list of choices of train.lr is empty: add values to it"),
        ({}, "the range of train.lr needs low and high: add them"),
        ({"low": 1}, "the range of train.lr needs low and high: add them"),
        ({"low": 2, "high": 1}, "the range of train.lr is not valid: "),
        ({"low": 0, "high": 1, "log": True}, "the range of train.lr is not valid: "),
        ({"low": 1, "hihg": 2}, "the range of train.lr has no entry 'hihg': did you mean 'high'?"),
        ({"low": "a", "high": 2}, "low of the range of train.lr must be a number, but is 'a'"),
        ({"low": True, "high": 2}, "low of the range of train.lr must be a number, but is True"),
        ({"low": 0.0, "high": math.inf}, "high of the range of train.lr must be a number, but is inf"),
        ({"low": 1, "high": 2, "step": 0}, "the range of train.lr is not valid: "),
        ({"low": 1.0, "high": 2, "step": 0.5, "log": True}, "the range of train.lr is not valid: "),
    ],
)
def test_what_is_refused(value, sentence):
    with pytest.raises(UserError) as error:
        Space.of({"train": {"lr": value}}, {})
    assert str(error.value).startswith(sentence)


def test_a_space_is_made_of_tables():
    with pytest.raises(UserError, match=r"setting 'lr' must be a table, but is 0.1"):
        read_space({"lr": 0.1})
