"""SDRF as a transform and as a model: graphs worked out by hand, odd graphs, what it keeps."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch, Data

import gumbel_mpnn as gm
from brute_curvature import curvature_kept
from gumbel_mpnn import UserError, load
from gumbel_mpnn.baselines import SDRF
from gumbel_mpnn.baselines.sdrf_steps import Flow
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.measures import balanced_forman
from gumbel_mpnn.runs.progress import Monitor
from gumbel_mpnn.training import prepare
from helpers import both_ways, edges, small_data
from quick_fit import resolved


def graph(source):
    """A networkx graph as `Data`, both directions."""
    return Data(edge_index=both_ways(edges(*source.edges)), num_nodes=source.number_of_nodes())


def pairs(data):
    """The undirected edges as a set."""
    return {(i, j) for i, j in data.edge_index.T.tolist() if i < j}


# Two triangles joined by an edge: 2 ~ 3 has degrees 3 and 3, no triangle and no four-cycle, −2/3, the least.
BARBELL = nx.barbell_graph(3, 0)


@pytest.mark.parametrize("seed", range(4))
def test_one_greedy_step_on_two_triangles(seed):
    before = graph(BARBELL)
    after = SDRF(iterations=1, tau=10_000.0, removal_bound=None, seed=seed)(before)
    # Joining i of {0, 1} to j of {4, 5} closes a four-cycle without diagonal: −2/3 + 2/3 = 0. Joining 2 to 4 makes a
    # triangle: 2/4 + 2/3 − 2 + 2/4 + 1/3 = 0 too, so that each of these eight is drawn.
    (new,) = pairs(after) - pairs(before)
    assert new in {(0, 4), (0, 5), (1, 4), (1, 5), (2, 4), (2, 5), (0, 3), (1, 3)}
    assert pairs(before) < pairs(after)
    curvature = dict(zip(map(tuple, after.edge_index.T.tolist()), balanced_forman(after).tolist(), strict=True))
    assert curvature[2, 3] == pytest.approx(0)


def test_every_best_candidate_is_drawn_equally_often():
    before, times = PairGraph.build(edges(*BARBELL.edges), 6), {}
    for seed in range(800):
        flow = Flow(before, 1, 10_000.0, None, seed)
        flow.advance(1)
        (new,) = set(map(tuple, flow.pairs.T.tolist())) - set(BARBELL.edges)
        times[new] = times.get(new, 0) + 1
    # Each of eight with probability 1/8: 100 times, with a standard deviation of 9.4.
    assert len(times) == 8
    assert all(abs(count - 100) < 45 for count in times.values())


def test_the_largest_curvature_goes():
    # A triangle (1.5 on each of its edges) beside a path (0 and less).
    before = graph(nx.disjoint_union(nx.cycle_graph(3), nx.path_graph(6)))
    after = SDRF(iterations=1)(before)
    (gone,) = pairs(before) - pairs(after)
    assert gone in {(0, 1), (0, 2), (1, 2)}
    assert pairs(SDRF(iterations=1, removal_bound=1.5)(before)) > pairs(before)


SHAPES = {
    "nothing": nx.empty_graph(0),
    "one node": nx.empty_graph(1),
    "no edge": nx.empty_graph(4),
    "one edge": nx.path_graph(2),
    "path": nx.path_graph(5),
    "star": nx.star_graph(6),
    "clique": nx.complete_graph(6),
    "bipartite": nx.complete_bipartite_graph(3, 4),
    "disconnected": nx.disjoint_union_all([nx.path_graph(4), nx.empty_graph(3), nx.cycle_graph(5), nx.star_graph(3)]),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_any_shape_stays_a_simple_graph_with_exact_curvature(name):
    before = graph(SHAPES[name])
    after = SDRF(iterations=30, tau=5.0, seed=1)(before)
    first, second = after.edge_index
    assert (first != second).all()
    assert torch.equal(after.edge_index, PairGraph.of(after).edge_index.flip(0))  # sorted, each once, both directions
    assert after.num_nodes == before.num_nodes
    components = [set(part) for part in nx.connected_components(SHAPES[name])]
    assert all(any({i, j} <= part for part in components) for i, j in pairs(after))  # candidates are near by


def test_where_nothing_can_be_added_or_removed_it_ends():
    clique = graph(nx.complete_graph(5))
    after = SDRF(iterations=50, removal_bound=None)(clique)
    assert pairs(after) == pairs(clique)
    assert after.sdrf_steps == 0
    assert SDRF(iterations=50, removal_bound=2.0)(clique).sdrf_steps == 0
    assert SDRF(iterations=50)(clique).sdrf_steps == 50  # 5/4 is above ½: edges go, and come back


def test_many_neighbors_for_few_nodes():
    """Nodes that began with at most two neighbors get most of the others, and their memory is enough."""
    path = PairGraph.build(edges(*nx.path_graph(60).edges), 60)
    flow = Flow(path, 700, 1.0, None, 0)
    flow.advance(700)
    after = Data(edge_index=torch.from_numpy(flow.pairs), num_nodes=60)
    assert after.num_edges == 59 + 700
    assert (balanced_forman(after).numpy() == curvature_kept(flow)).all()
    assert flow.state.sizes[0] <= len(flow.state.graph.neighbor)


def test_what_it_keeps_and_what_it_leaves_out():
    data = Data(
        x=torch.eye(6),
        y=torch.arange(6),
        edge_index=edges(*BARBELL.edges),
        edge_weight=torch.arange(1.0, 8.0),
        edge_attr=torch.ones(7, 2),
        candidate_index=edges((0, 5)),
        name="two triangles",
    )
    kept = dict(data.to_dict())
    after = SDRF(iterations=2, removal_bound=None, seed=5)(data)
    assert data.to_dict().keys() == kept.keys()
    assert all(data[name] is value for name, value in kept.items())
    assert after.x is data.x
    assert after.y is data.y
    assert after.name == "two triangles"
    assert "edge_attr" not in after
    assert "candidate_index" not in after
    assert after.edge_origin.sum() == 2 * 7
    assert after.num_edges == 2 * 9
    given = dict(zip(map(tuple, data.edge_index.T.tolist()), data.edge_weight.tolist(), strict=True))
    for (i, j), weight in zip(after.edge_index.T.tolist(), after.edge_weight.tolist(), strict=True):
        assert weight == given.get((i, j), given.get((j, i), 1.0))


def test_directions_can_be_left_as_they_are():
    index, weight = edges((2, 0), (0, 1), (1, 0), (2, 3), (3, 4)), torch.tensor([0.2, 0.8, 3.0, 5.0, 7.0])
    data = Data(edge_index=index, edge_weight=weight, num_nodes=5)
    after = SDRF(iterations=2, removal_bound=None, undirected=False)(data)
    arcs = dict(zip(map(tuple, after.edge_index.T.tolist()), after.edge_weight.tolist(), strict=True))
    given = dict(zip(map(tuple, index.T.tolist()), weight.tolist(), strict=True))
    new = {arc for arc in arcs if arc not in given}
    assert given.items() <= arcs.items()  # each direction keeps its own weight
    assert {arcs[arc] for arc in new} == {1.0}
    assert len(new) == 2 * 2 == (~after.edge_origin).sum()
    assert new == {(j, i) for i, j in new}
    assert not any((j, i) in given for i, j in new)


@pytest.mark.parametrize("index", [edges((0, 1), (1, 2), (2, 0)), edges(), edges(*nx.path_graph(6).edges)])
def test_labels_tell_of_nodes_that_no_edge_has(index):
    data = Data(edge_index=index, y=torch.arange(6))
    after = SDRF(iterations=1)(data)
    assert after.num_nodes == 6
    assert after.y is data.y


@pytest.mark.parametrize("features", [True, False])
def test_a_batch_is_rewired_and_can_be_taken_apart(features):
    single = Data(
        edge_index=both_ways(edges(*BARBELL.edges)), **({"x": torch.eye(6)} if features else {"num_nodes": 6})
    )
    single.edge_weight = torch.ones(single.num_edges)
    single.edge_attr = torch.ones(single.num_edges, 2)
    after = SDRF(iterations=5, removal_bound=None)(Batch.from_data_list([single, single]))
    assert after.num_graphs == 2
    parts = after.to_data_list()
    assert sum(part.num_edges for part in parts) == after.num_edges > 2 * single.num_edges
    for part in parts:
        assert part.num_nodes == 6
        assert part.edge_index.min() >= 0
        assert part.edge_index.max() < 6
        assert pairs(part) >= pairs(single)
        assert part.edge_origin.sum() == single.num_edges
        assert part.edge_weight.shape == part.edge_origin.shape
        assert "edge_attr" not in part


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": -1}, "iterations must be at least 0, but is -1"),
        ({"iterations": 2.5}, "iterations must be a whole number, but is 2.5"),
        ({"iterations": "5"}, "iterations must be a whole number, but is '5'"),
        ({"seed": "a"}, "seed must be a whole number"),
        ({"tau": "1"}, "tau must be a finite number"),
        ({"tau": -1.0}, "tau must be a finite number, 0 or more"),
        ({"tau": float("inf")}, "tau must be a finite number"),
        ({"removal_bound": float("nan")}, "removal_bound must be a number"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(UserError, match=message):
        SDRF(**options)


def test_control_c_ends_it_between_steps():
    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    data = graph(nx.karate_club_graph())
    before = data.edge_index.clone()
    with pytest.raises(KeyboardInterrupt):
        SDRF(iterations=100, progress=stop)(data)
    assert torch.equal(data.edge_index, before)


@pytest.mark.real_data
def test_cora_after_many_steps_has_the_curvature_that_it_kept(data_root):
    before = PairGraph.of(load("cora", root=data_root), candidates=False)
    flow = Flow(before, 300, 20.0, 0.5, 0)
    flow.advance(300)
    assert flow.done == 300
    after = Data(edge_index=torch.from_numpy(flow.pairs), num_nodes=before.num_nodes)
    assert (balanced_forman(after).numpy() == curvature_kept(flow)).all()
    assert curvature_kept(flow).min() > balanced_forman(load("cora", root=data_root)).min()


QUICK = {"model": {"hidden_channels": 8, "iterations": 12}, "train": {"epochs": 5, "lr": 0.01}}


class TestModel:
    def test_it_is_the_backbone_on_the_rewired_graph(self, monkeypatch):
        data, steps = small_data(), []
        monkeypatch.setattr(Monitor, "prepare", lambda self, done, total: steps.append((done, total)))
        run = gm.fit(data, "sdrf", seeds=2, preset=None, settings=QUICK)
        assert (steps[0], steps[-1]) == ((0, 12), (12, 12))
        rewired = SDRF(12)(data)
        assert not rewired.edge_origin.all()
        plain = {"model": {"hidden_channels": 8}, "train": QUICK["train"]}
        same = gm.fit(rewired, "gcn", seeds=2, preset=None, settings=plain)
        assert [record.test for record in run.records] == [record.test for record in same.records]
        torch.testing.assert_close(run.predict_proba(), same.predict_proba())
        for graph in (data, small_data(nodes=31)):
            assert torch.equal(run.rewire(graph).edge_index, SDRF(12)(graph).edge_index)

    def test_its_options_reach_the_transform(self, monkeypatch):
        seen = []
        monkeypatch.setattr(SDRF, "forward", lambda self, data: seen.append(str(self)) or data)
        changes = {"iterations": 7, "tau": 3, "remove": False, "sdrf_seed": 5}
        tables = {"model": changes, "data": {"undirected": False}}
        prepare(small_data(), resolved(small_data(), "sdrf", preset=None, settings=tables))
        assert seen == ["SDRF(iterations=7, tau=3.0, removal_bound=None, undirected=False, seed=5)"]

    def test_mistakes_in_its_options_are_found_before_training(self):
        for option, message in (("tau=-1", "tau must be"), ("taus=1", "no option")):
            with pytest.raises(UserError, match=message):
                gm.fit(small_data(), "sdrf", preset=None, overrides=[f"model.{option}"])
