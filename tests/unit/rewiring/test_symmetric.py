"""`rewiring.symmetric=false`: both directions of an undirected edge are pairs of their own, everywhere."""

import pytest
import torch

from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.training import Task
from helpers import changed, edges, small_data
from quick_fit import quick, resolved

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


def test_messages_are_the_same_with_weights_that_agree():
    graph = PairGraph.of(with_candidates())
    arcs, x = graph.directed(), torch.rand(1, 24, 3)
    weight = torch.rand(graph.num_pairs)
    by_pair = dict(zip(map(tuple, graph.pair_index.T.tolist()), weight.tolist(), strict=True))
    both = torch.tensor([by_pair[tuple(sorted(pair))] for pair in arcs.pair_index.T.tolist()])
    torch.testing.assert_close(arcs.propagate(x, both), graph.propagate(x, weight))


@pytest.mark.parametrize("undirected", ["true", "false"])
def test_a_task_has_two_pairs_for_each(undirected):
    data = with_candidates()
    given = [f"data.undirected={undirected}"]
    once, twice = (
        Task.for_model(data, resolved(data, "gumbel-mpnn", preset=None, overrides=[*given, *more])).graph
        for more in ([], BY_ARC)
    )
    if undirected == "false":
        assert twice.pair_index.equal(once.pair_index)
    else:
        assert once.undirected
        assert not twice.undirected
        assert twice.num_pairs == twice.num_arcs == once.num_arcs == 2 * once.num_pairs
        assert twice.edge_index.equal(once.edge_index)
    plain = Task.for_model(data, resolved(data, "gcn", preset=None)).graph
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


def test_it_is_another_setting_than_before_and_the_default_is_the_same():
    data = small_data()
    same, default, by_arc = (
        resolved(data, "gumbel-mpnn", preset=None, overrides=given).fingerprint("data")
        for given in (["rewiring.symmetric=true", "rewiring.sigmoids=1"], [], BY_ARC)
    )
    assert same == default != by_arc
