"""Settings: their values, the sentences for wrong ones, and the fingerprint."""

import dataclasses
import json

import pytest

from gumbel_mpnn.settings import DataSettings, RewiringSettings, Settings, TrainSettings, resolve, rewiring_settings
from gumbel_mpnn.settings.settings import TABLES
from gumbel_mpnn.util.errors import UserError


def complete(model, options):
    return {"width": 8, "dropout": 0.5, **options}


def resolved(rewires=False, **tables):
    return resolve("cora", "gcn", tables, complete, rewires)


SETTINGS = Settings(
    dataset="cora",
    model="gcn",
    options={"width": 16, "dropout": 0.25},
    data=DataSettings(protocol="geom-gcn", features="row-normalized", undirected=False),
    train=TrainSettings(lr=0.01, weight_decay=5e-4, epochs=200, patience=20, eval_every=2),
    rewiring=RewiringSettings(tau=0.5, options={"candidates.per_node": 3}),
)


def test_values_lie_over_the_defaults():
    assert resolved() == Settings("cora", "gcn", {"width": 8, "dropout": 0.5}, DataSettings(), TrainSettings())
    settings = resolved(
        rewires=True,
        data={"protocol": "public", "undirected": False},
        model={"width": 4},
        train={"lr": 0.5, "weight_decay": 1, "epochs": 3},
        rewiring={"tau_end": 0.25, "regularizer": {"name": "lc", "weight": 2}},
    )
    assert settings.options == {"width": 4, "dropout": 0.5}
    assert settings.data == DataSettings("public", undirected=False)
    assert settings.train == TrainSettings(0.5, 1.0, 3)
    assert settings.rewiring == RewiringSettings(tau_end=0.25, regularizer="lc", options={"regularizer.weight": 2})
    assert settings.rewiring.options_of("regularizer") == {"weight": 2}
    assert settings.rewiring.options_of("scorer") == {}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"trian": {}}, r"there is no setting 'trian': did you mean 'train'\?"),
        ({"rewiring": {}}, "model 'gcn' does not rewire the graph"),
        ({"train": {"epoch": 1}}, r"there is no setting 'train.epoch': did you mean 'epochs'\?"),
        ({"data": {"feature": "raw"}}, r"there is no setting 'data.feature': did you mean 'features'\?"),
        ({"train": {"epochs": 2.0}}, "setting 'train.epochs' must be of type int"),
        ({"train": {"lr": "fast"}}, r"setting 'train.lr' must be of type float, like 0\.001, but is 'fast'$"),
        ({"train": {"select": "first"}}, "setting 'train.select' must be 'validation' or 'last'"),
        ({"train": {"select": "last", "patience": 5}}, ".*set train.patience to 0"),
        ({"train": {"lr": 0}}, "setting 'train.lr' must be above 0, but is 0.0"),
        ({"train": {"weight_decay": -1e-9}}, "setting 'train.weight_decay' must be 0 or more"),
        ({"train": {"eval_every": 0}}, "setting 'train.eval_every' must be 1 or more"),
        ({"data": {"features": "scaled"}}, "setting 'data.features' must be 'raw' or 'row-normalized' or .*'scaled'"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tables, message):
    with pytest.raises(UserError, match=f"^{message}"):
        resolved(**tables)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"keep": 1.0}, "setting 'rewiring.keep' must be between 0 and 1, neither included"),
        ({"samples": 0}, "setting 'rewiring.samples' must be between 1 and 1,000"),
        ({"agreement": 1.0}, "set rewiring.samples to 2 or more"),
        ({"sampler.depth": 3}, "there is no setting 'rewiring.sampler.depth'"),
        ({"taus": 1.0}, "there is no setting 'rewiring.taus': did you mean 'tau'"),
    ],
)
def test_a_mistake_in_the_rewiring_is_told_in_a_sentence(values, message):
    with pytest.raises(UserError, match=message):
        rewiring_settings(values)


def test_settings_that_follow_from_others():
    assert resolved(train={"select": "last"}).train == TrainSettings(select="last", patience=0)
    assert resolved(train={"select": "validation"}).train.patience == TrainSettings().patience == 100
    assert (rewiring_settings({"tau": 2}).tau_end, rewiring_settings({}).tau_end) == (2.0, 0.5)
    assert TrainSettings(epochs=5, select_from=9).first_kept == 5


def test_options_go_to_the_registry_of_the_model():
    def refuse(model, options):
        raise UserError(f"{model} {dict(options)}")

    with pytest.raises(UserError, match=r"^gcn \{'width': 3\}$"):
        resolve("cora", "gcn", {"model": {"width": 3}}, refuse)


def test_they_are_written_and_read_back():
    values = SETTINGS.to_dict()
    assert values["model"] == {"name": "gcn", "width": 16, "dropout": 0.25}
    assert values["rewiring"]["candidates.per_node"] == 3
    assert "options" not in values["rewiring"]
    assert Settings.from_dict(json.loads(json.dumps(values))) == SETTINGS
    assert values == SETTINGS.to_dict()
    with pytest.raises(UserError, match=r"not those of this version of gumbel-mpnn: .*'older'"):
        Settings.from_dict({**values, "train": {**values["train"], "older": 1}})
    with pytest.raises(UserError, match="not those of this version of gumbel-mpnn: 'data'"):
        Settings.from_dict({name: table for name, table in values.items() if name != "data"})


OTHER = {
    bool: lambda value: not value,
    int: lambda value: value + 1,
    float: lambda value: value + 0.1,
    str: lambda _: "?",
}


def changes():
    """Every setting with another value, one at a time."""
    for table in TABLES:
        of_table = getattr(SETTINGS, table)
        for item in dataclasses.fields(of_table):
            if item.name != "options":
                value = getattr(of_table, item.name)
                yield {table: dataclasses.replace(of_table, **{item.name: OTHER[type(value)](value)})}
    yield {"dataset": "citeseer"}
    yield {"model": "gat"}
    yield {"options": {**SETTINGS.options, "dropout": 0.26}}
    yield {"options": {"width": 16}}
    yield {"rewiring": None}
    yield {"rewiring": dataclasses.replace(SETTINGS.rewiring, options={"candidates.per_node": 4})}


def test_the_fingerprint_changes_with_every_setting_and_with_the_data():
    found = [dataclasses.replace(SETTINGS, **change).fingerprint("abc") for change in changes()]
    found += [SETTINGS.fingerprint("abc"), SETTINGS.fingerprint("abd")]
    assert len(set(found)) == len(found) > 30
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in found)


def test_the_fingerprint_is_a_function_of_the_values():
    again = Settings.from_dict(SETTINGS.to_dict())
    reordered = dataclasses.replace(SETTINGS, options=dict(reversed(SETTINGS.options.items())))
    assert SETTINGS.fingerprint("abc") == again.fingerprint("abc") == reordered.fingerprint("abc")
    assert resolved(train={"lr": 1}).fingerprint("") == resolved(train={"lr": 1.0}).fingerprint("")
