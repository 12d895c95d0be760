"""JSON that every program reads: without NaN and infinity."""

import json
import math

import pytest

from gumbel_mpnn._util.json_text import to_json
from gumbel_mpnn.report import Table


def strict(text):
    """Read JSON as other programs do."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_numbers_that_are_not_finite_are_null():
    value = {"a": [1.5, math.nan, (math.inf, {"b": -math.inf})], "c": "NaN", "d": None, "e": True}
    assert strict(to_json(value)) == {"a": [1.5, None, [None, {"b": None}]], "c": "NaN", "d": None, "e": True}


def test_tables():
    assert strict(Table(["a"], [[math.nan], [2.0]]).render("json")) == [{"a": None}, {"a": 2.0}]
