"""Search spaces: what a list and a range mean, and what is refused."""

import math

import optuna
import pytest
from optuna.trial import FixedTrial

from gumbel_mpnn.runs.space import draw, number_of_choices, read_space, read_tables, searched, tables_of
from gumbel_mpnn.util.errors import UserError

SPACE = {
    "model": {"hidden_channels": [4, 8], "norm": "none"},
    "train": {"lr": [0.001, 0.01, 0.1], "epochs": 3},
}


def read(tables, start=()):
    return read_tables(tables, dict(start))


def asked(count):
    """New trials of a study."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [study.ask() for _ in range(count)]


def test_what_a_space_searches_and_what_it_fixes():
    space = read({**SPACE, "data": {"x": {"low": 1, "high": 3}, "y": {"low": 1, "high": 3}}}, {"data.y": 1.0})
    assert searched(space) == {
        "model.hidden_channels": [4, 8],
        "train.lr": [0.001, 0.01, 0.1],
        "data.x": {"low": 1, "high": 3, "log": False},
        "data.y": {"low": 1.0, "high": 3.0, "log": False},
    }
    assert number_of_choices(space) == math.inf
    assert tables_of(space, {"model.hidden_channels": 8, "rewiring.regularizer.margin": 0.2}) == {
        "model": {"norm": "none", "hidden_channels": 8},
        "train": {"epochs": 3},
        "rewiring": {"regularizer.margin": 0.2},
    }


def test_all_choices_of_lists():
    assert number_of_choices(read(SPACE)) == 6
    options = {"rewiring": {"candidates": ["none", "local"], "candidates.per_node": [3, 5]}}
    assert number_of_choices(read(options)) == math.inf


@pytest.mark.parametrize(
    ("low", "high", "value", "expected"),
    [(0.0, 1.0, 0.123456, 0.1235), (0.123456, 0.2, 0.123457, 0.1235), (0.1, 0.123456, 0.1234559, 0.123456)],
)
def test_numbers_have_few_digits_and_stay_within_their_range(low, high, value, expected):
    space = read({"train": {"lr": {"low": low, "high": high}}})
    assert draw(FixedTrial({"train.lr": value}), space) == {"train.lr": expected}


def test_what_optuna_suggests():
    space = read(
        {"train": {"lr": {"low": 1, "high": 5}, "epochs": {"low": 1, "high": 8, "step": 4}}}, {"train.lr": 0.1}
    )
    drawn = [draw(trial, space) for trial in asked(20)]
    assert {each["train.epochs"] for each in drawn} == {1, 5}
    assert len({each["train.lr"] for each in drawn} - {1.0, 5.0}) == 20


def test_options_of_a_component_are_drawn_only_with_it():
    space = read({"rewiring": {"candidates.per_node": [3, 5], "candidates": ["none", "local", "ricci"]}})
    drawn = [draw(trial, space) for trial in asked(20)]
    assert {each["rewiring.candidates"] for each in drawn} == {"none", "local", "ricci"}
    assert all(("rewiring.candidates.per_node" in each) == (each["rewiring.candidates"] == "local") for each in drawn)


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
        read({"train": {"lr": value}})
    assert str(error.value).startswith(sentence)


def test_a_space_is_made_of_tables():
    with pytest.raises(UserError, match=r"setting 'lr' must be a table, but is 0.1"):
        read_space({"lr": 0.1})
