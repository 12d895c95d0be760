"""Presets, own files, tables and overrides, laid over each other."""

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import TrainSettings
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.runs import find_preset
from helpers import changed, small_data
from quick_fit import quick, resolved


@pytest.fixture
def preset(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'source = "this test"\n'
        '[model]\nhidden_channels = 10\ndropout = 0.1\nnorm = "layer"\n'
        "[train]\nlr = 0.1\nepochs = 9\n"
    )
    return path


def test_a_settings_file_is_known_by_its_suffix_in_upper_or_lower_case(preset):
    upper = preset.rename(preset.with_name("mine.TOML"))
    assert resolved(small_data(), "gcn", preset=str(upper)).train.epochs == 9


def test_later_layers_win(preset):
    settings = resolved(
        small_data(),
        "gcn",
        preset=preset,
        settings={"model": {"dropout": 0.2, "num_layers": 4}, "train": {"epochs": 8}},
        overrides=["train.epochs=7", "model.num_layers=5"],
    )
    assert {name: settings.options[name] for name in ("hidden_channels", "norm", "dropout", "num_layers")} == {
        "hidden_channels": 10,
        "norm": "layer",
        "dropout": 0.2,
        "num_layers": 5,
    }
    assert settings.train == TrainSettings(lr=0.1, epochs=7)


def test_a_file_may_be_named_by_a_string(preset):
    by_string, by_path = (resolved(small_data(), "gcn", preset=given) for given in (str(preset), preset))
    assert by_string == by_path


def test_fit_takes_the_same_layers(preset):
    run = quick(preset=preset, settings={"model": {"hidden_channels": 4}}, overrides=["train.epochs=2"], splits=[0])
    assert run.settings.options["hidden_channels"] == 4
    assert run.settings.options["norm"] == "layer"
    assert run.records[0].epochs == 2
    assert run.records[0].settings == run.settings.to_dict()


def test_plain_defaults_without_a_preset():
    settings = resolved(small_data(), "gat", preset=None)
    assert settings.options == backbones.defaults("gat")
    assert settings.train == TrainSettings()
    assert (settings.dataset, settings.model) == ("own", "gat")


def test_an_own_graph_has_no_preset():
    assert resolved(small_data(), "gcn") == resolved(small_data(), "gcn", preset=None)


@pytest.mark.parametrize("family", ["tuned", "paper"])
def test_a_data_set_takes_its_preset(family):
    settings, preset = resolved("Cora", "GCN", preset=family), read_preset(family, "cora", "gcn").tables
    assert (settings.dataset, settings.model) == ("cora", "gcn")
    assert settings.options == {**backbones.defaults("gcn"), **preset["model"]}
    assert settings.train == TrainSettings(**preset["train"])


def test_a_graph_called_like_a_data_set_takes_its_preset():
    assert resolved(changed(small_data(), name="cora"), "gcn") == resolved("cora", "gcn")


def test_an_unreadable_file_is_told(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[model\n")
    with pytest.raises(UserError, match=r"cannot read the settings file .*broken\.toml"):
        resolved(small_data(), "gcn", preset=path)


def test_an_unknown_key_in_a_file_is_told(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("[train]\nepoch = 3\n")
    with pytest.raises(UserError, match=r"there is no setting 'train.epoch': did you mean 'epochs'"):
        resolved(small_data(), "gcn", preset=path)


@pytest.mark.parametrize(
    ("in_file", "changes", "expected"),
    [
        ("tau_end = 0.2", (), (1.0, 0.2)),
        ("tau_end = 0.2", ("rewiring.tau=0.1",), (0.1, 0.1)),
        ("tau = 0.1\ntau_end = 0.1", ("rewiring.tau=0.5",), (0.5, 0.5)),
        ("tau = 2.0", (), (2.0, 2.0)),
        ("tau = 2.0", ("rewiring.tau_end=0.5",), (2.0, 0.5)),
        ("tau = 2.0", ("rewiring.tau=1.0", "rewiring.tau_end=0.5"), (1.0, 0.5)),
    ],
)
def test_a_temperature_laid_over_a_preset_is_constant_without_an_end_of_its_own(tmp_path, in_file, changes, expected):
    path = tmp_path / "mine.toml"
    path.write_text(f"[rewiring]\n{in_file}\n")
    rewiring = resolved(small_data(), "gumbel-mpnn", preset=path, overrides=changes).rewiring
    assert (rewiring.tau, rewiring.tau_end) == expected


@pytest.mark.parametrize(
    ("wanted", "owner"),
    [
        (("tuned", "cora", "gcn"), "gcn"),
        (("tuned", "cora", "DropEdge"), "drop-edge"),
        (("tuned", "roman-empire", "DropEdge"), "gcn"),
        (("tuned", "roman-empire", "sdrf", "GraphSAGE"), "sage"),
        (("few-labels", "cora", "drop-edge"), "gcn"),
        (("few-labels", "cora", "drop-edge", "gat"), None),
        (("robust", "cora", "drop-edge"), None),
        (("robust", "cora", "gcn"), None),
        (("robust", "cora", "gumbel-mpnn"), "gumbel-mpnn"),
        (("robust", "cora", "frozen"), "gumbel-mpnn"),
        (("few-labels", "citeseer", "random"), "gumbel-mpnn"),
        (("tuned", "roman-empire", "frozen"), None),
    ],
    ids=str,
)
def test_whose_preset_a_model_takes(wanted, owner):
    found = find_preset(*wanted)
    assert (found and found.model) == owner
    if found is not None:
        assert found == read_preset(wanted[0], wanted[1], owner)
        assert len(found.source) > 10


def test_what_is_laid_over_a_backbone_is_laid_over_the_one_that_is_asked_for():
    own = ("iterations", "tau", "removal_bound")
    over_gcn, over_sage = (find_preset("tuned", "cora", "sdrf", name).tables for name in ("gcn", "sage"))
    gcn, sage = (read_preset("tuned", "cora", name).tables for name in ("gcn", "sage"))
    assert over_gcn["train"] == gcn["train"] != over_sage["train"] == sage["train"]
    assert {name: over_sage["model"].pop(name) for name in own} == {name: over_gcn["model"].pop(name) for name in own}
    assert (over_gcn["model"], over_sage["model"]) == (gcn["model"], sage["model"])
