"""`tune`: judged on validation, pruned on the way, nothing done twice, its result a preset."""

import dataclasses
import sys
import tomllib
from pathlib import Path

import pytest

import gumbel_mpnn as gm
from gumbel_mpnn.runs.fit import default_model
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.runs.store import find_records
from gumbel_mpnn.runs.study import searched
from gumbel_mpnn.settings.files import read_settings_file
from gumbel_mpnn.util.errors import UserError
from helpers import changed, edges, small_data

SPACE = {
    "model": {"hidden_channels": [4, 8], "norm": "none"},
    "train": {"lr": [0.001, 0.01, 0.1], "epochs": 3},
}
DATA = small_data()
QUICK = {"splits": [0], "device": "cpu", "progress": False}


def tune(model="mlp", data=DATA, **options):
    return gm.tune(data, model, **{"space": SPACE, **QUICK, **options})


class TestTrials:
    def test_trials_come_best_validation_first_and_are_not_done_again(self, tmp_path, no_training):
        found = tune(trials=4, runs=tmp_path)
        values = [trial.val.mean for trial in found.trials if trial.state == "finished"]
        assert values == sorted(values, reverse=True)
        assert found.best.val.mean == values[0]
        assert (found.run.val, found.run.settings) == (found.best.val, found.best.settings)
        assert sorted(trial.number for trial in found.trials) == [0, 1, 2, 3]
        no_training()
        assert tune(trials=4, runs=tmp_path).trials == tune(trials=2, runs=tmp_path).trials == found.trials

    def test_a_setting_that_is_drawn_again_is_not_trained_again(self, trained):
        found = tune(trials=12)
        assert len(found.trials) == 12
        assert len({str(trial.chosen) for trial in found.trials}) == len(trained) <= 6

    @pytest.mark.parametrize(
        ("space", "end"),
        [
            ({"train": {"lr": [0.01, 1e30], "epochs": 3}}, "diverged"),
            ({"model": {"hidden_channels": [4, 2**20]}, "train": {"epochs": 1}}, "too large"),
        ],
    )
    def test_what_cannot_be_trained_comes_last_and_is_not_tried_again(self, tmp_path, no_training, space, end):
        for _ in range(2):
            trials = tune(space=space, trials=4, runs=tmp_path).trials
            found = [(*trial.chosen.values(), trial.state) for trial in trials]
            good, bad = next(iter(next(iter(space.values())).values()))
            assert set(found) == {(good, "finished"), (bad, end)}
            assert found == sorted(found)
            no_training()

    def test_the_first_trial_of_a_default_space_is_the_start(self):
        found = tune("gcn", space=None, trials=2, overrides=["train.epochs=2"])
        (start,) = [trial for trial in found.trials if trial.number == 0]
        assert dict(start.chosen) == {}
        assert start.settings == RunSpec.of(DATA, "gcn", overrides=["train.epochs=2"]).settings

    def test_no_trial_is_started_when_the_time_is_up(self):
        found = tune(trials=6, timeout=1e-9)
        assert found.trials == ()
        with pytest.raises(UserError, match="no trial of mlp on own is finished: give the search more time"):
            _ = found.best

    def test_without_optuna(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "optuna", None)
        for name in [
            name for name in sys.modules if name.startswith("gumbel_mpnn.runs.") and name.endswith(("tune", "study"))
        ]:
            monkeypatch.delitem(sys.modules, name)
        with pytest.raises(UserError, match=r"tune needs Optuna, .* pip install 'gumbel-mpnn\[tune\]'"):
            gm.tune(DATA)


def test_more_trials_later_continue_the_study(tmp_path, trained):
    space = {"train": {"lr": {"low": 0.01, "high": 0.1, "log": True}, "epochs": 2}}
    tune(trials=2, runs=tmp_path, space=space)
    count = len(trained)
    found = tune(trials=5, runs=tmp_path, space=space).trials
    assert sorted(trial.number for trial in found) == [0, 1, 2, 3, 4]
    assert len({trial.chosen["train.lr"] for trial in found if 0.01 <= trial.chosen["train.lr"] <= 0.1}) == 5
    assert len(trained) == count + 3


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Three trials of a model that rewires."""
    options = {"trials": 3, "splits": [0, 1], "runs": tmp_path_factory.mktemp("tuned"), "baseline": False}
    space = {"rewiring": {"keep": [0.5, 0.9], "regularizer": ["lc", "mix"], "regularizer.weight": 0.5}}
    overrides = ["train.epochs=2", "model.hidden_channels=4", "rewiring.candidates=two_hop"]
    return tune("gumbel-mpnn", space=space, overrides=overrides, **options)


class TestPresets:
    def test_a_file_gives_the_settings_of_the_best_trial_and_says_where_it_comes_from(self, found, tmp_path):
        path = found.save(tmp_path / "best.toml")
        again = RunSpec.of(DATA, "gumbel-mpnn", preset=path)
        assert again.settings == found.best.settings
        assert Session(found.search.runs, "tune").find(dataclasses.replace(again, splits=(0, 1))) is not None
        about = tomllib.loads(path.read_text())
        assert about["tried"] == about["tuning"]["trials"] == 3
        assert {name: about["tuning"][name] for name in ("model", "dataset", "runs_of_each")} == {
            "model": "gumbel-mpnn",
            "dataset": "own",
            "runs_of_each": 2,
        }
        assert (about["tuning"]["val"], about["tuning"]["stderr"]) == (found.best.val.mean, found.best.val.stderr)
        assert "test" not in about["tuning"]
        assert "tuning" not in read_settings_file(path)
        assert default_model(DATA, path) == "gumbel-mpnn"
        plain = tmp_path / "plain.toml"
        plain.write_text("[train]\nlr = 0.1\n")
        assert default_model(DATA, plain) == "gcn"

    def test_a_name_is_found_on_the_same_data_set(self, found, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        path = found.save_as("mine")
        assert path == tmp_path / "gumbel-mpnn" / "presets" / "mine.toml"
        spec = RunSpec.of(DATA, "gumbel-mpnn", preset="mine")
        assert spec.settings == found.best.settings
        assert spec.preset.tried == 3
        assert RunSpec.of(DATA, "gcn", preset="mine").preset is None
        # Candidates of an own preset replace those of the data.
        data = changed(DATA, candidate_index=edges((0, 5)))
        for preset, candidates in (("mine", "two_hop"), ("tuned", "data")):
            read = RunSpec.of(data, "gumbel-mpnn", preset=preset).read().settings
            assert read.rewiring.candidates == candidates

    @pytest.mark.parametrize("name", ["tuned", "paper", "auto", "none", "", "a/b", "..", "x.toml", "a b"])
    def test_names_that_are_refused(self, found, name, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        with pytest.raises(UserError, match="name"):
            found.save_as(name)
        assert not list(tmp_path.rglob("*.toml"))


TWO_TRIALS = {"trials": 2, "overrides": ["train.epochs=1", "model.hidden_channels=4"]}


class TestBaselines:
    def test_the_plain_backbone_has_the_same_budget(self):
        found = tune("gumbel-mpnn", space=None, **TWO_TRIALS)
        plain = found.baseline
        assert plain.model == "gcn"
        assert len(plain.trials) == len(found.trials) == 2
        common = searched(plain.search.space).keys()
        assert common == {key for key in searched(found.search.space) if not key.startswith("rewiring.")}
        drawn = [next(trial for trial in tuning.trials if trial.number == 1) for tuning in (found, plain)]
        assert {key: drawn[0].chosen[key] for key in common} == dict(drawn[1].chosen)

    def test_it_can_be_left_out_and_plain_models_have_none(self, found):
        assert found.baseline is None
        for model in ("mlp", "drop-edge"):
            assert tune(model, **{**TWO_TRIALS, "trials": 1}).baseline is None

    def test_the_backbone_is_that_of_the_settings_as_it_is_in_a_space_of_rewiring_alone(self, tmp_path):
        path = tmp_path / "mine.toml"
        path.write_text("[model]\ndropout = 0.25\n[rewiring]\nkeep = 0.5\n[train]\nlr = 0.5\n")
        options = {"preset": path, "overrides": ["model.backbone=sage", "rewiring.tau=0.5", "train.epochs=1"]}
        found = tune("gumbel-mpnn", trials=2, space={"rewiring": {"keep": [0.5, 0.9]}}, **options)
        assert (len(found.trials), len(found.baseline.trials)) == (2, 1)
        plain = found.baseline.best.settings
        assert (plain.model, plain.train.lr, plain.train.epochs, plain.options["dropout"]) == ("sage", 0.5, 1, 0.25)


class TestMistakes:
    @pytest.mark.parametrize(
        ("space", "sentence"),
        [
            ({"train": {"lr": []}}, "the list of choices of train.lr is empty"),
            ({"train": {"lr": [0.1, "a"]}}, "setting 'train.lr' must be of type float"),
            ({"train": {"lr": {"low": -1, "high": 1}}}, "setting 'train.lr' must be above 0, but is -1.0"),
            ({"train": {"epochs": {"low": 0.5, "high": 1}}}, "setting 'train.epochs' must be of type int"),
            ({"train": {"epoch": [1]}}, "there is no setting 'train.epoch': did you mean 'epochs'?"),
            ({"model": {"hiden_channels": [4, 8]}}, "has no option 'hiden_channels': did you mean 'hidden_channels'?"),
            ({"model": {"norm": ["none", "bach"]}}, "bach"),
            ({"rewiring": {"keep": [0.5]}}, "model 'mlp' does not rewire the graph"),
            ({"train": {"lr": 0.1}}, "the space contains nothing to search"),
            ({"data": {"metric": ["accuracy", "macro_f1"]}}, "give data.metric one value"),
            ({"data": {"protocol": ["", "random-60-20-20"]}}, "give data.protocol one value"),
        ],
    )
    def test_are_told_before_anything_is_tried(self, no_training, space, sentence):
        no_training()
        with pytest.raises(UserError) as error:
            tune(space=space, trials=2)
        assert sentence in str(error.value)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"trials": 0}, "trials must be at least 1, but is 0"),
            ({"timeout": 0}, "the time limit must be above 0 seconds"),
            ({"space": Path("nowhere.toml")}, "there is no settings file nowhere.toml"),
            ({"storage": "nosuch://me:secret@host/x"}, "cannot open the storage nosuch://me:…@host/x: "),
            ({"model": "auto"}, "'auto' chooses among settings by itself: name a model to tune"),
            ({"workers": 0}, "workers must be at least 1"),
            ({"model": "gumbel-mpnn", "space": {"rewiring": {"candidates": ["two-hops"]}}}, "called 'two-hops'"),
            (
                {"data": changed(DATA, val_mask=None), "settings": {"train": {"select": "last"}}},
                "a search compares settings on validation nodes",
            ),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_other_arguments(self, no_training, options, sentence):
        no_training()
        with pytest.raises(UserError, match=sentence) as error:
            tune(**options)
        assert "secret" not in str(error.value)


def test_test_labels_change_nothing(tmp_path):
    other = changed(DATA, y=DATA.y.clone())
    other.y[DATA.test_mask[:, 0]] = other.y[DATA.test_mask[:, 0]].roll(1)
    space = {"train": {"lr": {"low": 0.01, "high": 0.5, "log": True}, "epochs": 40}, "model": {"hidden_channels": 4}}
    first, second = (tune(data=data, space=space, trials=10) for data in (DATA, other))
    assert {trial.state for trial in first.trials} == {"finished", "pruned"}
    assert [(t.number, t.state, t.val) for t in first.trials] == [(t.number, t.state, t.val) for t in second.trials]


def test_no_record_is_left_of_what_was_pruned(tmp_path):
    space = {"train": {"lr": {"low": 1e-5, "high": 0.5, "log": True}, "epochs": 40}, "model": {"hidden_channels": 4}}
    found = tune(space=space, trials=8, runs=tmp_path)
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.val.n == 0 for trial in pruned)
    assert len(list(find_records(tmp_path))) == sum(trial.state == "finished" for trial in found.trials)
    assert not list(tmp_path.rglob("checkpoint-*"))
