"""Every candidate strategy on graphs small enough to work out by hand, its draws, and what all of them share."""

import copy

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import Compose, ToSparseTensor

import gumbel_mpnn as gm
from gumbel_mpnn.candidates import CandidateStrategy, Global, Local, Ricci, TwoHop, candidates, with_candidates
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures import balanced_forman
from gumbel_mpnn.nn.replica import derive_seed
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.util.errors import DataError, DataWarning, UnknownNameError, UserError
from helpers import both_ways, edges

each_strategy = pytest.mark.parametrize("name", list(candidates))

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
        (Local(per_node=2), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)]),
        # 0 → 4, 1 → 4, 3 → 1, 4 → 1
        (Local(per_node=1, similarity="dot"), PLANE, [(0, 4), (1, 3), (1, 4)]),
        # 0 → 4, 3; 1 → 4, 3; 3 → 1, 0; 4 → 1, 0
        (Local(per_node=2, similarity="dot"), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)]),
    ],
    "global": [
        (Global(pairs=2), PLANE, [(0, 4), (1, 4)]),
        (Global(pairs=9), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)]),  # all that are above 0
        (Global(pairs=1, similarity="dot"), PLANE, [(1, 4)]),
        (Global(similarity="dot"), PLANE, [(0, 3), (0, 4), (1, 3), (1, 4)]),  # twice two edges
    ],
    "two_hop": [
        (TwoHop(per_node=1), HOPS, [(0, 2), (1, 3)]),
        (TwoHop(per_node=3, seed=7), HOPS, [(0, 2), (1, 3)]),
        (TwoHop(), Data(edge_index=edges((0, 1), (0, 2), (3, 0)), num_nodes=4), [(1, 2), (1, 3), (2, 3)]),
    ],
    "ricci": [
        (Ricci(pairs=8), BRIDGE, [(0, 3), (0, 4), (0, 5), (1, 3), (1, 4), (1, 5), (2, 4), (2, 5)]),
        (Ricci(), HOPS, [(0, 2), (0, 3), (1, 3)]),
        (Ricci(per_edge=1), Data(edge_index=edges((0, 1), (2, 1))), [(0, 2)]),
    ],
}


def as_list(data):
    return [tuple(pair) for pair in data.candidate_index.T.tolist()]


def make(name, **options):
    return candidates[name](**options)


def test_every_strategy_has_an_example_worked_out_by_hand():
    assert set(BY_HAND) == set(candidates)


@pytest.mark.parametrize(
    ("strategy", "data", "expected"), [case for cases in BY_HAND.values() for case in cases], ids=str
)
def test_the_examples(strategy, data, expected):
    out = strategy(data)
    assert as_list(out) == expected
    assert out.candidate_index.dtype == torch.int64


def test_names_options_and_repr():
    assert candidates["two-hop"] is candidates["2-hop"] is candidates["2_HOP"] is TwoHop
    similar = {"similarity": "cosine", "on": "x"}
    assert candidates.defaults("local") == {"per_node": 5, **similar, "search": "auto"}
    assert candidates.defaults("global") == {"pairs": 0, **similar}
    assert candidates.defaults("two_hop") == {"per_node": 5, "seed": 0}
    assert candidates.defaults("ricci") == {"pairs": 0, "per_edge": 10, "seed": 0}
    assert str(Global(pairs=9, on="h")) == "Global(pairs=9, similarity='cosine', on='h')"


@each_strategy
def test_a_strategy_composes_and_leaves_its_input_alone(name):
    data = copy.copy(PLANE)
    out = Compose([make(name)])(data)
    assert "candidate_index" in out
    assert "candidate_index" not in data
    assert out.x is data.x
    assert torch.equal(make(name)(out).candidate_index, out.candidate_index)  # nothing is added twice
    graph = PairGraph.of(out)
    assert torch.equal(graph.pair_index[:, ~graph.is_original], out.candidate_index)


def test_strategies_in_a_row_add_up():
    # As above: Global has (0, 4), (1, 4) and Local has (0, 4), (1, 3), (1, 4).
    assert as_list(Compose([Global(pairs=2), Local(per_node=1, similarity="dot")])(PLANE)) == [(0, 4), (1, 3), (1, 4)]
    by_hand = copy.copy(PLANE)
    by_hand.candidate_index = edges((4, 2), (4, 2), (3, 3), (1, 0))  # reversed, twice, a self-pair, an edge
    assert as_list(Global(pairs=1, similarity="dot")(by_hand)) == [(1, 4), (2, 4)]


def test_a_candidate_that_has_become_an_edge_is_none_any_more():
    data = Global(pairs=2)(PLANE)
    data.edge_index = torch.cat([data.edge_index, edges((4, 0))], dim=1)
    assert as_list(Global(pairs=1, similarity="dot")(data)) == [(1, 4)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (edges((0, -1)), "candidate_index joins nodes 0 and -1, but"),
        (torch.zeros(2), r"candidate_index must be integers of shape \[2, M\], not torch.float32 \[2\]"),
    ],
)
def test_candidates_of_another_graph_are_refused(given, message):
    with pytest.raises(DataError, match=message):
        Local()(Data(**PLANE.to_dict(), candidate_index=given))


def test_a_subgraph_with_its_old_candidates_is_refused_in_one_sentence():
    data = Data(x=torch.eye(40) + 1, edge_index=edges(*((node, node + 1) for node in range(39))))
    part = Local(2)(data).subgraph(torch.arange(10))
    for use in (PairGraph.of, Local(2), lambda data: gm.GumbelMPNN(in_channels=40, out_channels=2)(data)):
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
        Data(x=torch.ones(1, 3), edge_index=edges((0, 0))),
        Data(x=torch.ones(2, 3), edge_index=edges((1, 0))),
        Data(x=torch.ones(3, 3), edge_index=edges((0, 1), (1, 2), (2, 0))),
        Data(x=torch.ones(2, 3), edge_index=edges((0, 1)), batch=torch.tensor([0, 0])),
        Data(x=torch.ones(2, 3), edge_index=edges(), batch=torch.tensor([1, 4])),
    ],
    ids=["nothing", "no-node", "self-loop", "one-edge", "complete", "one-edge-batch", "single-nodes"],
)
def test_where_nothing_is_left_the_result_is_empty(name, data):
    out = make(name)(data)
    assert out.candidate_index.shape == (2, 0)
    assert out.candidate_index.dtype == torch.int64


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


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_equal_features_make_no_hub(similarity):
    data = Data(x=torch.ones(200, 4), edge_index=edges((0, 1), (5, 6)))
    assert Local(3, similarity)(data).candidate_index.flatten().bincount().max() <= 7
    assert Global(pairs=600, similarity=similarity)(data).candidate_index.flatten().bincount().max() <= 8


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


def small_graphs(sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        Data(
            x=torch.randint(-3, 4, (size, 2), generator=generator).float(),
            edge_index=torch.randint(size, (2, 2 * size), generator=generator),
        )
        for size in sizes
    ]


@each_strategy
def test_a_batch_is_its_graphs_one_by_one(name):
    strategy, graphs = make(name), small_graphs((3, 1, 7, 300, 2, 40))
    batch, alone = Batch.from_data_list(graphs), [strategy(graph) for graph in graphs]
    together = strategy(batch)
    parts = together.to_data_list()
    assert [as_list(part) for part in parts] == [as_list(one) for one in alone]
    assert torch.equal(together.candidate_index, Batch.from_data_list(alone).candidate_index)
    assert "candidate_index" not in batch
    union = strategy(Data(x=batch.x, edge_index=batch.edge_index, batch=batch.batch))  # one graph that says its parts
    first, second = batch.batch[union.candidate_index]
    assert torch.equal(first, second)
    if name != "ricci":  # it takes the most curved edges of the union
        assert torch.equal(union.candidate_index, together.candidate_index)


def test_strategies_in_a_row_on_a_batch_that_brings_candidates():
    first, second, graphs = Local(1), TwoHop(2), small_graphs((6, 6, 6))
    together = second(Batch.from_data_list([first(graph) for graph in graphs]))
    assert [as_list(part) for part in together.to_data_list()] == [as_list(second(first(graph))) for graph in graphs]


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
        (lambda: Ricci(pairs=2.5), "pairs must be a whole number, but is 2.5"),
        (lambda: Ricci(per_edge=0), "per_edge must be at least 1, but is 0"),
        (lambda: TwoHop(seed="a"), "seed must be a whole number, but is 'a'"),
        (lambda: Local(similarity="cosin"), "there is no similarity called 'cosin': did you mean 'cosine'?"),
        (lambda: Global(similarity="l2"), "there is no similarity called 'l2': known are cosine, dot"),
        (lambda: Local(search="fast"), "there is no search called 'fast': known are approximate, auto, exact"),
        (
            lambda: Local(search="approximate", similarity="dot"),
            "the approximate search is for similarity 'cosine', not 'dot': set search='exact'",
        ),
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
        ({"batch": torch.zeros(4)}, "batch must be the number of the graph of each of the 5 nodes"),
        ({"batch": torch.tensor([0, 0, 1, 1, 0])}, "sorted: put the nodes of each graph next to each other"),
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


# Node 0 has the neighbors 1 to 4; 5 can be reached from it through all of them, 6 to 10 through one each.
FROM_0 = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (5, 1), (5, 2), (5, 3), (5, 4)]
MANY_PATHS = PairGraph.build(edges(*FROM_0, *((other, 1) for other in range(6, 11))), 11)


class TestDrawsAtTwoHops:
    def drawn(self, per_node, seed, graph=MANY_PATHS, node=0):
        pairs = TwoHop(per_node, seed).propose(Data(num_nodes=graph.num_nodes), graph)
        return pairs[1, pairs[0] == node].tolist()

    def test_nodes_are_drawn_once_each_and_all_equally_often(self):
        seeds = 600
        drawn = [self.drawn(2, seed) for seed in range(seeds)]
        assert all(first != second for first, second in drawn)
        times = np.bincount(np.ravel(drawn), minlength=11)
        assert times[:5].sum() == 0
        # Each of six is drawn with probability 1/3: 200 times, with a standard deviation of 12.
        assert abs(times[5:] - seeds / 3).max() < 60

    def test_nodes_draw_independently(self):
        star = PairGraph.build(edges(*((0, leaf) for leaf in range(1, 200))), 200)
        assert TwoHop(1).propose(Data(num_nodes=200), star)[1].bincount().max() < 8

    @pytest.mark.parametrize("seed", [0, 1, -5, 2**70])
    def test_those_with_the_smallest_hashes_are_drawn(self, seed):
        stream = scramble(0 + derive_seed(seed, "two_hop"))
        expected = sorted(range(5, 11), key=lambda other: scramble(stream ^ other))
        assert self.drawn(4, seed) == expected[:4]


def scramble(value):
    """SplitMix64's last step in whole numbers of Python."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> shift)) * factor % 2**64
    return value ^ (value >> 31)


class TestDrawsAroundBottlenecks:
    @pytest.mark.parametrize("size", [5, 40])  # two cliques and a bridge: 1,600 pairs are too many to look at all
    def test_the_first_pairs_are_around_the_bridge_and_drawn_evenly(self, size):
        graph = PairGraph.build(edges(*nx.barbell_graph(size, 0).edges), 2 * size)
        times = np.zeros((2 * size, 2 * size), int)
        rounds = 60
        for seed in range(rounds):
            first, second = Ricci(pairs=10, per_edge=10, seed=seed).propose(Data(), graph).numpy()
            assert len({*zip(first, second, strict=True)}) == 10
            times[first, second] += 1
        assert times.sum() == times[:size, size:].sum() == 10 * rounds
        assert times[size - 1, size] == 0
        mean = 10 * rounds / (size * size - 1)
        assert abs(times.sum(1)[:size] - mean * size).max() < 6 * np.sqrt(mean * size)
        assert times.max() < mean + 7 * np.sqrt(mean)

    def test_more_edges_are_served_where_each_draws_fewer(self):
        data = Data(edge_index=edges(*nx.karate_club_graph().edges))
        graph = PairGraph.build(data.edge_index, 34)
        curvature = balanced_forman(Data(edge_index=graph.pair_index))
        x, y = graph.pair_index[:, int(curvature.argmin())].tolist()
        near = [{end, *graph.edge_index[1, graph.edge_index[0] == end].tolist()} for end in (x, y)]

        def around(per_edge):
            pairs = Ricci(pairs=12, per_edge=per_edge)(data).candidate_index.T.tolist()
            return sum((i in near[0] and j in near[1]) or (i in near[1] and j in near[0]) for i, j in pairs)

        assert around(12) == 12 > around(1)
