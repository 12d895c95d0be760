import dataclasses
import json

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import DataSettings, RewiringSettings, Settings, TrainSettings, resolve
from gumbel_mpnn.config import settings as config


def complete(model, options):
    return {"width": 8, "dropout": 0.5, **options}


def resolved(**sections):
    return resolve("cora", "gcn", sections, complete)


SETTINGS = Settings(
    dataset="cora",
    model="gcn",
    options={"width": 16, "dropout": 0.25, "norm": "layer"},
    data=DataSettings(protocol="geom-gcn", features="row-normalized", undirected=False),
    train=TrainSettings(lr=0.01, weight_decay=5e-4, epochs=200, patience=20, eval_every=2, tf32=False),
)
EARLIER = {"scorer": "bilinear", "prior": 0.0}
"""Defaults of earlier versions that have changed since: what their records and fingerprints leave out."""


def test_resolve_fills_every_table_with_defaults():
    settings = resolved()
    assert settings == Settings("cora", "gcn", {"width": 8, "dropout": 0.5}, DataSettings(), TrainSettings())


def test_resolve_lays_values_over_the_defaults():
    settings = resolved(
        data={"protocol": "public", "features": "row-normalized", "undirected": False},
        model={"width": 4},
        train={"lr": 0.5, "weight_decay": 1, "epochs": 3, "patience": 2, "eval_every": 7, "tf32": False},
    )
    assert settings.options == {"width": 4, "dropout": 0.5}
    assert settings.data == DataSettings("public", "row-normalized", False)
    assert settings.train == TrainSettings(0.5, 1.0, 3, 2, 7, False)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"trian": {}}, r"there is no setting 'trian': did you mean 'train'\?"),
        ({"rewiring": {}}, "model 'gcn' does not rewire the graph"),
        ({"train": {"learning": 1}}, "there is no setting 'train.learning'"),
        ({"train": {"epoch": 1}}, r"there is no setting 'train.epoch': did you mean 'epochs'\?"),
        ({"data": {"feature": "raw"}}, r"there is no setting 'data.feature': did you mean 'features'\?"),
        ({"train": {"epochs": 2.0}}, "setting 'train.epochs' must be of type int"),
        ({"train": {"epochs": True}}, "setting 'train.epochs' must be of type int"),
        ({"train": {"lr": "fast"}}, "setting 'train.lr' must be of type float"),
        ({"data": {"undirected": 1}}, "setting 'data.undirected' must be of type bool"),
        ({"train": {"select": "first"}}, "setting 'train.select' must be 'validation' or 'last'"),
        ({"train": {"select": "last", "patience": 5}}, ".*set train.patience to 0"),
        ({"train": {"lr": 0}}, "setting 'train.lr' must be above 0, but is 0.0"),
        ({"train": {"lr": -0.1}}, "setting 'train.lr' must be above 0"),
        ({"train": {"lr": float("nan")}}, "setting 'train.lr' must be finite"),
        ({"train": {"lr": float("inf")}}, "setting 'train.lr' must be finite"),
        ({"train": {"lr": 10**400}}, "setting 'train.lr' must be finite"),
        ({"train": {"weight_decay": float("inf")}}, "setting 'train.weight_decay' must be finite"),
        ({"train": {"weight_decay": -1e-9}}, "setting 'train.weight_decay' must be 0 or more"),
        ({"train": {"epochs": 0}}, "setting 'train.epochs' must be 1 or more, but is 0"),
        ({"train": {"patience": -1}}, "setting 'train.patience' must be 0 or more"),
        ({"train": {"eval_every": 0}}, "setting 'train.eval_every' must be 1 or more"),
        (
            {"data": {"features": "scaled"}},
            "setting 'data.features' must be 'raw' or 'row-normalized' or 'standardized' or 'structure' or"
            " 'with-structure', but is 'scaled'",
        ),
    ],
)
def test_resolve_says_what_is_wrong(sections, message):
    with pytest.raises(UserError, match=f"^{message}"):
        resolved(**sections)


def test_who_asks_for_the_last_epoch_need_not_switch_patience_off():
    assert resolved(train={"select": "last"}).train == TrainSettings(select="last", patience=0)
    assert resolved(train={"select": "validation"}).train.patience == TrainSettings().patience == 100


def test_resolve_hands_the_models_options_to_its_registry():
    def refuse(model, options):
        raise UserError(f"{model} {dict(options)}")

    with pytest.raises(UserError, match=r"^gcn \{'width': 3\}$"):
        resolve("cora", "gcn", {"model": {"width": 3}}, refuse)


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        resolved().train.lr = 1.0


def test_settings_survive_json():
    assert Settings.from_dict(json.loads(json.dumps(SETTINGS.to_dict()))) == SETTINGS


def test_what_an_old_record_does_not_name_is_assumed():
    settings = dataclasses.replace(SETTINGS, rewiring=RewiringSettings(**EARLIER))
    old = settings.to_dict()
    del old["train"]["bfloat16"], old["train"]["select"], old["train"]["class_weights"], old["data"]["metric"]
    del old["train"]["partitions"], old["train"]["select_from"]
    old["rewiring"].clear()
    assert Settings.from_dict(old) == settings


def test_to_dict_has_the_shape_of_a_settings_file():
    assert SETTINGS.to_dict() == {
        "dataset": "cora",
        "model": {"name": "gcn", "width": 16, "dropout": 0.25, "norm": "layer"},
        "data": {"protocol": "geom-gcn", "features": "row-normalized", "undirected": False, "attack": "", "metric": ""},
        "train": {
            "lr": 0.01,
            "weight_decay": 5e-4,
            "epochs": 200,
            "patience": 20,
            "eval_every": 2,
            "tf32": False,
            "bfloat16": False,
            "select": "validation",
            "select_from": 0,
            "class_weights": "none",
            "partitions": 1,
        },
    }


def test_from_dict_leaves_its_input_alone():
    values = SETTINGS.to_dict()
    Settings.from_dict(values)
    assert values == SETTINGS.to_dict()


def test_fingerprint_is_a_function_of_the_content():
    again = Settings.from_dict(SETTINGS.to_dict())
    reordered = dataclasses.replace(SETTINGS, options=dict(reversed(SETTINGS.options.items())))
    assert SETTINGS.fingerprint("abc") == again.fingerprint("abc") == reordered.fingerprint("abc")
    assert len(SETTINGS.fingerprint("abc")) == 16
    int(SETTINGS.fingerprint("abc"), 16)


def test_fingerprint_of_known_settings_does_not_move():
    assert SETTINGS.fingerprint("abc") == "6612991e9c7b66ce"


@pytest.mark.parametrize(
    ("rewiring", "fingerprint"),
    [
        (RewiringSettings(**EARLIER), "a39eb23040ffb9ce"),
        (
            RewiringSettings(
                per_node=3, tau=0.1, tau_end=0.1, regularizer="degree", regularizer_weight=0.5, hard=False, **EARLIER
            ),
            "8bb503b6c9081a2c",
        ),
        (RewiringSettings(), "54f03b47ed1d452a"),
    ],
    ids=["earlier defaults", "changed", "defaults"],
)
def test_fingerprint_of_known_rewiring_does_not_move(rewiring, fingerprint):
    assert dataclasses.replace(SETTINGS, rewiring=rewiring).fingerprint("abc") == fingerprint


def test_another_default_is_another_setting():
    """Else the runs made with the old default would pass for runs with the new one."""

    @dataclasses.dataclass(frozen=True)
    class Later(RewiringSettings):
        per_node: int = 7

    before, named = (
        dataclasses.replace(SETTINGS, rewiring=RewiringSettings(**values)).fingerprint("abc")
        for values in ({}, {"per_node": 7})
    )
    assert dataclasses.replace(SETTINGS, rewiring=Later()).fingerprint("abc") == named != before


def test_every_rewiring_setting_says_what_runs_made_without_it_did():
    names = {field.name for field in dataclasses.fields(RewiringSettings)} - {"options"}
    assert names == set(config.ASSUMED["rewiring"])


def test_an_option_that_models_got_later_does_not_change_the_fingerprint():
    def fingerprint(**options):
        return dataclasses.replace(SETTINGS, options={**SETTINGS.options, **options}).fingerprint("abc")

    assert fingerprint(shortcut="linear") == fingerprint() != fingerprint(shortcut="identity")
    assert "shortcut" not in Settings.from_dict(SETTINGS.to_dict()).options


def test_fingerprint_does_not_tell_an_int_from_the_same_float():
    assert resolved(train={"lr": 1}).fingerprint("") == resolved(train={"lr": 1.0}).fingerprint("")


OTHER_DATA = {"protocol": "public", "features": "raw", "undirected": True, "attack": "meta-0.1", "metric": "macro_f1"}
OTHER_TRAIN = {"lr": 0.02, "weight_decay": 0.0, "epochs": 201, "patience": 21, "eval_every": 1, "tf32": True}
OTHER_TRAIN |= {"bfloat16": True, "select": "last", "class_weights": "balanced", "partitions": 4}
OTHER_TRAIN |= {"select_from": 20}


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "citeseer"},
        {"model": "gat"},
        {"options": {**SETTINGS.options, "dropout": 0.26}},
        {"options": {**SETTINGS.options, "new": 1}},
        {"options": {"width": 16, "dropout": 0.25}},
        *({"data": dataclasses.replace(SETTINGS.data, **{name: value})} for name, value in OTHER_DATA.items()),
        *({"train": dataclasses.replace(SETTINGS.train, **{name: value})} for name, value in OTHER_TRAIN.items()),
    ],
    ids=str,
)
def test_fingerprint_changes_with_every_field(change):
    assert dataclasses.replace(SETTINGS, **change).fingerprint("abc") != SETTINGS.fingerprint("abc")


@pytest.mark.parametrize(("table", "tried"), [(DataSettings, OTHER_DATA), (TrainSettings, OTHER_TRAIN)])
def test_no_field_is_missing_above(table, tried):
    assert {field.name for field in dataclasses.fields(table)} == set(tried)


def test_fingerprint_changes_with_the_data_and_with_the_schema(monkeypatch):
    before = SETTINGS.fingerprint("abc")
    assert SETTINGS.fingerprint("abd") != before
    monkeypatch.setattr(config, "SCHEMA", config.SCHEMA + 1)
    assert SETTINGS.fingerprint("abc") != before


def test_a_rewiring_setting_that_is_assumed_does_not_change_the_fingerprint():
    def fingerprint(**rewiring):
        return dataclasses.replace(SETTINGS, rewiring=RewiringSettings(**EARLIER | rewiring)).fingerprint("0")

    for name, value in config.ASSUMED["rewiring"].items():
        assert fingerprint(**{name: value}) == fingerprint()
    assert fingerprint(tau=2.0) != fingerprint()
    assert dataclasses.replace(SETTINGS, rewiring=None).fingerprint("0") != fingerprint()
