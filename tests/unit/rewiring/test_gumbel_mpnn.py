"""The rewired model: forward, training, evaluation graphs, unseen graphs, replicas."""

import inspect

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import RewiringSettings, resolve
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.edge_models import NodeView, scorers
from gumbel_mpnn.rewiring.regularizers import Degree
from gumbel_mpnn.rewiring.rewired_graph import as_data
from gumbel_mpnn.rewiring.terms import Regularization
from gumbel_mpnn.training import Task, models, train
from helpers import edges, normal, numbers, random_edges, replicas, small_data

each_scorer = pytest.mark.parametrize("scorer", list(scorers))
EVALUATIONS = ("threshold", "expected", "mean_of_samples")


def data_with_candidates(seed=0):
    data = small_data()
    data.candidate_index = random_edges(data.num_nodes, 30, seed=seed + 11)
    return data


def model_for(data, **options):
    torch.manual_seed(0)
    return GumbelMPNN(data.num_features, out_channels=int(data.y.max()) + 1, hidden_channels=8, **options)


def settings_of(train_table=None, **rewiring):
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 6, "lr": 0.01, **(train_table or {})}}
    return resolve("own", "gumbel-mpnn", {**tables, "rewiring": rewiring}, models.complete, rewires=True)


@each_scorer
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat", "mlp"])
def test_forward_in_training_and_in_evaluation(scorer, backbone):
    data = data_with_candidates()
    model = model_for(data, scorer=scorer, backbone=backbone)
    out, graph = model(data, return_graph=True)
    assert out.shape == (data.num_nodes, 3)
    assert set(graph.weight.unique().tolist()) <= {0.0, 1.0}
    out.sum().backward()
    model.eval()
    assert torch.equal(model(data), model(data))


def test_training_starts_at_the_given_graph():
    data = data_with_candidates()
    _, graph = model_for(data, scorer="class-space").eval()(data, return_graph=True)
    given = graph.graph.is_original
    assert graph.probability[0, given].min() > 0.9
    assert graph.probability[0, ~given].max() < 0.15


def test_without_a_bias_by_origin_given_edges_have_no_advantage():
    data = data_with_candidates()
    model, scores = model_for(data, scorer="class-space", origin="none").eval(), []
    model.rewirer.scorer.register_forward_hook(lambda scorer, given, made: scores.append(made))
    _, graph = model(data, return_graph=True)
    assert torch.equal(model.rewirer.origin, torch.zeros(1, 2))
    torch.testing.assert_close(graph.probability, scores[0].sigmoid())


@pytest.mark.parametrize(("origin", "learned"), [("fixed", False), ("learned", True), ("none", False)])
def test_the_bias_by_origin_is_learned_only_if_asked_for(origin, learned):
    names = [name for name, _ in model_for(data_with_candidates(), origin=origin).named_parameters()]
    assert ("rewirer.origin" in names) == learned


def test_the_temperature_falls_geometrically():
    rewirer = model_for(small_data(), tau=2.0, tau_end=0.5).rewirer
    assert [rewirer.temperature(t) for t in (0.0, 0.5, 1.0)] == pytest.approx([2.0, 1.0, 0.5])
    assert rewirer.temperature(torch.tensor(0.5)).item() == pytest.approx(1.0)


@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_evaluation_graphs(evaluation):
    data = data_with_candidates()
    model = model_for(data, evaluation=evaluation, scorer="mixed").eval()
    out, graph = model(data, return_graph=True)
    assert torch.equal(model(data), out)
    if evaluation == "threshold":
        assert torch.equal(graph.weight, (graph.probability >= 0.5).float())
    elif evaluation == "expected":
        torch.testing.assert_close(graph.weight, graph.probability)
    else:
        torch.testing.assert_close(out.exp().sum(-1), torch.ones(data.num_nodes))
        eighths = 8 * graph.weight  # each pair is in so many of the eight graphs that were drawn
        assert torch.equal(eighths, eighths.round())
        assert 0 < (graph.weight - graph.probability).abs().max() < 0.6


def test_the_signature_names_the_options_of_every_backbone_with_their_defaults():
    named = {name: parameter.default for name, parameter in inspect.signature(GumbelMPNN).parameters.items()}
    options = backbones.all_defaults()
    assert {name: named[name] for name in options} == options
    assert all(f"\n        {name}: " in GumbelMPNN.__doc__ for name in options)


def test_the_graph_of_evaluation_by_threshold_is_the_one_that_rewire_gives():
    """Also of pairs exactly as likely as not: a scorer that says nothing, and no bias by origin."""
    data = data_with_candidates()
    model = model_for(data, evaluation="threshold", scorer="class-space", origin="none").eval()
    with torch.no_grad():
        model.rewirer.scorer.form.matrix.zero_()
    _, graph = model(data, return_graph=True)
    assert torch.equal(graph.probability, torch.full_like(graph.probability, 0.5))
    assert graph.weight.all()
    assert model.rewire(data).num_edges == 2 * graph.graph.num_pairs


def test_evaluating_leaves_the_streams_of_training_alone():
    data = data_with_candidates()
    model = model_for(data, evaluation="mean_of_samples")
    model(data)
    before = model.rng.get_state()
    model.eval()(data)
    after = model.rng.get_state()
    assert all(torch.equal(before[name], after[name]) for name in before)


@each_scorer
def test_training_is_reproducible_and_replicas_do_not_disturb_each_other(scorer):
    options = {"regularizer": "lc", "regularizer_weight": 0.5, "prior": 0.1, "samples": 2, "agreement": 0.5}
    settings = settings_of(scorer=scorer, **options)
    task = Task.of(data_with_candidates(), settings.data)
    group = replicas((0, 0), (1, 0), (0, 3))
    together = train(task, settings, group)
    assert numbers(together) == numbers(train(task, settings, group))
    (alone,) = train(task, settings, group[1:2])
    assert alone.history[-1]["train_loss"] == pytest.approx(together[1].history[-1]["train_loss"], rel=1e-4)


@pytest.mark.parametrize("beliefs", ["features", "graph", "rewired"])
def test_beliefs_come_from_features_or_from_the_backbone(beliefs):
    data = data_with_candidates()
    model, seen = model_for(data, scorer="class-space", beliefs=beliefs), []
    assert (model.belief_head is not None) == (beliefs != "graph")
    model.rewirer.scorer.register_forward_pre_hook(lambda scorer, given: seen.append(given[0].beliefs))
    model(data)
    assert len(seen) == (2 if beliefs == "rewired" else 1)
    for each in seen:
        torch.testing.assert_close(each.sum(-1), torch.ones(1, data.num_nodes))
        assert not each.requires_grad
    assert model.backbone.training


def test_rewired_beliefs_are_those_of_the_backbone_on_the_first_graph():
    data = data_with_candidates()
    model, seen = model_for(data, scorer="class-space", beliefs="rewired").eval(), []
    model.rewirer.scorer.register_forward_pre_hook(lambda scorer, given: seen.append(given[0].beliefs))
    graph = PairGraph.of(data)
    model(data)
    head, second = seen
    torch.testing.assert_close(head, model.belief_head(data.x[None], model.rng).softmax(-1))
    first = model.rewirer(NodeView(data.x[None], head, graph.is_original.float()), graph).sigmoid()
    expected = model.backbone.compute(data.x[None], WeightedGraph(graph, first, torch.float32)).softmax(-1)
    torch.testing.assert_close(second, expected)


@pytest.mark.parametrize("beliefs", ["graph", "rewired"])
def test_own_beliefs_have_a_gradient_in_evaluation_alone(beliefs):
    """An attack follows the weights of edges through the beliefs; training does not."""
    data, seen = data_with_candidates(), []
    model = model_for(data, scorer="class-space", beliefs=beliefs)
    model.rewirer.scorer.register_forward_pre_hook(lambda scorer, given: seen.append(given[0].beliefs))
    for training in (True, False):
        model.train(training)(data)
        assert seen[-1].requires_grad is not training


def test_a_scorer_without_beliefs_scores_once():
    data = data_with_candidates()
    model, seen = model_for(data, scorer="bilinear", beliefs="rewired"), []
    model.rewirer.scorer.register_forward_pre_hook(lambda scorer, given: seen.append(given))
    model(data)
    assert len(seen) == 1
    assert model.belief_head is None


@pytest.mark.parametrize(
    "options",
    [
        {"scorer": "class-space", "regularizer": "mix", "regularizer_weight": 0.5},
        {"scorer": "class-facts", "pair_loss": 1.0, "origin": "learned"},
        {"scorer": "class-facts", "pair_loss": 1.0, "beliefs": "rewired", "decoys": 1.0, "samples": 2},
    ],
    ids=["regularizer", "pair loss", "rewired beliefs"],
)
def test_validation_and_test_labels_do_not_reach_training(options):
    data, settings = data_with_candidates(), settings_of(**options)
    other = data.clone()
    hidden = ~data.train_mask[:, 0] if data.train_mask.dim() == 2 else ~data.train_mask
    other.y = torch.where(hidden, (data.y + 1) % 3, data.y)
    (first,), (second,) = (train(Task.of(d, settings.data), settings, replicas((0, 0))) for d in (data, other))
    assert [row["train_loss"] for row in first.history] == [row["train_loss"] for row in second.history]


def test_rewire_gives_a_plain_graph_with_probabilities_and_origin():
    data = data_with_candidates()
    model = model_for(data, scorer="mixed")
    rewired = model.rewire(data)
    assert model.training
    assert (rewired.edge_probability > 0.5).all()
    assert torch.equal(rewired.edge_weight, rewired.edge_probability)
    assert rewired.edge_index.shape[1] == len(rewired.edge_weight) == len(rewired.edge_origin)
    assert torch.equal(rewired.x, data.x)
    whole = model.rewire(data, threshold=0.0)
    assert whole.edge_index.shape[1] == 2 * PairGraph.of(data).num_pairs
    assert int(whole.edge_origin.sum()) == 2 * int(PairGraph.of(data).is_original.sum())


def test_rewire_serves_a_graph_it_never_saw():
    data = data_with_candidates()
    other = Data(x=torch.randn(5, data.num_features), edge_index=edges((0, 1), (1, 2)), candidate_index=edges((0, 4)))
    rewired = model_for(data, scorer="mixed").rewire(other, threshold=0.0)
    assert rewired.num_nodes == 5
    assert rewired.edge_index.tolist() == [[0, 0, 1, 1, 2, 4], [1, 4, 0, 2, 1, 0]]
    assert rewired.edge_origin.tolist() == [True, False, True, True, True, False]


def test_as_data_by_hand():
    graph = PairGraph.build(edges((0, 1)), 3, candidate_index=edges((1, 2), (0, 2)))
    out = as_data(graph, torch.tensor([0.8, 0.3, 0.5]), Data(y=torch.tensor([0, 1, 0]), num_nodes=3))
    assert out.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert out.edge_weight.tolist() == pytest.approx([0.8, 0.8, 0.5, 0.5])
    assert out.edge_origin.tolist() == [True, True, False, False]
    assert out.y.tolist() == [0, 1, 0]


def test_as_data_of_a_weighted_graph_by_hand():
    weights = {"edge_weight": torch.tensor([3.0, 0.0, 0.5], requires_grad=True)}
    graph = PairGraph.build(edges((0, 1), (0, 2), (1, 2)), 4, candidate_index=edges((0, 3)), **weights)
    out = as_data(graph, torch.tensor([0.2, 0.9, 0.6, 0.8]), Data(num_nodes=4))  # of 0–1, 0–2, 0–3, 1–2
    assert out.edge_index.tolist() == [[0, 0, 1, 2, 2, 3], [2, 3, 2, 0, 1, 0]]  # the threshold looks at no weight
    assert out.edge_probability.tolist() == pytest.approx([0.9, 0.6, 0.8, 0.9, 0.8, 0.6])
    assert out.edge_weight.tolist() == pytest.approx([0.0, 0.6, 0.4, 0.0, 0.4, 0.6])
    assert not out.edge_weight.requires_grad


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("undirected", [True, False])
def test_the_rewired_graph_is_what_the_model_is_evaluated_on(weighted, undirected):
    data = data_with_candidates()
    if weighted:
        data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(3)) * 2
    model = model_for(data, scorer="mixed").eval()
    graph = PairGraph.of(data, undirected=undirected)
    rewired = model.rewire(data, threshold=0.0, graph=graph)
    again = model.backbone(rewired, PairGraph.of(rewired, undirected=undirected))
    torch.testing.assert_close(again, model(data, graph), rtol=1e-4, atol=1e-5)
    assert torch.equal(rewired.edge_weight, rewired.edge_probability) is not weighted


@pytest.mark.parametrize("threshold", [2, -0.1, float("nan"), "half"])
def test_a_threshold_is_a_probability(threshold):
    graph = PairGraph.build(edges((0, 1)), 2)
    with pytest.raises(UserError, match="threshold must lie between 0 and 1, but is"):
        as_data(graph, torch.ones(1), Data(num_nodes=2), threshold)


def test_wrong_options_are_answered_with_a_suggestion():
    with pytest.raises(UserError, match="did you mean 'scorer'"):
        GumbelMPNN(3, out_channels=2, scorers="mixed")
    with pytest.raises(UserError, match="tau"):
        GumbelMPNN(3, out_channels=2, tau=0.0)
    with pytest.raises(UserError, match="there is no scorer called 'bilinaer'"):
        GumbelMPNN(3, out_channels=2, scorer="bilinaer")
    with pytest.raises(UserError, match="'gcn' does not rewire the graph"):
        gm.fit(small_data(), "gcn", settings={"rewiring": {"tau": 1.0}})


def test_settings_and_keywords_at_once_are_refused():
    with pytest.raises(UserError, match="tau cannot be combined with rewiring"):
        GumbelMPNN(3, out_channels=2, rewiring=RewiringSettings(), tau=0.3)


def test_options_reach_the_backbone():
    model = GumbelMPNN(3, out_channels=2, backbone="gat", hidden_channels=6, num_layers=3, heads=2, norm="layer")
    assert str(model.backbone) == "GAT(6 wide, 3 layers, 2 classes)"
    assert model.backbone.heads == 2
    assert str(GumbelMPNN(3, out_channels=2, backbone="mlp", heads=4).backbone) == "MLP(256 wide, 2 layers, 2 classes)"
    with pytest.raises(UserError, match="dropout must lie between 0 and 1"):
        GumbelMPNN(3, out_channels=2, dropout=2.0)


def test_the_model_by_name_has_the_options_of_every_backbone():
    own = {"backbone": "gcn", "heads": 1, "steps": 10, "teleport": 0.1}
    assert models.defaults("gumbel-mpnn") == {**models.defaults("gcn"), **own}


def test_settings_make_the_same_model_as_keywords():
    data = data_with_candidates()
    by_settings = model_for(data, rewiring=RewiringSettings(scorer="mixed", tau=0.3, tau_end=0.3))
    by_keywords = model_for(data, scorer="mixed", tau=0.3)
    assert by_settings.settings == by_keywords.settings
    assert torch.equal(by_settings.eval()(data), by_keywords.eval()(data))
    assert str(by_keywords) == "GumbelMPNN(GCN(8 wide, 2 layers, 3 classes), scorer='mixed')"


@pytest.mark.parametrize("name", ["prior", "agreement"])
def test_penalties_with_a_weight_of_their_own_are_not_named_as_the_regularizer(name):
    with pytest.raises(UserError, match=rf"set rewiring\.{name}"):
        GumbelMPNN(3, out_channels=2, rewiring=RewiringSettings(regularizer=name, regularizer_weight=1.0))


@pytest.mark.parametrize(
    ("settings", "target"), [({}, 5.0), ({"target_degree": 0}, 0.0), ({"target_degree": 8.5}, 8.5)]
)
def test_the_degree_that_is_asked_for(settings, target):
    rewiring = RewiringSettings(regularizer="dc", regularizer_weight=2.0, prior=0.0, **settings)
    model = GumbelMPNN(3, out_channels=2, rewiring=rewiring)
    (term,) = (term for term in model.terms if isinstance(term, Regularization))
    assert isinstance(term.regularizer, Degree)
    assert (term.regularizer.weight, term.regularizer.target) == (2.0, target)


def test_the_state_has_the_seeds_of_evaluation():
    data = data_with_candidates()
    model = model_for(data, evaluation="mean_of_samples", seeds=[1]).eval()
    other = model_for(data, evaluation="mean_of_samples", seeds=[2]).eval()
    before = other(data)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(data), model(data))
    assert not torch.equal(other(data), before)


def test_states_of_other_evaluations_and_without_seeds_can_be_loaded():
    data = data_with_candidates()
    drawing, plain = model_for(data, evaluation="mean_of_samples", seeds=[1]), model_for(data, seeds=[1])
    plain.load_state_dict(drawing.state_dict())
    expected = drawing.eval()(data)
    drawing.load_state_dict(plain.state_dict())
    assert "evaluation_seeds" not in plain.state_dict()
    assert torch.equal(drawing(data), expected)


@each_scorer
@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_a_model_can_be_pickled_and_goes_on_alike(scorer, evaluation, tmp_path):
    data = data_with_candidates()
    rewiring = RewiringSettings(scorer=scorer, evaluation=evaluation, decoys=2.0)
    model = model_for(data, rewiring=rewiring)
    mask = torch.ones(1, data.num_nodes, dtype=torch.bool)
    lesson = (data.x, PairGraph.of(data), data.y, mask, torch.tensor(0.5))
    model.training_loss(*lesson)
    model.eval()(data)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(again(data), model(data))
    assert torch.equal(again.train().training_loss(*lesson), model.train().training_loss(*lesson))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("hiden_channels", "hidden_channels"), ("taus", "tau"), ("scorers", "scorer"), ("backbones", "backbone")],
)
@pytest.mark.parametrize("rewiring", [None, RewiringSettings()], ids=["single settings", "all at once"])
def test_a_name_that_is_no_option_is_looked_for_among_all(name, meant, rewiring):
    with pytest.raises(UserError, match=f"GumbelMPNN has no option '{name}': did you mean '{meant}'"):
        GumbelMPNN(5, out_channels=3, rewiring=rewiring, **{name: 8})


@pytest.mark.parametrize("beliefs", ["features", "graph", "rewired"])
def test_a_failed_rewire_leaves_the_model_as_it_was(beliefs, monkeypatch):
    def fail(*given):
        raise RuntimeError

    data = data_with_candidates()
    model = model_for(data, scorer="class-space", beliefs=beliefs)
    model.backbone.norms.eval()
    modes = [module.training for module in model.modules()]
    with monkeypatch.context() as patch:
        patch.setattr(model.rewirer.scorer, "forward", fail)
        with pytest.raises(RuntimeError):
            model.rewire(data)
    assert [module.training for module in model.modules()] == modes
    model.rewire(data)
    assert [module.training for module in model.modules()] == modes


def directed():
    return Data(
        x=normal(6, 5, dtype=torch.float32),
        edge_index=edges((0, 1), (2, 1), (3, 4)),
        candidate_index=edges((0, 5)),
    )


def test_a_directed_graph_is_given_as_such():
    data = directed()
    graph = PairGraph.of(data, undirected=False)
    model = GumbelMPNN(5, out_channels=3, hidden_channels=4).eval()
    learned = model.rewire(data, threshold=0, graph=graph)
    assert sorted(learned.edge_index.T.tolist()) == [[0, 1], [0, 5], [2, 1], [3, 4], [5, 0]]
    assert not torch.allclose(model(data, graph), model(data))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model, data: model(data.x), "a graph is needed"),
        (lambda model, data: model(Data(edge_index=data.edge_index, num_nodes=6)), "no features"),
        (lambda model, data: model(data.x.double(), data.edge_index), "float64 where the model's parameters are"),
        (lambda model, data: model(data.x[:, :3], data.edge_index), r"must have the shape \[N, 5\]"),
        (lambda model, data: model(data, None, torch.ones(3)), "edge_weight needs an edge_index"),
        (lambda model, data: model(data, PairGraph.of(data), torch.ones(3)), "edge_weight needs an edge_index"),
        (lambda model, data: model(data.x, data.edge_index, torch.ones(2)), r"edge_weight must have shape \[3\]"),
    ],
)
def test_inputs_that_do_not_fit_are_told_in_a_sentence(call, message):
    data = directed()
    with pytest.raises(UserError, match=message):
        call(GumbelMPNN(5, out_channels=3, hidden_channels=4), data)


def test_an_edge_index_is_a_graph_without_candidates():
    data = directed()
    model = GumbelMPNN(5, out_channels=3, hidden_channels=4).eval()
    torch.testing.assert_close(model(data.x, data.edge_index), model(data, PairGraph.of(data, candidates=False)))


def test_weights_beside_an_edge_index_are_those_of_its_edges():
    data, weight = directed(), torch.tensor([0.5, 2.0, 0.0])
    model = GumbelMPNN(5, out_channels=3, hidden_channels=4).eval()
    weighted = Data(x=data.x, edge_index=data.edge_index, edge_weight=weight)
    assert torch.equal(model(data.x, data.edge_index, weight), model(weighted))
    assert not torch.allclose(model(data.x, data.edge_index, weight), model(data.x, data.edge_index))
    out, graph = model(data.x, edge_index=data.edge_index, edge_weight=weight, return_graph=True)
    assert torch.equal(out, model(weighted))
    assert graph.graph.pair_weight.tolist() == [0.5, 2.0, 0.0]
    with pytest.raises(TypeError, match="positional"):
        model(data.x, data.edge_index, weight, True)
