"""The model `sdrf` and how models on a graph of their own borrow presets."""

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn import UserError
from gumbel_mpnn.baselines import SDRF
from gumbel_mpnn.baselines.sdrf.model import SDRFModel
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.training import prepare
from helpers import small_data
from quick_fit import resolved
from unit.runs.test_fit import Notes

QUICK = {"model": {"hidden_channels": 8, "iterations": 12}, "train": {"epochs": 5, "lr": 0.01}}


def test_it_is_the_backbone_on_the_rewired_graph():
    data = small_data()
    run = gm.fit(data, "sdrf", seeds=2, preset=None, settings=QUICK)
    rewired = SDRF(12)(data)
    assert rewired.edge_index.shape != gm.PairGraph.of(data).edge_index.shape or not torch.equal(
        rewired.edge_index, gm.PairGraph.of(data).edge_index
    )
    plain = {"model": {"hidden_channels": 8}, "train": QUICK["train"]}
    same = gm.fit(rewired, "gcn", seeds=2, preset=None, settings=plain)
    assert [record.test for record in run.records] == [record.test for record in same.records]
    torch.testing.assert_close(run.predict_proba(), same.predict_proba())


def test_a_run_gives_the_graph_it_trained_on():
    data = small_data()
    run = gm.fit(data, "sdrf", preset=None, settings=QUICK)
    expected = SDRF(12)(data)
    rewired = run.rewire()
    assert torch.equal(rewired.edge_index, expected.edge_index)
    assert torch.equal(rewired.edge_origin, expected.edge_origin)
    assert not rewired.edge_origin.all()
    other = small_data(nodes=31)
    assert torch.equal(run.rewire(other).edge_index, SDRF(12)(other).edge_index)


def test_its_options_reach_the_transform(monkeypatch):
    seen = []

    def note(self, data, **keywords):
        seen.append(str(self))
        return data

    monkeypatch.setattr(SDRF, "rewire", note)
    changes = {"iterations": 7, "tau": 3, "remove": False, "sdrf_seed": 5}
    settings = resolved(small_data(), "sdrf", preset=None, settings={"model": changes, "data": {"undirected": False}})
    prepare(small_data(), settings)
    assert seen == ["SDRF(iterations=7, tau=3.0, removal_bound=None, undirected=False, seed=5)"]


def test_fit_tells_its_monitor_how_far_it_is():
    notes = Notes()
    gm.fit(small_data(), "sdrf", preset=None, settings=QUICK, monitor=notes)
    assert (notes.prepared[0], notes.prepared[-1]) == ((0, 12), (12, 12))
    gm.fit(small_data(), "gcn", preset=None, settings={"train": {"epochs": 1}}, monitor=(other := Notes()))
    assert other.prepared == []


def test_other_models_take_the_graph_as_it_is():
    data = small_data()
    assert prepare(data, resolved(data, "gcn", preset=None)) is data


def test_mistakes_in_its_options_are_found_before_training():
    for option, message in (("tau=-1", "tau must be"), ("taus=1", "no option")):
        with pytest.raises(UserError, match=message):
            gm.fit(small_data(), "sdrf", preset=None, overrides=[f"model.{option}"])


def test_control_c_stops_training_too(monkeypatch):
    def stop(self, flow):
        raise KeyboardInterrupt

    monkeypatch.setattr(SDRF, "_run", stop)
    with pytest.raises(KeyboardInterrupt):
        gm.fit(small_data(), "sdrf", preset=None, settings=QUICK)


@pytest.mark.parametrize("model", ["sdrf", "drop-edge"])
@pytest.mark.parametrize(("family", "dataset"), [("tuned", "roman-empire"), ("paper", "cora")])
def test_without_a_preset_of_its_own_a_model_takes_its_backbones(model, family, dataset):
    assert read_preset(family, dataset, model) is None
    for overrides, backbone in (((), "gcn"), (["model.backbone=sage"], "sage")):
        settings = resolved(dataset, model, preset=family, overrides=overrides)
        expected = resolved(dataset, backbone, preset=family)
        assert settings.train == expected.train
        assert {name: settings.options[name] for name in expected.options} == dict(expected.options)


def test_it_shows_what_it_is():
    assert str(SDRFModel(5, out_channels=3, hidden_channels=8, remove=False)) == (
        "SDRFModel(GCN(8 wide, 2 layers, 3 classes), iterations=100, tau=1.0, remove=False, removal_bound=0.5,"
        " sdrf_seed=0)"
    )


def test_what_sdrf_refuses_the_model_refuses():
    with pytest.raises(UserError, match="tau must be"):
        SDRFModel(5, out_channels=3, tau=-1.0)
