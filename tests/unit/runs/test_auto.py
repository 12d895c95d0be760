"""`auto`: rungs are trained as any runs are, and validation alone chooses."""

import dataclasses

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.nn import models
from gumbel_mpnn.report.page.content import page_content
from gumbel_mpnn.runs import auto
from gumbel_mpnn.runs import fit as module
from gumbel_mpnn.runs.auto import AutoSpec, fit_auto
from gumbel_mpnn.runs.choice import read_choices
from gumbel_mpnn.runs.fit import default_model, default_workers, describe, fit
from gumbel_mpnn.runs.progress import Monitor
from gumbel_mpnn.runs.run import load_run
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.runs.store import find_records
from gumbel_mpnn.settings.presets import preset_families, read_rungs
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import changed, small_data

FOR_FEATURES = [rung.name for rung in read_rungs() if rung.needs in ("", "features")]
FAST = {"overrides": ["train.epochs=3", "model.hidden_channels=8"]}
FROZEN = {"overrides": [*FAST["overrides"], "model.learned=frozen"]}
WARY = {"overrides": [*FAST["overrides"], "model.wary=true"]}
WITH_STRUCTURE = {"data": {"features": "with-structure"}}


def quick(data=None, **options):
    return fit(small_data() if data is None else data, "auto", **{**FAST, **options})


def vals(run):
    return {rung.name: rung.val for rung in run.choice.rungs}


def test_rungs_go_from_plain_to_free_and_are_no_family_of_presets():
    rungs = read_rungs()
    rewires = [models[rung.model].rewires for rung in rungs]
    assert rewires == sorted(rewires)
    spec = AutoSpec.of(small_data())
    assert list(spec.rungs) == [rung.name for rung in rungs if rung.about]
    assert spec.plain == [rung.name for rung in rungs if rung.model in ("mlp", "gcn", "sage", "appnp")]
    assert "auto" not in preset_families()


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return quick(runs=tmp_path_factory.mktemp("runs"))


class TestRun:
    def test_is_that_of_the_chosen_rung(self, ran):
        chosen = next(rung for rung in read_rungs() if rung.name == ran.choice.chosen)
        alone = fit(small_data(), chosen.model, preset=None, settings=chosen.tables, **FAST)
        assert ran.settings == alone.settings
        assert [record.val for record in ran.records] == [record.val for record in alone.records]
        assert torch.equal(ran.predict_proba(), alone.predict_proba())
        assert ran.choice.chosen in repr(ran.to_dict()["choice"])

    def test_is_found_again_and_nothing_is_trained_twice(self, ran, no_training):
        no_training()
        assert quick(runs=ran.folder.path.parents[3]).choice == ran.choice
        assert read_choices(ran.folder.path) == [ran.choice]
        loaded = load_run(ran.folder.path, data=small_data())
        assert loaded.choice == ran.choice
        assert torch.equal(loaded.predict_proba(), ran.predict_proba())

    def test_the_learned_graph_is_the_given_one_if_a_plain_rung_is_chosen(self, ran):
        graph = dataclasses.replace(ran.rungs["gcn"], choice=ran.choice).rewire()
        pairs = {(i, j) for i, j in small_data().edge_index.t().tolist() if i != j}
        assert set(map(tuple, graph.edge_index.t().tolist())) == pairs | {(j, i) for i, j in pairs}
        assert graph.edge_origin.all()
        assert (graph.edge_probability == 1).all()
        with pytest.raises(UserError, match="model 'gcn' does not rewire the graph"):
            ran.rungs["gcn"].rewire()

    def test_every_rung_has_its_validation_value(self, ran):
        best = max(ran.choice.rungs, key=lambda rung: rung.val)
        assert best.rank == 1
        assert all(rung.behind == pytest.approx(best.val - rung.val) for rung in ran.choice.rungs)
        plain = [rung for rung in ran.choice.rungs if rung.plain]
        assert ran.choice.best_plain == max(plain, key=lambda rung: rung.val).name
        assert ran.choice.gain == pytest.approx(vals(ran)[ran.choice.chosen] - vals(ran)[ran.choice.best_plain])

    def test_choices_of_other_splits_and_ladders_lie_beside(self, tmp_path):
        both, first = quick(runs=tmp_path), quick(runs=tmp_path, splits=[0])
        frozen = fit(small_data(), "auto", runs=tmp_path, **FROZEN)
        found = [
            choice for folder in {run.folder.path for run in (both, first, frozen)} for choice in read_choices(folder)
        ]
        assert sorted(found, key=repr) == sorted((both.choice, first.choice, frozen.choice), key=repr)

    def test_a_damaged_choice_is_told(self, tmp_path):
        assert read_choices(tmp_path) == []
        (tmp_path / "choice-0.json").write_text("{}")
        with pytest.raises(DataError, match=r"cannot read the choice .* delete it and train again"):
            read_choices(tmp_path)

    def test_a_rung_that_diverges_is_left_out(self, tmp_path, monkeypatch):
        fit_all = Session.fit_all

        def diverge(session, specs, *shown):
            too_fast = {"train": {"lr": 1e30}}
            specs = [each.laid_over(too_fast) if each.origins["train.lr"] == "rung gcn" else each for each in specs]
            return fit_all(session, specs, *shown)

        monkeypatch.setattr(Session, "fit_all", diverge)
        run = quick(runs=tmp_path)
        assert {rung.name for rung in run.choice.rungs if rung.val is None} == {"gcn"}
        assert "gcn" not in run.rungs

    def test_goes_on_after_an_interruption(self, tmp_path):
        class Stop(Monitor):
            at = ("", 0)

            def end(self, setting, run):
                if (self.round, setting) == self.at:
                    raise KeyboardInterrupt

        data = changed(small_data(nodes=60), train_mask=None, val_mask=None, test_mask=None)
        spec = describe(data, "auto", **FAST)
        for Stop.at in (("round 1 of 3", 5), ("round 2 of 3", 3), ("round 3 of 3", 0)):
            with pytest.raises(KeyboardInterrupt):
                fit_auto(spec, Session(tmp_path, monitor=Stop()))
        run = quick(data, runs=tmp_path)
        assert run.choice == quick(data).choice
        counts = {rung.name: rung.runs for rung in run.choice.rungs}  # weak rungs are stopped early
        assert set(counts.values()) == {3, 5, 10}
        assert counts[run.choice.chosen] == counts[run.choice.best_plain] == 10
        assert sum(counts.values()) == len(list(find_records(tmp_path)))
        assert all((rung.rank is None) == (rung.runs < 10) for rung in run.choice.rungs)


class TestWary:
    """Rungs are compared with hostile edges at validation nodes, and the chosen one is trained without them."""

    def test_it_trains_on_the_graph_itself(self, tmp_path, no_training):
        run = fit(small_data(), "auto", runs=tmp_path, **WARY)
        assert run.choice.wary
        assert run.choice.runs == ("split0-seed0", "split1-seed0")
        assert {rung.runs for rung in run.choice.rungs} == {1}
        assert run.choice.sentence().endswith(", with hostile edges at validation nodes")
        assert repr(run).splitlines()[-1].startswith("auto (wary): ")
        chosen = next(rung for rung in read_rungs() if rung.name == run.choice.chosen)
        alone = fit(small_data(), chosen.model, preset=None, settings=chosen.tables, **FAST)
        assert [record.val for record in run.records] == [record.val for record in alone.records]
        assert run.rungs == {}
        no_training()
        assert fit(small_data(), "auto", runs=tmp_path, **WARY).choice == run.choice
        assert load_run(run.folder.path, data=small_data()).choice == run.choice

    def test_it_keeps_the_transform_of_the_user(self):
        edges = small_data().edge_index
        data = changed(small_data(), edge_index=torch.empty(2, 0, dtype=torch.long))
        run = fit(data, "auto", transform=lambda given: changed(given, edge_index=edges), splits=[1], **WARY)
        assert run.choice.runs == ("split1-seed0",)
        assert torch.equal(run.data.edge_index, edges)
        with pytest.raises(DataError, match="no validation node has an edge"):
            fit(data, "auto", **WARY)

    def test_the_error_is_that_of_the_attacked_nodes(self, monkeypatch):
        seen, first = [], auto.choose
        monkeypatch.setattr(auto, "choose", lambda *given: seen.append(given[-1]) or first(*given))
        fit(small_data(nodes=60), "auto", **WARY)
        fit(small_data(nodes=60), "auto", **FAST)
        assert seen == [7, 20]


def test_no_label_of_nodes_that_every_split_tests_reaches_the_choice():
    data = small_data()
    test = data.test_mask if data.test_mask.dim() == 1 else data.test_mask.all(1)
    other = data.y.clone()
    other[test] = other[test].flip(0)
    shuffled = changed(data, y=other)
    assert quick(shuffled).choice == quick(data).choice
    assert not torch.equal(other, data.y)


class TestGraphsThatLackSomething:
    def test_no_edges(self):
        run = quick(changed(small_data(), edge_index=torch.empty(2, 0, dtype=torch.long)))
        assert list(vals(run)) == FOR_FEATURES

    def test_candidates_of_the_data_are_used(self):
        data = changed(small_data(), candidate_index=torch.tensor([[0, 1], [5, 6]]))
        spec = AutoSpec.of(data)
        chosen = {name: rung.read().settings.rewiring for name, (_, rung) in spec.rungs.items()}
        rewired = {name: rewiring.candidates for name, rewiring in chosen.items() if rewiring is not None}
        steady = [rewired.pop(name) for name in ("steady-gcn", "steady-appnp", "structure-steady")]
        assert set(steady) == {"none"}
        assert set(rewired.values()) == {"data"}

    def test_no_features(self):
        with pytest.warns(DataWarning, match="no features") as told:
            run = quick(changed(small_data(), x=None))
        assert list(vals(run)) == [rung.name for rung in read_rungs() if rung.needs in ("", "no features")]
        assert {name for name in vals(run) if name.startswith("structure")} != set()
        assert sum("no features" in str(warning.message) for warning in told) == 1

    def test_an_identity_matrix_of_the_user_is_no_features(self):
        data = small_data()
        shuffled = torch.eye(data.num_nodes)[torch.randperm(data.num_nodes)]
        assert "structure-gcn" in vals(quick(changed(data, x=shuffled)))
        assert "structure-gcn" not in vals(quick(changed(data, x=shuffled.cumsum(0))))


class TestSettingsOfTheUser:
    def test_are_given_to_every_rung_that_has_them(self):
        spec = AutoSpec.of(small_data(), overrides=["train.epochs=7", "rewiring.tau=0.3", "model.num_layers=1"])
        for _, rung in spec.rungs.values():
            assert rung.settings.train.epochs == 7
            assert rung.settings.options["num_layers"] == 1
            assert rung.settings.rewiring is None or rung.settings.rewiring.tau == rung.settings.rewiring.tau_end == 0.3

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"overrides": ["model.backbone=gat"]}, "model 'auto' chooses the backbone: leave out model.backbone"),
            ({"overrides": ["model.hidden=8"]}, "model 'auto' has no option 'hidden': known are"),
            ({"overrides": ["model.wary=1"]}, "option 'wary' of model 'auto' must be of type bool"),
            ({"overrides": ["model.learned=gcn"]}, "there is no model that rewires called 'gcn': known are"),
            ({"preset": "paper"}, "model 'auto' has its own settings and cannot use the preset paper"),
            ({"preset": "my.toml"}, "model 'auto' has its own settings and cannot use the settings file my.toml"),
        ],
    )
    def test_that_it_cannot_use(self, options, message):
        with pytest.raises(UserError, match=message.replace("(", r"\(")):
            fit(small_data(), "auto", **options)

    def test_a_name_that_is_almost_right(self):
        with pytest.raises(UserError, match=r"there is no model called 'aut': did you mean .*'auto'"):
            fit(small_data(), "aut")

    def test_the_last_epoch_needs_no_patience(self):
        assert quick(overrides=[*FAST["overrides"], "train.select=last"]).settings.train.patience == 0

    def test_that_let_every_rung_diverge(self):
        with pytest.raises(UserError, match="training of every rung diverged"):
            quick(overrides=["train.epochs=3", "train.lr=1e30"])


@pytest.mark.parametrize(("dataset", "model"), [("cora", "gcn"), ("bottleneck-10", "gcn"), ("texas", "auto")])
def test_the_default_model(dataset, model):
    assert default_model(dataset) == model
    assert default_model(small_data()) == default_model(dataset, None) == "auto"
    assert default_model(small_data(), "paper") == "gcn"
    assert isinstance(describe(small_data()), AutoSpec)


class TestSeveralProcesses:
    def test_they_choose_as_one_does(self, tmp_path, ran):
        assert quick(runs=tmp_path, workers=2).choice == ran.choice

    def test_one_for_each_thread_by_default(self, monkeypatch):
        spec = AutoSpec.of(small_data())
        for threads, workers in ((4, 4), (64, len(spec.rungs) // 2)):
            monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
            assert default_workers(spec, "cpu") == workers
            assert default_workers(RunSpec.of(small_data(), "gcn"), "cpu") == 1
        monkeypatch.setattr(module, "MOST_EDGES", 10)
        assert default_workers(spec, "cpu") == default_workers(AutoSpec.of("cora"), "cpu") == 1


class TestStructure:
    """Positions among communities as features, on a graph that has none, or beside the features."""

    def fitted(self, model="gumbel-mpnn", data=None, features="with-structure", **options):
        data = small_data() if data is None else data
        return fit(data, model, preset=None, settings={"data": {"features": features}}, **FAST, **options)

    @pytest.mark.parametrize(("features", "x"), [("structure", None), ("with-structure", small_data().x)])
    def test_a_run_can_be_used_and_is_loaded(self, tmp_path, features, x):
        data = changed(small_data(), x=x)
        run = self.fitted(data=data, features=features, runs=tmp_path)
        again = gm.load_run(run.folder.path, data=data)
        assert torch.equal(again.predict_proba(), run.predict_proba())
        assert torch.equal(run.rewire().x.to_dense(), run.data.x.to_dense())
        assert len(run.audit().edges)
        if x is None:  # as many dimensions as classes
            state = run.folder.state(run.records[0].replica)
            assert state["backbone.convs.0.linear.weight"].shape[1] == int(data.y.max()) + 1
        other = changed(run.data, edge_index=run.data.edge_index[:, :-4])
        with pytest.raises(UserError, match="positions in the graph that they were trained on"):
            run.predict(other)

    def test_another_graph_is_refused(self):
        run = self.fitted("gcn")
        data = run.data
        x = data.x.clone()
        x[0, 0] += 1000  # positions are scaled as the features are
        others = [
            changed(data, edge_index=data.edge_index[:, :-4]),
            changed(data, x=x),
            changed(data, x=torch.cat([data.x, data.x]), y=torch.cat([data.y, data.y])),
            changed(data, y=data.y.clamp(max=1)),
            changed(data, y=None),
        ]
        for other in others:
            with pytest.raises(UserError, match=r"\(data.features=with-structure\).* another value of data.features"):
                run.predict(other)
        assert run.predict(changed(data, x=data.x.to_sparse_csr())) == run.predict()

    def test_a_graph_that_was_changed_before_training_has_the_features_that_were_given(self):
        run = self.fitted("sdrf")
        assert torch.equal(run.rewire().x, run.data.x)
        with pytest.raises(UserError, match="positions in the graph that they were trained on"):
            run.rewire(changed(run.data, y=None))

    def test_a_page_compares_with_a_control_that_has_them_too(self, tmp_path):
        run = quick(settings=WITH_STRUCTURE, runs=tmp_path)
        fit(small_data(), "auto", runs=tmp_path, **FROZEN)
        assert "control, edges not learned" in page_content([run])["runs"][0]["table"]["absent"]
        fit(small_data(), "auto", settings=WITH_STRUCTURE, runs=tmp_path, **FROZEN)
        assert "control, edges not learned" not in page_content([run])["runs"][0]["table"]["absent"]

    def test_auto_gives_them_to_every_rung(self):
        spec = AutoSpec.of(small_data(), settings=WITH_STRUCTURE)
        assert {rung.settings.data.features for _, rung in spec.rungs.values()} == {"with-structure"}
        assert quick(settings=WITH_STRUCTURE).choice is not None
