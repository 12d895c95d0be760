"""Every candidate strategy on graphs small enough to work out by hand, and what all of them share."""

import copy

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import Compose, ToSparseTensor

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import DataError, DataWarning, UnknownNameError, UserError
from gumbel_mpnn.candidates import CandidateStrategy, Global, Local, Ricci, TwoHop, candidates
from gumbel_mpnn.candidates.chosen import with_candidates
from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.graph import PairGraph
from helpers import both_ways, edges

NAMES = list(candidates)
each_strategy = pytest.mark.parametrize("name", NAMES)

#     0: (1, 0)   1: (2, 0)   2: (0, 1)   3: (1, 3)   4: (3, -1)     edges 0–1 and 2–3
#
#     dot     1    2    3    4          cosine     1    2    3    4
#     0       –    0    1    3          0          –    0   .32  .95
#     1            0    2    6          1               0   .32  .95
#     2                 –   -1          2                    –  -.32
#     3                      0          3                         0
PLANE = Data(x=torch.tensor([[1.0, 0], [2, 0], [0, 1], [1, 3], [3, -1]]), edge_index=edges((0, 1), (3, 2)))

#     0 – 1 – 2 – 3       4 – 5 – 6, 4 – 6 (a triangle: no node at distance two)
HOPS = Data(edge_index=both_ways(edges((0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (4, 6))), num_nodes=8)

#     Two triangles and a bridge, 2 – 3, which is most negatively curved; around it are {0, 1, 2} × {3, 4, 5}.
BRIDGE = Data(edge_index=edges((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)), num_nodes=7)

BY_HAND = {
    "local": [
        # 0 → 4, 3; 1 → 4, 3; 2 → nothing, since no similarity is above 0; 3 → 0, 1; 4 → 0, 1
        (Local(per_node=2), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)], 2),
        # 0 → 4, 1 → 4, 3 → 1, 4 → 1
        (Local(per_node=1, similarity="dot"), PLANE, [(0, 4), (1, 3), (1, 4)], 2),
        # 0 → 4, 3; 1 → 4, 3; 3 → 1, 0; 4 → 1, 0
        (Local(per_node=2, similarity="dot"), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)], 2),
    ],
    "global": [
        (Global(pairs=2), PLANE, [(0, 4), (1, 4)], 2),
        (Global(pairs=9), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)], 2),  # all that are above 0
        (Global(pairs=1, similarity="dot"), PLANE, [(1, 4)], 1),
        (Global(similarity="dot"), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)], 2),  # twice two edges
    ],
    "two_hop": [
        (TwoHop(per_node=1), HOPS, [(0, 2), (1, 3)], 1),
        (TwoHop(per_node=3, seed=7), HOPS, [(0, 2), (1, 3)], 1),
        (TwoHop(), Data(edge_index=edges((0, 1), (0, 2), (3, 0)), num_nodes=4), [(1, 2), (1, 3), (2, 3)], 2),
    ],
    "ricci": [
        (Ricci(pairs=8), BRIDGE, [(0, 3), (0, 4), (0, 5), (1, 3), (1, 4), (1, 5), (2, 4), (2, 5)], 3),
        (Ricci(), HOPS, [(0, 2), (0, 3), (1, 3)], 2),
        (Ricci(per_edge=1), Data(edge_index=edges((0, 1), (2, 1))), [(0, 2)], 1),
    ],
}


def as_list(data):
    return [tuple(pair) for pair in data.candidate_index.T.tolist()]


def make(name, **options):
    return candidates[name](**options)


def test_every_strategy_has_an_example_worked_out_by_hand():
    assert set(BY_HAND) == set(candidates)


@pytest.mark.parametrize(
    ("strategy", "data", "expected", "most"), [case for cases in BY_HAND.values() for case in cases], ids=str
)
def test_the_examples(strategy, data, expected, most):
    out = strategy(data)
    assert as_list(out) == expected
    assert out.candidate_index.dtype == torch.int64
    assert out.max_candidates_per_node == most
    assert type(out.max_candidates_per_node) is int


def test_names_and_aliases():
    assert {"global", "local", "ricci", "two_hop"} <= set(NAMES)
    assert candidates["two-hop"] is candidates["2-hop"] is candidates["2_HOP"] is TwoHop
    similar = {"similarity": "cosine", "on": "x", "search": "auto", "parts": 1}
    assert candidates.defaults("local") == {"per_node": 5, **similar}
    assert candidates.defaults("global") == {"pairs": 0, **similar}
    assert candidates.defaults("two_hop") == {"per_node": 3, "seed": 0}
    assert candidates.defaults("ricci") == {"pairs": 0, "per_edge": 10, "seed": 0}


def test_a_strategy_shows_its_arguments():
    assert str(Local()) == "Local(per_node=5, similarity='cosine', on='x', search='auto', parts=1)"
    assert str(Global(pairs=9, on="h")) == "Global(pairs=9, similarity='cosine', on='h', search='auto', parts=1)"
    assert str(TwoHop(seed=4)) == "TwoHop(per_node=3, seed=4)"


@each_strategy
def test_a_strategy_composes_and_leaves_its_input_alone(name):
    data = copy.copy(PLANE)
    out = Compose([make(name)])(data)
    assert "candidate_index" in out
    assert "candidate_index" not in data
    assert out.x is data.x


@each_strategy
def test_a_strategy_finds_the_same_where_its_candidates_are_there_already(name):
    once = make(name)(PLANE)
    assert torch.equal(make(name)(once).candidate_index, once.candidate_index)


def test_strategies_in_a_row_add_up():
    # As above: Global has (0, 4), (1, 4) and Local has (0, 4), (1, 3), (1, 4).
    both = Compose([Global(pairs=2), Local(per_node=1, similarity="dot")])(PLANE)
    assert as_list(both) == [(0, 4), (1, 3), (1, 4)]
    assert both.max_candidates_per_node == 2
    by_hand = copy.copy(PLANE)
    by_hand.candidate_index = edges((4, 2), (4, 2), (3, 3), (1, 0))  # reversed, twice, a self-pair, an edge
    assert as_list(Global(pairs=1, similarity="dot")(by_hand)) == [(1, 4), (2, 4)]


def test_a_candidate_that_has_become_an_edge_is_none_any_more():
    data = Global(pairs=2)(PLANE)
    data.edge_index = torch.cat([data.edge_index, edges((4, 0))], dim=1)
    assert as_list(Global(pairs=1, similarity="dot")(data)) == [(1, 4)]


@each_strategy
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            edges((0, 1), (2, 9)),
            "candidate_index joins nodes 2 and 9, but the nodes are 0 to 4: data.subgraph does not",
        ),
        (edges((0, -1)), "candidate_index joins nodes 0 and -1, but"),
        (torch.zeros(2), r"candidate_index must be integers of shape \[2, M\], not torch.float32 \[2\]"),
    ],
)
def test_candidates_of_another_graph_are_refused(name, given, message):
    with pytest.raises(DataError, match=message):
        make(name)(Data(**PLANE.to_dict(), candidate_index=given))


def test_earlier_candidates_between_two_graphs_of_a_batch_are_refused():
    data = Data(x=torch.eye(4), edge_index=edges((0, 1)), batch=torch.tensor([0, 0, 1, 1]))
    data.candidate_index = edges((2, 3), (1, 2))
    with pytest.raises(DataError, match="a candidate joins nodes 1 and 2, but batch says"):
        Local()(data)


def test_a_subgraph_with_its_old_candidates_is_refused_in_one_sentence():
    data = Data(x=torch.eye(40) + 1, edge_index=edges(*((node, node + 1) for node in range(39))))
    part = Local(2)(data).subgraph(torch.arange(10))
    for use in (PairGraph.of, Local(2), lambda data: gm.GumbelMPNN(40, out_channels=2)(data)):
        with pytest.raises(gm.UserError, match="does not renumber candidates"):
            use(part)
    del part.candidate_index
    assert Local(2)(part).candidate_index.max() == 9


@each_strategy
@pytest.mark.parametrize(
    "data",
    [
        Data(num_nodes=0),
        Data(x=torch.empty(0, 3), edge_index=edges()),
        Data(x=torch.ones(1, 3), edge_index=edges()),
        Data(x=torch.ones(1, 3), edge_index=edges((0, 0))),
        Data(x=torch.ones(2, 3), edge_index=edges((1, 0))),
        Data(x=torch.ones(3, 3), edge_index=edges((0, 1), (1, 2), (2, 0))),
        Data(x=torch.ones(2, 3), edge_index=edges((0, 1)), batch=torch.tensor([0, 0])),
        Data(x=torch.ones(2, 3), edge_index=edges(), batch=torch.tensor([1, 4])),
    ],
    ids=["nothing", "no-node", "one-node", "self-loop", "one-edge", "complete", "one-edge-batch", "single-nodes"],
)
def test_where_nothing_is_left_the_result_is_empty(name, data):
    out = make(name)(data)
    assert out.candidate_index.shape == (2, 0)
    assert out.candidate_index.dtype == torch.int64
    assert out.max_candidates_per_node == 0


@each_strategy
def test_a_matrix_of_edges_is_not_taken_for_none(name):
    data = ToSparseTensor()(copy.copy(BRIDGE))
    with pytest.raises(DataError, match=r"no edge_index \(adj_t is not read\)"):
        candidates[name]()(data)


@pytest.mark.parametrize("edge_index", [None, edges()], ids=["none", "empty"])
def test_graphs_without_edges(edge_index):
    data = Data(x=torch.tensor([[1.0, 0], [1, 0.1], [0, 1]]), edge_index=edge_index)
    assert as_list(Local(per_node=1)(data)) == [(0, 1), (1, 2)]
    assert as_list(Global(pairs=1)(data)) == [(0, 1)]
    assert as_list(Global()(data)) == []
    assert as_list(TwoHop()(data)) == []


def test_asking_for_more_than_there_is_gives_all():
    data = Data(x=torch.arange(8.0).view(4, 2), edge_index=edges((0, 1)))
    everything = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for similarity in ("cosine", "dot"):
        assert as_list(Local(per_node=99, similarity=similarity)(data)) == everything
        assert as_list(Global(pairs=99, similarity=similarity)(data)) == everything


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_equal_features_make_no_hub(similarity):
    data = Data(x=torch.ones(200, 4), edge_index=edges((0, 1), (5, 6)))
    assert Local(3, similarity)(data).max_candidates_per_node <= 7
    assert Global(pairs=600, similarity=similarity)(data).max_candidates_per_node <= 8


def test_other_attributes_can_be_compared():
    data = Data(x=torch.eye(3), h=torch.tensor([[1.0], [-1], [1]], requires_grad=True), edge_index=edges())
    assert as_list(Global(pairs=1, on="h")(data)) == [(0, 2)]


class Everything(CandidateStrategy):
    """A strategy that cares for nothing: all ordered pairs, each twice."""

    def propose(self, data, graph):
        nodes = torch.arange(graph.num_nodes)
        return torch.cartesian_prod(nodes, nodes).T.repeat(1, 2)


def test_the_base_class_cleans_what_a_strategy_proposes():
    assert as_list(Everything()(PLANE)) == [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4)]
    assert str(Everything()) == "Everything()"


@each_strategy
def test_candidates_fit_the_pair_graph(name):
    out = make(name)(Data(x=PLANE.x, edge_index=edges((0, 1), (1, 2), (2, 3))))
    graph = PairGraph.of(out)
    assert torch.equal(graph.pair_index[:, ~graph.is_original], out.candidate_index)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("strategy", [Local, Global])
def test_a_batch_is_its_graphs_one_by_one(strategy, similarity):
    generator = torch.Generator().manual_seed(0)
    graphs = [
        Data(
            x=torch.randint(-3, 4, (size, 2), generator=generator).float(),
            edge_index=torch.randint(size, (2, 2 * size), generator=generator),
        )
        for size in (3, 1, 7, 300, 2, 250, 600, 40)
    ]
    together = strategy(similarity=similarity)(Batch.from_data_list(graphs))
    alone = Batch.from_data_list([strategy(similarity=similarity)(graph) for graph in graphs])
    assert torch.equal(together.candidate_index, alone.candidate_index)
    assert torch.equal(together.max_candidates_per_node, alone.max_candidates_per_node)
    whole = Data(x=together.x, edge_index=together.edge_index, batch=together.batch)
    assert strategy(similarity=similarity)(whole).max_candidates_per_node == alone.max_candidates_per_node.max()


def assert_same_graphs(ones, others):
    for one, other in zip(ones, others, strict=True):
        assert set(one.keys()) == set(other.keys())
        for name in one.keys():  # noqa: SIM118
            assert torch.equal(torch.as_tensor(one[name]).flatten(), torch.as_tensor(other[name]).flatten()), name


@each_strategy
def test_a_batch_with_candidates_can_be_taken_apart(name):
    generator = torch.Generator().manual_seed(0)
    graphs = [
        Data(
            x=torch.randn(size, 2, generator=generator),
            edge_index=torch.randint(size, (2, 2 * size), generator=generator),
        )
        for size in (9, 1, 6)
    ]
    batch = Batch.from_data_list(graphs)
    with_them = make(name)(batch)
    parts = with_them.to_data_list()
    again = Batch.from_data_list(parts)
    assert torch.equal(again.candidate_index, with_them.candidate_index)
    assert torch.equal(again.max_candidates_per_node.flatten(), with_them.max_candidates_per_node)
    for part in parts:
        assert part.candidate_index.numel() == 0 or part.candidate_index.max() < part.num_nodes
    assert with_them[0].candidate_index.equal(parts[0].candidate_index)
    assert_same_graphs(batch.to_data_list(), graphs)  # the batch itself is as it was


def test_strategies_in_a_row_on_a_batch_that_brings_candidates():
    generator = torch.Generator().manual_seed(1)
    graphs = [
        Data(x=torch.randn(6, 4, generator=generator), edge_index=torch.randint(6, (2, 5), generator=generator))
        for _ in range(3)
    ]
    first, second = Local(1), TwoHop(2)
    together = second(Batch.from_data_list([first(graph) for graph in graphs]))
    assert_same_graphs(together.to_data_list(), [second(first(graph)) for graph in graphs])


def test_a_batch_made_by_hand():
    by_hand = Batch(x=torch.randn(4, 2), edge_index=edges((0, 1), (2, 3)), batch=torch.tensor([0, 0, 1, 1]))
    assert TwoHop(2)(by_hand).max_candidates_per_node == 0


@pytest.mark.parametrize("data", [HeteroData(), "cora", None])
def test_what_is_no_graph_of_one_kind(data):
    with pytest.raises(UserError, match=f"must be a homogeneous Data object, not a {type(data).__name__}"):
        Local(3)(data)


@pytest.mark.parametrize(
    ("make_one", "message"),
    [
        (lambda: Local(per_node=0), "per_node must be at least 1, but is 0"),
        (lambda: TwoHop(per_node=-1), "per_node must be at least 1, but is -1"),
        (lambda: Global(pairs=-2), "pairs must be at least 0, but is -2"),
        (lambda: TwoHop(seed="a"), "seed must be a whole number, but is 'a'"),
        (lambda: Local(similarity="cosin"), "there is no similarity called 'cosin': did you mean 'cosine'?"),
        (lambda: Global(similarity="l2"), "there is no similarity called 'l2': known are cosine, dot"),
    ],
)
def test_wrong_arguments_are_answered_in_one_sentence(make_one, message):
    with pytest.raises(UserError) as error:
        make_one()
    assert str(error.value) == message
    assert isinstance(error.value, UnknownNameError) == message.startswith("there is no")


@pytest.mark.parametrize("strategy", [Local(), Global()], ids=["local", "global"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "the graph has no tensor 'x'"),
        ({"x": torch.ones(5)}, r"'x' must be numbers of shape \[5, D\] .* not torch.float32 \[5\]"),
        ({"x": torch.ones(4, 2), "num_nodes": 5}, r"'x' must be numbers of shape \[5, D\] .* \[4, 2\]"),
        ({"x": torch.tensor([[0.0], [1], [2], [torch.nan], [4]])}, "'x' of node 3 is not finite"),
        ({"batch": torch.zeros(4)}, r"batch must have the shape \[5\], .* not \[4\]"),
        ({"batch": torch.tensor([0, 0, 1, 1, 0])}, "batch must be sorted"),
        ({"batch": torch.tensor([0, 0, 0, 1, 1])}, "an edge joins nodes 2 and 3, but batch"),
        ({"edge_index": edges((0, 5))}, "edge 0 goes from node 0 to node 5, but nodes are 0 to 4"),
    ],
)
def test_wrong_data_is_answered_in_one_sentence(strategy, change, message):
    data = Data(**{**PLANE.to_dict(), "num_nodes": 5, **change})
    with pytest.raises(DataError, match=message):
        strategy(data)


def test_a_strategy_that_finds_nothing_for_fit_warns():
    data = Data(x=torch.eye(4), edge_index=edges((0, 1)))
    with pytest.warns(DataWarning, match="'local' finds no candidates here: edges can be dropped, but none added"):
        with_candidates(data, RewiringSettings())
