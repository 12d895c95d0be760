import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config.files import merge, parse_overrides, read_settings_file


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.7", 0.7),
        ("5e-4", 5e-4),
        ("3", 3),
        ("-1", -1),
        ("true", True),
        ("false", False),
        ("layer", "layer"),
        ('"layer"', "layer"),
        ("geom-gcn", "geom-gcn"),
        ("True", True),
        ("False", False),
        ('"True"', "True"),
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
    overrides = ["model.dropout=0.1", " train.lr = 0.5 ", "model.width=4", "model.dropout=0.2"]
    assert parse_overrides(overrides) == {"model": {"dropout": 0.2, "width": 4}, "train": {"lr": 0.5}}


@pytest.mark.parametrize("override", ["dropout=0.7", "model.dropout", "model.=1", "=", "", "model dropout 0.7"])
def test_a_bad_override_is_quoted_with_the_right_form(override):
    with pytest.raises(UserError) as caught:
        parse_overrides([override])
    assert str(caught.value) == f"cannot read the setting {override!r}: write it as table.name=value"


def test_merge_lets_later_layers_win_key_by_key():
    preset = {"model": {"width": 1, "dropout": 0.1}, "data": {"protocol": "public"}}
    own = {"model": {"width": 2}, "train": {"lr": 1.0}}
    command = {"model": {"width": 3}}
    assert merge(preset, None, own, command) == {
        "model": {"width": 3, "dropout": 0.1},
        "data": {"protocol": "public"},
        "train": {"lr": 1.0},
    }
    assert preset["model"] == {"width": 1, "dropout": 0.1}


def test_merge_of_nothing_is_empty():
    assert merge() == merge(None, {}) == {}


def test_merge_refuses_a_section_that_is_no_table():
    with pytest.raises(UserError, match=r"^setting 'train' must be a table, but is 3$"):
        merge({"train": 3})


def test_a_settings_file_is_read_without_its_source_note(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('source = "table 3"\n[model]\nwidth = 4\n[train]\nlr = 0.5\n', encoding="utf-8")
    assert read_settings_file(file) == {"model": {"width": 4}, "train": {"lr": 0.5}}


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


def test_a_settings_file_without_tables_is_refused_when_it_is_merged(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("lr = 0.1\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"^setting 'lr' must be a table, but is 0.1$"):
        merge(read_settings_file(path))
