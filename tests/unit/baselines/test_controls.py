"""The controls of Gumbel-MPNN: one whose scorer never learns, and one that draws edges at random."""

import pytest
import torch

from gumbel_mpnn.baselines import Frozen, RandomEdges
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import GCN
from gumbel_mpnn.rewiring.scorers import scorers
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import RewiringSettings, resolve
from gumbel_mpnn.training import build_model, models, train
from gumbel_mpnn.training.trainer import Trainer
from helpers import make_task, normal, random_edges, replicas, small_data

ALL_TERMS = {
    "samples": 2,
    "agreement": 1.0,
    "prior": 1.0,
    "regularizer": "label-consistency",
    "regularizer.weight": 1.0,
    "evaluation": "mean_of_samples",
}


def task():
    data = small_data()
    data.candidate_index = random_edges(data.num_nodes, 30, seed=11)
    return make_task(data)


def settings(model, **rewiring):
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 6, "lr": 0.01, "select": "last"}}
    return resolve("own", model, {**tables, "rewiring": rewiring}, models.complete, rewires=True)


def trained(model, **rewiring):
    """The state before and after training."""
    where, one = task(), replicas((0, 3))
    before = build_model(settings(model, **rewiring), where, one).state_dict()
    return before, train(where, settings(model, **rewiring), one)[0].state


class TestFrozen:
    @pytest.mark.parametrize("scorer", ["bilinear", "class-space", "mixed", "neighborhood"])
    def test_the_scorer_stays_and_the_rest_learns(self, scorer):
        before, after = trained("frozen", scorer=scorer, origin="learned", **ALL_TERMS)
        edges = [name for name in before if name.startswith("rewirer.")]
        assert "rewirer.origin" in edges
        for name, value in before.items():
            assert torch.equal(value, after[name]) == (name in edges or name == "evaluation_seeds"), name
        assert ("belief_head.out.weight" in before) == scorers[scorer].uses_beliefs

    def test_its_start_and_its_first_loss_are_those_of_gumbel_mpnn(self):
        where, one = task(), replicas((0, 3))
        frozen, learned = (
            Trainer(where, settings(name, scorer="class-space", **ALL_TERMS), one) for name in ("frozen", "gumbel-mpnn")
        )
        for name, value in learned.model.state_dict().items():
            assert torch.equal(value, frozen.model.state_dict()[name])
        for trainer in (frozen, learned):
            trainer.step()
        assert torch.equal(frozen.train_loss, learned.train_loss)
        assert torch.equal(frozen.model.belief_head.out.weight, learned.model.belief_head.out.weight)
        # The first step of the classifier is the same, up to the order of sums in the gradient.
        torch.testing.assert_close(frozen.model.backbone.state_dict(), learned.model.backbone.state_dict())
        assert torch.equal(frozen.model.rng.get_state()["calls"], learned.model.rng.get_state()["calls"])

    def test_the_optimizer_has_no_parameter_of_the_scorer(self):
        model = Frozen(in_channels=6, out_channels=3, hidden_channels=8, scorer="class-space", origin="learned")
        groups = model.parameter_groups(settings("frozen"))
        optimized = {id(parameter) for group in groups for parameter in group["params"]}
        assert not optimized & {id(parameter) for parameter in model.rewirer.parameters()}
        assert {id(parameter) for parameter in model.belief_head.parameters()} <= optimized

    def test_its_settings_are_those_of_gumbel_mpnn(self):
        frozen, learned = (RunSpec.of("cora", name, preset="few-labels") for name in ("frozen", "gumbel-mpnn"))
        assert frozen.settings.rewiring == learned.settings.rewiring
        assert (frozen.settings.train, frozen.settings.data) == (learned.settings.train, learned.settings.data)
        assert frozen.settings.options == learned.settings.options


class TestRandomEdges:
    def test_it_has_the_parameters_of_its_backbone_only(self):
        rewiring = RewiringSettings(scorer="class-space", origin="learned")
        model = RandomEdges(in_channels=6, out_channels=3, hidden_channels=8, rewiring=rewiring)
        plain = GCN(6, out_channels=3, hidden_channels=8)
        sizes = {name: value.shape for name, value in model.named_parameters()}
        assert sizes == {f"backbone.{name}": value.shape for name, value in plain.named_parameters()}
        assert model.belief_head is None

    @pytest.mark.parametrize(
        ("chosen", "kept", "added"),
        [
            ({"keep": 0.8, "add": 0.1}, 0.8, 0.1),
            ({"keep": 0.8, "add": 0.1, "origin": "learned", "options": {"scorer.second_sigmoid": True}}, 0.8, 0.1),
            ({"keep": 0.8, "add": 0.1, "origin": "none"}, 0.5, 0.5),
        ],
        ids=str,
    )
    def test_how_often_edges_are_drawn(self, chosen, kept, added):
        graph = PairGraph.build(random_edges(60, 150), 60, candidate_index=random_edges(60, 300, seed=1))
        rewiring = RewiringSettings(scorer="bilinear", **chosen)
        model = RandomEdges(in_channels=5, out_channels=3, hidden_channels=4, seeds=[1], rewiring=rewiring).train()
        x = normal(60, 5, dtype=torch.float32)
        drawn = torch.cat([model(x, graph, return_graph=True)[1].weight for _ in range(100)])
        assert set(drawn.unique().tolist()) == {0.0, 1.0}
        for pairs, probability in ((graph.is_original, kept), (~graph.is_original, added)):
            some = drawn[:, pairs]
            spread = (probability * (1 - probability) * some.numel()) ** 0.5
            assert abs(float(some.sum()) - probability * some.numel()) < 4 * spread
        torch.testing.assert_close(
            model.pair_probability(x, graph)[0], torch.where(graph.is_original, kept, added), atol=1e-6, rtol=0
        )

    @pytest.mark.parametrize("scorer", list(scorers))
    def test_settings_of_any_gumbel_mpnn_do(self, scorer):
        before, after = trained("random", scorer=scorer, origin="learned", **ALL_TERMS)
        for name, value in before.items():
            assert torch.equal(value, after[name]) == (not name.startswith("backbone.")), name

    def test_what_it_sets_itself_is_in_its_settings(self):
        spec = RunSpec.of("cora", "random", preset="few-labels")
        learned = RunSpec.of("cora", "gumbel-mpnn", preset="few-labels")
        rewiring = spec.settings.rewiring
        assert (rewiring.scorer, rewiring.prior, rewiring.keep) == ("constant", 0.0, learned.settings.rewiring.keep)
        assert (rewiring.samples, rewiring.agreement) == (2, 1.0)
        assert spec.origins["rewiring.scorer"] == "model random"
        assert spec.origins["rewiring.samples"] == "preset few-labels"
        assert spec.settings.options == learned.settings.options

    def test_two_settings_that_only_teach_a_scorer_differently_are_one_setting(self):
        plain, taught = (
            RunSpec.of("cora", "random", preset=None, settings={"rewiring": rewiring}).settings
            for rewiring in ({}, {"scorer.pair_loss": 1.0, "prior": 2.0, "scorer": "class-facts"})
        )
        assert plain == taught

    def test_options_of_the_scorer_are_left_out(self):
        overrides = ["rewiring.scorer=bilinear", "rewiring.scorer.channels=4", "rewiring.origin=none"]
        rewiring = RunSpec.of(small_data(), "random", overrides=overrides).settings.rewiring
        assert (rewiring.scorer, rewiring.origin, rewiring.options_of("scorer")) == ("constant", "none", {})
