"""Preset files and search spaces in which a value is of the wrong type: one sentence, or valid, never another error."""

import json
from copy import deepcopy
from datetime import date, datetime, time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gumbel_mpnn.runs.fit import describe
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.runs.study import read_space, search_space
from gumbel_mpnn.runs.study import searched as searched_in
from gumbel_mpnn.util.errors import UserError
from helpers import changed, small_data

TABLES = {
    "data": {"protocol": "geom-gcn", "undirected": True},
    "model": {"backbone": "gcn", "dropout": 0.5, "hidden_channels": 16},
    "train": {"lr": 0.1, "epochs": 3, "select": "validation"},
    "rewiring": {
        "candidates": "local",
        "tau": 0.5,
        "scorer": {"name": "bilinear", "channels": 8},
        "candidates.per_node": 2,
    },
}
FILE = {
    "source": "me",
    "tried": 3,
    "tuning": {"model": "gcn", "val": 0.5},
    **TABLES,
    "cora": {"train": {"patience": 5}},
}


SPACE = {
    "model": {"dropout": [0.1, 0.5], "hidden_channels": {"low": 8, "high": 16, "step": 4}},
    "train": {"lr": {"low": 0.01, "high": 0.1, "log": True}, "weight_decay": 0.0},
    "rewiring": {"scorer": ["bilinear", "class-space"], "candidates.per_node": [1, 2]},
}
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(),
    st.sampled_from(["", "gcn", "mine/gcn", "mine", "tuned", "/", "../x", "a.b", "none", "\0", "[1]"]),
    st.sampled_from([date(2026, 1, 1), time(1, 2), datetime(2026, 1, 1, 2, 3)]),
)
NAMES = st.sampled_from(["", "cora", "train", "lr", "low", "high", "options", "a.b", "name"])
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(NAMES, each, max_size=3), max_leaves=4
)


def paths(content, above=()):
    """The place of every value, and of values that could be added to a table."""
    for name, value in content.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from paths(value, (*above, name))
    yield (*above, "another")


@st.composite
def wrong(draw, content):
    """The content with one value replaced, or added."""
    content, path = deepcopy(content), draw(st.sampled_from(list(paths(content))))
    table = content
    for name in path[:-1]:
        table = table[name]
    table[path[-1]] = draw(VALUES)
    return content


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, date | time) else str(value).lower()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(name)} = {toml(value)}\n" for name, value in content.items()))


def check(work, *arguments, **options):
    """The work is done, or refused in one sentence."""
    sentence = "done"
    try:
        work(*arguments, **options)
    except UserError as error:
        sentence = str(error)
    assert sentence
    assert "\n" not in sentence


quickly = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(wrong(FILE))
@quickly
def test_settings_files(tmp_path, content):
    write(tmp_path / "mine.toml", content)
    for model in (None, "gumbel-mpnn"):
        check(describe, "cora", model, preset=tmp_path / "mine.toml")


@pytest.fixture(scope="module")
def searched():
    """A model and its data, around which spaces are searched."""
    spec = RunSpec.of(changed(small_data(), name="small"), "gumbel-mpnn", preset=None)
    return spec, spec.read()


@given(wrong(SPACE))
@quickly
def test_search_spaces(tmp_path, searched, content):
    write(tmp_path / "space.toml", content)
    spec, job = searched
    check(lambda: search_space(spec, read_space(tmp_path / "space.toml"), job))


def test_as_they_are_they_are_valid(tmp_path, searched):
    """Otherwise the tests above would stop at another fault."""
    write(tmp_path / "mine.toml", FILE)
    assert RunSpec.of("cora", "gumbel-mpnn", preset=tmp_path / "mine.toml").settings.train.patience == 5
    write(tmp_path / "space.toml", SPACE)
    spec, job = searched
    assert len(searched_in(search_space(spec, read_space(tmp_path / "space.toml"), job))) == 5
