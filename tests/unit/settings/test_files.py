"""Overrides, settings files, and how they lie over each other."""

import tomllib
from contextlib import suppress

import pytest

from gumbel_mpnn.settings.files import (
    is_settings_file,
    merge,
    parse_overrides,
    read_settings_file,
    to_toml,
    tuned_model,
)
from gumbel_mpnn.util.errors import UserError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.7", 0.7),
        ("5e-4", 5e-4),
        ("3", 3),
        ("-1", -1),
        ("true", True),
        ("False", False),
        ("layer", "layer"),
        ('"True"', "True"),
        ("geom-gcn", "geom-gcn"),
        ("", ""),
        ("a=b", "a=b"),
        ("[1, 2]", [1, 2]),
    ],
)
def test_a_value_is_read_as_toml_or_as_a_bare_string(text, value):
    parsed = parse_overrides([f"model.it={text}"])
    assert parsed == {"model": {"it": value}}
    assert type(parsed["model"]["it"]) is type(value)


def test_overrides_gather_by_table_and_the_last_one_wins():
    overrides = ["model.dropout=0.1", " train.lr = 0.5 ", "rewiring.scorer.channels=4", "model.dropout=0.2"]
    expected = {"model": {"dropout": 0.2}, "train": {"lr": 0.5}, "rewiring": {"scorer.channels": 4}}
    assert parse_overrides(overrides) == expected


@pytest.mark.parametrize("override", ["dropout=0.7", "model.dropout", "model.=1", "=", "", "model dropout 0.7"])
def test_a_bad_override_is_quoted_with_the_right_form(override):
    with pytest.raises(UserError) as caught:
        parse_overrides([override])
    assert str(caught.value) == f"cannot read the setting {override!r}: write it as table.name=value"


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 3000, "{a=" * 3000], ids=["digits", "brackets", "tables"])
def test_values_that_are_too_much_for_the_parser(tmp_path, value):
    path = tmp_path / "mine.toml"
    path.write_text(f"[train]\nepochs = {value}\n")
    with pytest.raises(UserError, match=f"cannot read the settings file {path}: .+"):
        read_settings_file(path)
    with suppress(UserError):
        assert parse_overrides([f"train.epochs={value}"]) == {"train": {"epochs": value}}


def test_later_layers_win_key_by_key():
    preset = {"model": {"width": 1, "dropout": 0.1}, "data": {"protocol": "public"}}
    assert merge(preset, None, {"model": {"width": 2}, "train": {"lr": 1.0}}, {"model": {"width": 3}}) == {
        "model": {"width": 3, "dropout": 0.1},
        "data": {"protocol": "public"},
        "train": {"lr": 1.0},
    }
    assert preset["model"] == {"width": 1, "dropout": 0.1}
    assert merge() == merge(None, {}) == {}


def test_options_of_a_component_have_one_name_however_they_are_written():
    written = [
        {"candidates": "ricci", "candidates.per_edge": 3},
        {"candidates": {"name": "ricci", "per_edge": 3}},
        tomllib.loads('candidates = {name = "ricci", per_edge = 3}'),
        tomllib.loads('candidates = "ricci"\n"candidates.per_edge" = 3'),
    ]
    for values in written:
        assert merge({"rewiring": values}) == {"rewiring": {"candidates": "ricci", "candidates.per_edge": 3}}
    later = tomllib.loads("rewiring.candidates.per_edge = 4")
    assert merge({"rewiring": written[0]}, later)["rewiring"] == {"candidates": "ricci", "candidates.per_edge": 4}


def test_another_component_takes_none_of_the_options_of_the_one_before():
    below = {"rewiring": {"regularizer": {"name": "mix", "margin": 0.5}, "candidates.per_node": 3}}
    assert merge(below, {"rewiring": {"regularizer": "mix"}})["rewiring"]["regularizer.margin"] == 0.5
    assert merge(below, {"rewiring": {"regularizer": {"name": "degree", "target": 9.0}}}) == {
        "rewiring": {"candidates.per_node": 3, "regularizer": "degree", "regularizer.target": 9.0}
    }


@pytest.mark.parametrize("values", [3, "lr", [1]])
def test_what_is_no_table_is_refused(values):
    with pytest.raises(UserError, match=r"^setting 'train' must be a table, but is "):
        merge({"train": values})
    with pytest.raises(UserError, match="settings must be tables"):
        merge(values)


def test_a_settings_file_is_read_without_what_it_says_about_itself(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('source = "table 3"\ntried = 2\nmodel.width = 4\n[train]\nlr = 0.5\n[tuning]\nmodel = "gat"\n')
    assert read_settings_file(file) == {"model": {"width": 4}, "train": {"lr": 0.5}}
    assert tuned_model(file) == "gat"
    assert is_settings_file(file)
    assert is_settings_file("own.TOML")
    assert not is_settings_file("tuned")


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["missing", "folder"])
def test_a_settings_file_that_is_not_there(tmp_path, make):
    path = tmp_path / "own.toml"
    make(path)
    with pytest.raises(UserError, match=r"^there is no settings file .*own\.toml$"):
        read_settings_file(path)


@pytest.mark.parametrize("content", [b"[model\nwidth = 4", b"width: 4", b'[model]\nname = "\xff\xfe"'])
def test_a_settings_file_that_is_not_toml(tmp_path, content):
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"^cannot read the settings file .*own\.toml: "):
        read_settings_file(path)


@pytest.mark.parametrize(
    "value", ["plain", 'a "b" \\ c', "ä\n\t\x00\x7f", "", 3, -1, 0.1, 1e-30, 1e300, True, False, "regularizer.margin"]
)
def test_what_is_written_as_toml_is_read_again(value):
    inner = {"y": value, "a.b": value}
    content = {"x": value, "table": {"none": None, **inner, "in it": inner}, "z": 1}
    assert tomllib.loads(to_toml(content)) == {"x": value, "table": {**inner, "in it": inner}, "z": 1}
