import gc
import weakref

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph, SparseLayout
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import LargestOutput, both_ways, changed, edges, normal

STAR = edges((0, 1), (1, 0), (2, 1), (3, 1), (2, 2))
"""One edge both ways, two edges one way, a self-loop; node 4 has none of them."""
WEIGHTS = torch.tensor([2.0, 4.0, 5.0, 7.0, 100.0])


@pytest.fixture
def star():
    return PairGraph.build(STAR, 5)


@pytest.fixture
def arrows():
    return PairGraph.build(STAR, 5, undirected=False)


def test_undirected_pairs_and_arcs_worked_by_hand(star):
    assert star.pair_index.tolist() == [[0, 1, 1], [1, 2, 3]]
    assert star.arcs.rowptr.tolist() == [0, 1, 4, 5, 6, 6]
    assert star.arcs.col.tolist() == [1, 0, 2, 3, 1, 1]
    assert star.edge_index[1].tolist() == [0, 1, 1, 1, 2, 3]
    assert star.arc_pair.tolist() == [0, 0, 1, 2, 1, 2]
    assert star.pair_arcs.tolist() == [[1, 4, 5], [0, 2, 3]]
    assert star.is_original.tolist() == [True, True, True]
    assert star.pair_weight is None
    assert (star.num_nodes, star.num_pairs, star.num_arcs, star.undirected) == (5, 3, 6, True)


def test_directed_pairs_and_arcs_worked_by_hand(arrows):
    assert arrows.pair_index.tolist() == [[0, 1, 2, 3], [1, 0, 1, 1]]
    assert arrows.arcs.rowptr.tolist() == [0, 1, 4, 4, 4, 4]
    assert arrows.arcs.col.tolist() == [1, 0, 2, 3]
    assert arrows.edge_index[1].tolist() == [0, 1, 1, 1]
    assert arrows.arc_pair.tolist() == [1, 0, 2, 3]
    assert arrows.pair_arcs.tolist() == [[1, 0, 2, 3]]
    assert (arrows.num_pairs, arrows.num_arcs, arrows.undirected) == (4, 4, False)


@pytest.mark.parametrize("undirected", [True, False])
def test_arcs_and_pairs_point_at_each_other(undirected):
    graph = PairGraph.build(
        torch.randint(9, (2, 40), generator=torch.Generator().manual_seed(0)), 9, undirected=undirected
    )
    for arcs, (source, target) in zip(graph.pair_arcs, (graph.pair_index, graph.pair_index.flip(0)), strict=False):
        assert torch.equal(graph.arc_pair[arcs], torch.arange(graph.num_pairs))
        assert torch.equal(graph.arcs.col[arcs].long(), source)
        assert torch.equal(graph.edge_index[1][arcs], target)


def test_the_order_and_direction_of_the_edges_do_not_matter(star):
    other = PairGraph.build(edges((1, 3), (1, 2), (0, 1)), 5)
    assert torch.equal(other.pair_index, star.pair_index)
    assert torch.equal(other.arc_pair, star.arc_pair)


@pytest.mark.parametrize(("undirected", "expected"), [(True, [3.0, 5.0, 7.0]), (False, [2.0, 4.0, 5.0, 7.0])])
def test_weights_follow_their_pairs_and_duplicates_are_averaged(undirected, expected):
    graph = PairGraph.build(STAR, 5, undirected=undirected, edge_weight=WEIGHTS)
    assert graph.pair_weight.tolist() == expected


def test_candidates_are_merged_in_and_told_apart():
    candidates = edges((2, 1), (2, 0), (0, 2), (3, 3), (1, 3))
    graph = PairGraph.build(edges((1, 2), (0, 1)), 4, edge_weight=torch.tensor([5.0, 3.0]), candidate_index=candidates)
    assert graph.pair_index.tolist() == [[0, 0, 1, 1], [1, 2, 2, 3]]
    assert graph.is_original.tolist() == [True, False, True, False]
    assert graph.pair_weight.tolist() == [3.0, 1.0, 5.0, 1.0]
    assert str(graph) == "PairGraph(4 nodes, 4 undirected pairs, 2 of them candidates)"


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8])
def test_an_edge_to_a_node_that_does_not_exist(kind):
    with pytest.raises(DataError, match="edge 1 goes from node 2 to node 5, but nodes are 0 to 4"):
        PairGraph.build(edges((0, 1), (2, 5), (7, 0)).to(kind), 5)
    with pytest.raises(DataError, match="edge 0 goes from node 0 to node -1"):
        PairGraph.build(edges((0, -1)), 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (edges((0, 5)), "joins nodes 0 and 5, but the nodes are 0 to 3"),
        (edges((5, 0)), "joins nodes 5 and 0, but the nodes are 0 to 3"),
        (edges((0, -1)), "joins nodes 0 and -1, but the nodes are 0 to 3"),
        (edges((0, 1)).bool(), r"must be integers of shape \[2, M\], not torch.bool \[2, 1\]"),
    ],
)
def test_candidates_that_do_not_fit(given, message):
    with pytest.raises(DataError, match=f"candidate_index {message}"):
        PairGraph.build(edges((0, 1)), 4, candidate_index=given)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("given", [edges(), edges((1, 1))], ids=["no edges", "a self-loop"])
def test_a_graph_without_pairs(given, undirected):
    graph = PairGraph.build(given, 3, undirected=undirected)
    assert (graph.num_pairs, graph.num_arcs) == (0, 0)
    assert graph.pair_arcs.shape == (2 if undirected else 1, 0)
    x = torch.ones(2, 3, 4, requires_grad=True)
    assert torch.equal(graph.propagate(x, torch.ones(2, 0)), torch.zeros(2, 3, 4))
    assert graph.degree().tolist() == [[0.0, 0.0, 0.0]]
    assert graph.pair_scores(x, x).shape == (2, 0)


X = torch.tensor([[[1.0], [10.0], [100.0], [1000.0], [10000.0]]])


def test_propagate_worked_by_hand(star):
    weight = torch.tensor([2.0, 3.0, 5.0])
    assert star.propagate(X, weight).flatten().tolist() == [20.0, 5302.0, 30.0, 50.0, 0.0]
    assert star.propagate(X).flatten().tolist() == [10.0, 1101.0, 10.0, 10.0, 0.0]


def test_directed_messages_flow_from_source_to_target(arrows):
    weight = torch.tensor([2.0, 3.0, 5.0, 7.0])
    assert arrows.propagate(X, weight).flatten().tolist() == [30.0, 7502.0, 0.0, 0.0, 0.0]


def test_given_weights_multiply_the_learned_ones():
    graph = PairGraph.build(STAR, 5, edge_weight=WEIGHTS)
    assert graph.propagate(X).flatten().tolist() == [30.0, 7503.0, 50.0, 70.0, 0.0]
    assert graph.propagate(X, torch.tensor([2.0, 0.0, 1.0])).flatten().tolist() == [60.0, 7006.0, 0.0, 70.0, 0.0]


def test_every_replica_has_its_own_weights_and_features(star):
    weight = torch.tensor([[2.0, 3.0, 5.0], [0.0, 1.0, 0.0]])
    out = star.propagate(torch.cat([X, -X]), weight)
    assert out.squeeze(-1).tolist() == [[20.0, 5302.0, 30.0, 50.0, 0.0], [0.0, -100.0, -10.0, 0.0, 0.0]]


def test_gradient_of_a_pair_is_the_sum_over_its_arcs(star, arrows):
    weight = torch.zeros(3, requires_grad=True)
    (star.propagate(X, weight).squeeze() * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).sum().backward()
    assert weight.grad.tolist() == [10.0 * 1 + 1 * 2, 100.0 * 2 + 10 * 3, 1000.0 * 2 + 10 * 4]
    weight = torch.zeros(4, requires_grad=True)
    (arrows.propagate(X, weight).squeeze() * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).sum().backward()
    assert weight.grad.tolist() == [2.0, 10.0, 200.0, 2000.0]


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (None, [[1.0, 3.0, 1.0, 1.0, 0.0]]),
        ([2.0, 3.0, 5.0], [[2.0, 10.0, 3.0, 5.0, 0.0]]),
        ([[2.0, 3.0, 5.0], [0.0, 1.0, 0.0]], [[2.0, 10.0, 3.0, 5.0, 0.0], [0.0, 1.0, 1.0, 0.0, 0.0]]),
    ],
)
def test_degree_worked_by_hand(star, weight, expected):
    assert star.degree(None if weight is None else torch.tensor(weight)).tolist() == expected


def test_degree_counts_incoming_arcs(arrows):
    assert arrows.degree(torch.tensor([2.0, 3.0, 5.0, 7.0])).tolist() == [[3.0, 14.0, 0.0, 0.0, 0.0]]


def test_pair_and_arc_scores_worked_by_hand(star, arrows):
    a = torch.tensor([[[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 0.0], [9.0, 9.0]]])
    b = torch.tensor([[[1.0, 1.0], [10.0, 2.0], [100.0, 3.0], [1000.0, 4.0], [9.0, 9.0]]])
    assert star.pair_scores(a, b).tolist() == [[10.0, 203.0, 2004.0]]
    assert star.arc_scores(a, b).tolist() == [[10.0, 3.0, 203.0, 2004.0, 30.0, 40.0]]
    assert arrows.pair_scores(a, b).tolist() == [[10.0, 3.0, 30.0, 40.0]]
    assert arrows.arc_scores(a, b).tolist() == [[10.0, 3.0, 203.0, 2004.0]]


def test_sum_arcs_takes_one_or_many_rows(star):
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert star.sum_arcs(values).tolist() == [[1.0, 9.0, 5.0, 6.0, 0.0]]
    assert star.sum_arcs(torch.stack([values, -values])).tolist()[1] == [-1.0, -9.0, -5.0, -6.0, 0.0]


def test_of_reads_data_and_keeps_the_graph():
    data = Data(edge_index=STAR.clone(), edge_weight=WEIGHTS, candidate_index=edges((0, 4)), num_nodes=5)
    graph = PairGraph.of(data)
    assert PairGraph.of(data) is graph
    assert PairGraph.of(changed(data)) is graph
    assert graph.pair_index.tolist() == [[0, 0, 1, 1], [1, 4, 2, 3]]
    assert graph.pair_weight.tolist() == [3.0, 1.0, 5.0, 7.0]
    assert graph.is_original.tolist() == [True, False, True, True]


@pytest.mark.parametrize("name", ["edge_index", "edge_weight", "candidate_index"])
def test_of_sees_a_change_in_place(name):
    data = Data(
        edge_index=STAR.clone(), edge_weight=WEIGHTS.clone(), candidate_index=edges((0, 4)).clone(), num_nodes=5
    )
    before = PairGraph.of(data)
    data[name][..., 0] = 3
    after = PairGraph.of(data)
    assert after is not before
    fresh = PairGraph.build(STAR, 5, edge_weight=WEIGHTS, candidate_index=edges((0, 4)))
    same = [torch.equal(getattr(after, part), getattr(fresh, part)) for part in ("pair_index", "pair_weight")]
    assert not all(same)


@pytest.mark.parametrize(
    "change",
    [{"edge_weight": WEIGHTS}, {"candidate_index": edges((0, 4))}, {"num_nodes": 6}, {"edge_index": STAR.clone()}],
)
def test_of_sees_another_tensor_or_size(change):
    data = Data(edge_index=STAR.clone(), num_nodes=5)
    before = PairGraph.of(data)
    after = PairGraph.of(changed(data, **change))
    assert after is not before
    assert after.num_nodes == change.get("num_nodes", 5)
    assert (after.pair_weight is not None) == ("edge_weight" in change)
    assert after.num_pairs == (4 if "candidate_index" in change else 3)


def test_models_that_take_turns_on_a_graph_lay_it_out_once_each(monkeypatch):
    built, build = [], SparseLayout.build
    monkeypatch.setattr(SparseLayout, "build", lambda *arguments: built.append(1) or build(*arguments))
    data = Data(x=torch.ones(5, 2), edge_index=STAR.clone(), candidate_index=edges((0, 4)))
    models = [gm.GCN(2, out_channels=2), gm.GumbelMPNN(in_channels=2, out_channels=2)]
    for model in models:
        model(data)
    laid_out = len(built)
    for model in models * 3:
        model(data)
    assert len(built) == laid_out


def test_of_lets_the_graph_go_with_the_edges():
    data = Data(edge_index=STAR.clone(), num_nodes=5)
    graph = weakref.ref(PairGraph.of(data))
    gc.collect()
    assert graph() is not None
    del data
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize("model", [gm.GCN, gm.GraphSAGE, gm.GAT])
def test_a_graph_that_layers_were_on_goes_without_the_garbage_collector(model):
    data = Data(x=torch.ones(5, 2), edge_index=STAR.clone())
    model(2, out_channels=2, hidden_channels=4)(data).sum().backward()
    graph = weakref.ref(PairGraph.of(data))
    gc.collect()
    gc.disable()
    try:
        del data
        assert graph() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["edge_index", "pairs"])
def test_a_look_in_inference_mode_leaves_a_graph_to_train_with(name):
    data = Data(edge_index=STAR.clone(), num_nodes=5)
    with torch.inference_mode():
        graph = PairGraph.of(data)
        kept = getattr(graph, name)
    assert PairGraph.of(data) is graph
    tensors = [graph.pair_index, graph.arc_pair, graph.pair_arcs, getattr(kept, "col", kept)]
    assert not any(tensor.is_inference() for tensor in tensors)


def test_to_moves_every_tensor():
    graph = PairGraph.build(STAR, 5, edge_weight=WEIGHTS, candidate_index=edges((0, 4)))
    moved = graph.to("meta")
    assert graph.to("cpu") is graph
    parts = [value for value in vars(moved).values() if isinstance(value, torch.Tensor | SparseLayout)]
    devices = {(part.col if isinstance(part, SparseLayout) else part).device.type for part in parts}
    assert (len(parts), devices) == (6, {"meta"})
    assert (moved.num_nodes, moved.undirected, moved.num_pairs, moved.num_arcs) == (5, True, 4, 8)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("undirected", [True, False])
def test_nothing_as_large_as_arcs_times_width_is_made(batch, undirected):
    nodes, width = 30, 24
    everything = torch.ones(nodes, nodes).nonzero().T
    graph = PairGraph.build(both_ways(everything), nodes, undirected=undirected)
    assert graph.num_arcs == nodes * (nodes - 1)
    x = normal(batch, nodes, width, seed=1).requires_grad_()
    weight = normal(batch, graph.num_pairs, seed=2).requires_grad_()
    with LargestOutput() as spy:
        (graph.propagate(x, weight) ** 2).sum().backward()
        (graph.pair_scores(x, x) ** 2).sum().backward()
    assert x.grad is not None
    assert weight.grad is not None
    assert spy.elements == batch * max(nodes * width, graph.num_arcs)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (-0.5, r"the weight of edge 2 is negative \(-0.5\): weights are finite and at least 0"),
        (float("nan"), "the weight of edge 2 is not finite"),
        (float("inf"), "the weight of edge 2 is not finite"),
    ],
)
def test_weights_that_no_degree_can_be_made_of(wrong, message):
    weights = torch.tensor([1.0, 0.0, wrong, 1.0, 1.0])
    with pytest.raises(DataError, match=message):
        PairGraph.build(STAR, 5, edge_weight=weights)
    with pytest.raises(DataError, match=message):
        PairGraph.of(Data(edge_index=STAR.clone(), edge_weight=weights, num_nodes=5))


def test_a_weight_for_every_pair_and_no_other(star):
    with pytest.raises(UserError, match=r"must have the shape \[3\] or \[R, 3\], not \[6\]"):
        star.propagate(X, torch.ones(6))


@pytest.mark.parametrize("undirected", [True, False])
def test_of_and_build_agree_on_weights_among_candidates(undirected):
    generator = torch.Generator().manual_seed(3)
    listed, weight = torch.randint(9, (2, 40), generator=generator), torch.rand(40, generator=generator)
    some = torch.randint(9, (2, 10), generator=generator)
    graph = PairGraph.build(listed, 9, undirected=undirected, edge_weight=weight, candidate_index=some)
    for pair, (source, target) in enumerate(graph.pair_index.T.tolist()):
        same = (listed[0] == source) & (listed[1] == target)
        if undirected:
            same |= (listed[0] == target) & (listed[1] == source)
        mean = weight[same].mean() if same.any() else torch.tensor(1.0)
        torch.testing.assert_close(graph.pair_weight[pair], mean)
    data = Data(edge_index=listed, edge_weight=weight, candidate_index=some, num_nodes=9)
    if undirected:
        assert torch.equal(PairGraph.of(data).pair_weight, graph.pair_weight)


def test_on_a_directed_graph_a_candidate_is_two_arcs():
    data = Data(edge_index=edges((1, 0), (1, 2)), candidate_index=edges((0, 2), (1, 3)), num_nodes=4)
    graph = PairGraph.of(data, undirected=False)
    assert graph.pair_index.T.tolist() == [[0, 2], [1, 0], [1, 2], [1, 3], [2, 0], [3, 1]]
    assert graph.is_original.tolist() == [False, True, True, False, False, False]
    assert PairGraph.of(data).pair_index.T.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3]]
    assert PairGraph.of(data, undirected=False, candidates=False).num_pairs == 2


def test_given_edges_and_candidates_apart():
    graph = PairGraph.build(edges((0, 1), (2, 3)), 4, candidate_index=edges((0, 2), (1, 3)))
    (given, given_arcs), (added, added_arcs) = graph.by_origin
    assert given.pair_index.T.tolist() == [[0, 1], [2, 3]]
    assert added.pair_index.T.tolist() == [[0, 2], [1, 3]]
    assert given.is_original.all()
    assert not added.is_original.any()
    for part, arcs in ((given, given_arcs), (added, added_arcs)):
        assert torch.equal(part.edge_index, graph.edge_index[:, arcs])
