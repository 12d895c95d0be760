"""Directed graphs, and undirected ones whose two directions are pairs of their own (`rewiring.symmetric=false`)."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.rewiring.scorers import NodeView, scorers
from gumbel_mpnn.training import Task
from gumbel_mpnn.util.errors import DataWarning
from helpers import changed, edges, small_data
from quick_fit import quick, resolved


def reverse_of(graph):
    """For every pair i → j the number of j → i."""
    key = graph.pair_index[0] * graph.num_nodes + graph.pair_index[1]
    return torch.searchsorted(key, graph.pair_index[1] * graph.num_nodes + graph.pair_index[0])


def test_the_bilinear_form_of_a_directed_graph_worked_by_hand():
    scorer = scorers["bilinear"](1, 2, 2, channels=2)
    with torch.no_grad():
        scorer.encoder.weight.copy_(torch.eye(2)[None])
        scorer.form.matrix.copy_(torch.tensor([[[1.0, 2.0], [4.0, 8.0]]]))
        scorer.form.bias.zero_()
    x = torch.tensor([[3.0, 0.0], [0.0, 5.0]])
    both = edges((0, 1), (1, 0))
    for undirected, expected in ((False, [[2.0, 4.0]]), (True, [[3.0]])):
        graph = PairGraph.build(both, 2, undirected=undirected)
        nodes = NodeView(x, torch.empty(1, 2, 0), graph.is_original.float())
        assert scorer(nodes, graph).tolist() == expected


@pytest.mark.parametrize(("scorer", "differs"), [("bilinear", True), ("class-space", False), ("neighborhood", False)])
def test_candidates_of_a_directed_graph_are_learned_in_both_directions(scorer, differs):
    data = gm.candidates.Local(3)(small_data())
    graph = PairGraph.of(data, undirected=False)
    new = ~graph.is_original
    assert int(new.sum()) == 2 * data.candidate_index.shape[1]
    model = gm.GumbelMPNN(in_channels=6, out_channels=3, hidden_channels=8, scorer=scorer, add=0.5, seeds=[0])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    mask = data.train_mask[:, 0]
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(data, graph)[mask], data.y[mask]).backward()
        optimizer.step()
    probability = model.pair_probability(data.x, graph)[0]
    back = reverse_of(graph)[new]
    assert torch.equal(graph.pair_index[:, back], graph.pair_index[:, new].flip(0))
    same = torch.isclose(probability[new], probability[back], rtol=1e-5, atol=1e-6)
    assert bool(same.all()) is not differs


def test_a_directed_graph_that_is_taken_both_ways_is_told_of_and_no_longer_directed():
    arcs = changed(small_data(), undirected=False)
    with pytest.warns(DataWarning, match="this graph is directed .* but is treated as undirected"):
        run = quick(arcs, model="gumbel-mpnn")
    assert run.rewire().undirected is True
    model = gm.GumbelMPNN(in_channels=6, out_channels=3, hidden_channels=8)
    assert model.rewire(arcs).undirected is True
    assert "undirected" not in model.rewire(small_data())
    graphs = Batch.from_data_list([arcs, arcs])
    assert model.rewire(graphs).undirected.tolist() == [True, True]
    assert model.rewire(graphs)[1].undirected


def test_fit_keeps_the_direction_of_what_it_adds_and_does_not_tell_of_it(recwarn):
    data = changed(with_candidates(), undirected=False)
    learned = quick(data, "gumbel-mpnn", overrides=["data.undirected=false"]).rewire(threshold=0.0)
    added = learned.edge_index[:, ~learned.edge_origin].T.tolist()
    assert added == [[0, 23], [1, 23], [23, 0], [23, 1]]
    assert learned.undirected is False
    assert not [warning for warning in recwarn if "undirected" in str(warning.message)]


BY_ARC = ["rewiring.symmetric=false"]
BILINEAR = [*BY_ARC, "rewiring.scorer=bilinear", "rewiring.candidates=data"]


def with_candidates():
    return changed(small_data(), candidate_index=edges((0, 23), (1, 23)))


def test_the_arcs_of_a_graph_by_hand():
    graph = PairGraph.build(
        edges((2, 0), (0, 1)), 3, edge_weight=torch.tensor([5.0, 7.0]), candidate_index=edges((2, 1))
    ).directed()
    assert not graph.undirected
    assert graph.pair_index.T.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    assert graph.is_original.tolist() == [True, True, True, False, True, False]
    assert graph.pair_weight.tolist() == [7.0, 5.0, 7.0, 1.0, 5.0, 1.0]
    assert graph.directed() is graph
    assert PairGraph.build(edges(), 3).directed().num_pairs == 0


@pytest.mark.parametrize("undirected", ["true", "false"])
def test_a_task_has_two_pairs_for_each(undirected):
    data = with_candidates()
    given = [f"data.undirected={undirected}"]
    once, twice = (
        Task.of(data, resolved(data, "gumbel-mpnn", preset=None, overrides=[*given, *more])).graph
        for more in ([], BY_ARC)
    )
    if undirected == "false":
        assert twice.pair_index.equal(once.pair_index)
    else:
        assert once.undirected
        assert not twice.undirected
        assert twice.num_pairs == twice.num_arcs == once.num_arcs == 2 * once.num_pairs
        assert twice.edge_index.equal(once.edge_index)
    plain = Task.of(data, resolved(data, "gcn", preset=None)).graph
    assert plain.undirected
    assert bool(plain.is_original.all())


def test_fit_learns_each_direction_and_what_it_stores_is_what_it_computes():
    data = with_candidates()
    run = quick(data, "gumbel-mpnn", overrides=BILINEAR, splits=[0])
    learned = run.rewire(threshold=0.0)
    assert learned.undirected is False
    arcs = list(map(tuple, learned.edge_index.T.tolist()))
    assert {(j, i) for i, j in arcs} == set(arcs)
    added = learned.edge_index[:, ~learned.edge_origin].T.tolist()
    assert added == [[0, 23], [1, 23], [23, 0], [23, 1]]
    back = [arcs.index((j, i)) for i, j in arcs]
    assert not torch.allclose(learned.edge_probability, learned.edge_probability[back])
    again = run.rewire(data, threshold=0.0)
    assert again.edge_index.equal(learned.edge_index)
    torch.testing.assert_close(again.edge_probability, learned.edge_probability)
    assert run.scores(data) == pytest.approx([run.records[0].test])
    assert run.predict(data) == run.predict()
