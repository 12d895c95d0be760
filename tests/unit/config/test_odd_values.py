"""Values that no number or table can be: a sentence, never a traceback."""

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.cli.common import parse_range
from gumbel_mpnn.config.files import parse_overrides, read_settings_file
from quick_fit import quick, resolved

DIGITS, BRACKETS = "9" * 5000, "[" * 3000


@pytest.mark.parametrize("value", [DIGITS, BRACKETS, "{a=" * 3000, f"0x{'f' * 5000}"], ids=len)
def test_overrides(value):
    try:
        tables = parse_overrides([f"train.epochs={value}"])
    except UserError as error:
        message = str(error)
    else:
        with pytest.raises(UserError) as caught:
            resolved("texas", "gcn", preset=None, settings=tables)
        message = str(caught.value)
    assert "train.epochs" in message
    assert "\n" not in message


@pytest.mark.parametrize("value", [DIGITS, BRACKETS], ids=["digits", "brackets"])
def test_settings_files(tmp_path, value):
    path = tmp_path / "mine.toml"
    path.write_text(f"[train]\nepochs = {value}\n")
    with pytest.raises(UserError, match=f"cannot read the settings file {path}: .+"):
        read_settings_file(path)


@pytest.mark.parametrize(
    "setting", ["train.epochs", "model.hidden_channels", "model.num_layers", "train.patience", "train.eval_every"]
)
@pytest.mark.parametrize("value", [10**400, 2**63, -(10**400)], ids=["huge", "64 bits", "negative"])
def test_integers_that_no_tensor_holds(setting, value):
    with pytest.raises(UserError, match=f"{setting.partition('.')[2]}.* must be"):
        resolved("texas", "gcn", preset=None, overrides=[f"{setting}={value}"])


def test_numbers_that_no_float_holds():
    with pytest.raises(UserError, match=r"'train\.lr' must be finite"):
        resolved("texas", "gcn", preset=None, overrides=[f"train.lr={10**400}"])


@pytest.mark.parametrize("seed", [2**70, -(2**70), 10**400])
def test_seeds_that_the_index_cannot_hold(seed):
    with pytest.raises(UserError, match="seeds must be integers of 64 bits"):
        quick(seeds=[seed])


@pytest.mark.parametrize("text", [DIGITS, f"0-{DIGITS}", f"{DIGITS}-3"])
def test_ranges(text):
    with pytest.raises(UserError, match="is not a valid range"):
        parse_range(text)
