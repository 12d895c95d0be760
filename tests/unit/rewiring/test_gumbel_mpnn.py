"""The rewired model: forward, training, evaluation graphs, unseen graphs, replicas."""

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.learned_graph import as_data
from gumbel_mpnn.rewiring.scorers import NodeView, scorers
from gumbel_mpnn.settings import RewiringSettings, resolve
from gumbel_mpnn.training import Task, models, train
from gumbel_mpnn.util.errors import UserError
from helpers import edges, normal, random_edges, randomized, replicas, small_data

each_scorer = pytest.mark.parametrize("scorer", list(scorers))
EVALUATIONS = ("threshold", "expected", "mean_of_samples")


def data_with_candidates(seed=0):
    data = small_data()
    data.candidate_index = random_edges(data.num_nodes, 30, seed=seed + 11)
    return data


def model_for(data, **options):
    torch.manual_seed(0)
    return GumbelMPNN(in_channels=data.num_features, out_channels=int(data.y.max()) + 1, hidden_channels=8, **options)


def settings_of(train_table=None, **rewiring):
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 6, "lr": 0.01, **(train_table or {})}}
    return resolve("own", "gumbel-mpnn", {**tables, "rewiring": rewiring}, models.complete, rewires=True)


def test_training_starts_at_the_given_graph():
    data = data_with_candidates()
    _, graph = model_for(data, scorer="class-space").eval()(data, return_graph=True)
    given = graph.graph.is_original
    assert graph.probability[0, given].min() > 0.9
    assert graph.probability[0, ~given].max() < 0.15


@pytest.mark.parametrize(("origin", "learned"), [("fixed", False), ("learned", True), ("none", False)])
def test_the_bias_by_origin_is_learned_only_if_asked_for(origin, learned):
    names = [name for name, _ in model_for(data_with_candidates(), origin=origin).named_parameters()]
    assert ("rewirer.origin" in names) == learned


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


@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_a_backbone_or_its_name_make_the_same_model(evaluation):
    data = data_with_candidates()
    options = {"out_channels": 3, "hidden_channels": 8, "num_layers": 3, "replicas": 2, "seeds": [3, 4]}
    one = GumbelMPNN(gm.GraphSAGE(6, **options), tau=0.3, evaluation=evaluation)
    other = GumbelMPNN("sage", in_channels=6, tau=0.3, evaluation=evaluation, **options)
    assert str(one) == str(other)
    for mode in (True, False):
        assert torch.equal(one.train(mode)(data), other.train(mode)(data))


def test_a_trained_backbone_keeps_its_parameters():
    backbone = randomized(gm.GCN(6, out_channels=3, hidden_channels=8)).float()
    before = backbone.head.weight.clone()
    assert torch.equal(GumbelMPNN(backbone).backbone.head.weight, before)


SIZES = {"in_channels": 5, "out_channels": 3}
NEAR = {"hiden_channels": "hidden_channels", "taus": "tau", "scorers": "scorer", "backbones": "backbone"}


@pytest.mark.parametrize(
    ("backbone", "options", "message"),
    [
        ("gcn", {"out_channels": 3}, r"GumbelMPNN\('gcn'\) also needs in_channels"),
        ("gcm", SIZES, "there is no model called 'gcm': did you mean 'gcn'"),
        (6, {"out_channels": 3}, r"takes a backbone, such as gm.GCN\(...\), or the name of one, not 6"),
        (torch.nn.Linear(6, 3), {}, "to rewire the graph of another model, use gm.Rewired"),
        (gm.GCN(6, out_channels=3), {"num_layers": 3}, "num_layers cannot be set beside a finished backbone: set"),
        ("gcn", {**SIZES, "tau": 0.0}, "tau"),
        ("gcn", {**SIZES, "scorer": "bilinaer"}, "there is no scorer called 'bilinaer'"),
        ("gcn", {**SIZES, "rewiring": RewiringSettings(), "tau": 0.3}, "tau cannot be combined with rewiring"),
        ("gcn", {**SIZES, "rewiring": RewiringSettings(regularizer="prior")}, r"set rewiring\.prior"),
        ("gcn", {**SIZES, "rewiring": RewiringSettings(regularizer="agreement")}, r"set rewiring\.agreement"),
        *(
            (
                "gcn",
                {**SIZES, "rewiring": rewiring, name: 8},
                f"has no option '{name}': did you mean '{meant}'",
            )
            for name, meant in NEAR.items()
            for rewiring in (None, RewiringSettings())
        ),
    ],
)
def test_mistakes_are_told(backbone, options, message):
    with pytest.raises(UserError, match=message):
        GumbelMPNN(backbone, **options)


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


def model_and_beliefs(data, **options):
    """A model, and a list of the beliefs that its scorer is given."""
    model, seen = model_for(data, scorer="class-space", **options), []
    model.rewirer.scorer.register_forward_pre_hook(lambda scorer, given: seen.append(given[0].beliefs))
    return model, seen


@pytest.mark.parametrize("beliefs", ["features", "graph", "rewired"])
def test_beliefs_come_from_features_or_from_the_backbone(beliefs):
    data = data_with_candidates()
    model, seen = model_and_beliefs(data, beliefs=beliefs)
    assert (model.belief_head is not None) == (beliefs != "graph")
    model(data)
    assert len(seen) == (2 if beliefs == "rewired" else 1)
    for each in seen:
        torch.testing.assert_close(each.sum(-1), torch.ones(1, data.num_nodes))
        assert not each.requires_grad
    assert model.backbone.training
    if beliefs != "features":  # an attack follows the weights of edges through the beliefs; training does not
        model.eval()(data)
        assert seen[-1].requires_grad


def test_rewired_beliefs_are_those_of_the_backbone_on_the_first_graph():
    data = data_with_candidates()
    model, seen = model_and_beliefs(data, beliefs="rewired")
    graph = PairGraph.of(data)
    model.eval()(data)
    head, second = seen
    torch.testing.assert_close(head, model.belief_head(data.x[None], model.rng).softmax(-1))
    first = model.rewirer(NodeView(data.x[None], head, graph.is_original.float()), graph).sigmoid()
    expected = model.backbone.compute(data.x[None], WeightedGraph(graph, first, torch.float32)).softmax(-1)
    torch.testing.assert_close(second, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"scorer": "class-space", "regularizer": "mix", "regularizer.weight": 0.5},
        {"scorer": "class-facts", "scorer.pair_loss": 1.0, "origin": "learned"},
        {"scorer": "neighborhood", "scorer.decoys": 1.0, "beliefs": "rewired", "samples": 2},
    ],
    ids=["regularizer", "pair loss", "rewired beliefs"],
)
def test_validation_and_test_labels_do_not_reach_training(options):
    data, settings = data_with_candidates(), settings_of(**options)
    other = data.clone()
    hidden = ~data.train_mask[:, 0] if data.train_mask.dim() == 2 else ~data.train_mask
    other.y = torch.where(hidden, (data.y + 1) % 3, data.y)
    (first,), (second,) = (train(Task.of(d, settings), settings, replicas((0, 0))) for d in (data, other))
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


def test_the_model_by_name_has_the_options_of_its_backbone():
    for backbone in ("gcn", "gat"):
        found = models.defaults("gumbel-mpnn", {"backbone": backbone})
        assert found == {**models.defaults(backbone), "backbone": "gcn"}


def test_settings_make_the_same_model_as_keywords():
    data = data_with_candidates()
    by_settings = model_for(data, rewiring=RewiringSettings(scorer="mixed", tau=0.3, tau_end=0.3))
    by_keywords = model_for(data, scorer="mixed", tau=0.3)
    assert by_settings.settings == by_keywords.settings
    assert torch.equal(by_settings.eval()(data), by_keywords.eval()(data))
    assert str(by_keywords) == "GumbelMPNN(GCN(8 wide, 2 layers, 3 classes), scorer='mixed')"


@each_scorer
@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_a_model_can_be_pickled_and_goes_on_alike(scorer, evaluation, tmp_path):
    data = data_with_candidates()
    rewiring = RewiringSettings(scorer=scorer, evaluation=evaluation)
    model = model_for(data, rewiring=rewiring)
    mask = torch.ones(1, data.num_nodes, dtype=torch.bool)
    lesson = (data.x, PairGraph.of(data), data.y, mask, torch.tensor(0.5))
    model.training_loss(*lesson)
    model.eval()(data)
    torch.save(model, tmp_path / "model.pt")
    again = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(again(data), model(data))
    assert torch.equal(again.train().training_loss(*lesson), model.train().training_loss(*lesson))


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


def test_an_edge_index_is_a_graph_without_candidates():
    x = normal(6, 5, dtype=torch.float32)
    data = Data(x=x, edge_index=edges((0, 1), (2, 1), (3, 4)), candidate_index=edges((0, 5)))
    model = GumbelMPNN(in_channels=5, out_channels=3, hidden_channels=4).eval()
    torch.testing.assert_close(model(data.x, data.edge_index), model(data, PairGraph.of(data, candidates=False)))
