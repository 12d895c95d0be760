"""Memory and time of training, estimated from sizes."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import gumbel_mpnn as gm
from gumbel_mpnn.graph.layout import INT32_MAX
from gumbel_mpnn.nn.model import Sizes, Work
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.runs.coefficients import coefficients
from gumbel_mpnn.runs.estimating import GIB, Bounds, GraphSize, _parts
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.build import outline_model, prepare
from gumbel_mpnn.training.memory import bytes_per_replica
from helpers import small_data

COUNTS = {"nodes": 1000, "edges": 4000, "features": 32}


@pytest.mark.parametrize("model", ["gcn", "gat", "mlp", "drop-edge", "gumbel-mpnn", "frozen"])
@pytest.mark.parametrize(
    "more", [(), ("data.undirected=false",), ("data.features=standardized",), ("model.input_dropout=0.5",)]
)
def test_the_memory_is_that_by_which_fit_plans(model, more):
    data = small_data(nodes=30, features=8)
    settings = RunSpec.of(data, model, preset=None, overrides=more).settings
    prepared = prepare(data, settings)
    task = Task.for_model(prepared, settings)
    edges = int(task.graph.is_original.sum())
    size = GraphSize(30, edges, 8, task.num_outputs)
    if settings.rewiring is not None:
        found = prepared.candidate_index.shape[1]
        size = replace(size, candidates=found)
        more = [*more, "rewiring.candidates=data"]
    bounds = Bounds.of(size, RunSpec.of(data, model, preset=None, overrides=more).settings, on_gpu=False)
    assert (bounds.sizes.arcs, bounds.sizes.pairs) == (task.graph.num_arcs, task.graph.num_pairs)
    assert bounds.nodes + bounds.arcs == bytes_per_replica(outline_model(settings, task), settings, task)


def test_a_symmetric_choice_of_pairs():
    """One pair for both directions of an edge, or two."""
    size = GraphSize(10, 5, 4, 2, candidates=3)
    for symmetric, pairs, given in (("true", 8, 5), ("false", 16, 10)):
        more = ["rewiring.candidates=data", f"rewiring.symmetric={symmetric}"]
        settings = RunSpec.of(small_data(), "gumbel-mpnn", preset=None, overrides=more).settings
        sizes = Bounds.of(size, settings, on_gpu=False).sizes
        assert (sizes.arcs, sizes.pairs, sizes.given_pairs) == (16, pairs, given)


def test_the_work_of_a_gcn_by_hand():
    """4 and 6 channels go along 8 arcs, forward and backward; 4 x 6, 6 x 6 and 6 x 3 are multiplied with 10 nodes."""
    model = gm.GCN(4, out_channels=3, hidden_channels=6, num_layers=2)
    sizes = Sizes(nodes=10, arcs=8, pairs=4, given_pairs=4, inputs=40)
    products = 4 * 40 * 6 + 6 * 10 * (6 * 6 + 6 * 3)
    assert model.step_work(sizes, 4) == Work(2 * 2 * 8, 2 * 8 * (4 + 6), 0, products)
    assert gm.MLP(4, out_channels=3, hidden_channels=6).step_work(sizes, 4) == Work(0, 0, 0, products)


def test_the_work_of_gumbel_mpnn_by_hand():
    """Arcs are fetched once more for the weights, and every pair three times for its score, in 3 classes."""
    model = gm.GumbelMPNN(4, out_channels=3, hidden_channels=6, scorer="class-space")
    sizes = Sizes(nodes=10, arcs=8, pairs=4, given_pairs=4, inputs=40)
    work = model.step_work(sizes, 4)
    assert (work.rows, work.numbers) == (3 * 2 * 8 + 3 * 4, 2 * 8 * (4 + 6))
    assert work.weighed == 8 * (4 + 6) + 3 * 4 * 3
    assert work.products > gm.GCN(4, out_channels=3, hidden_channels=6).step_work(sizes, 4).products


def test_several_samples_are_as_much_more_work():
    sizes = Sizes(nodes=10, arcs=8, pairs=4, given_pairs=4, inputs=40)
    one, three = (gm.baselines.DropEdge(4, out_channels=3, samples=count).step_work(sizes, 4) for count in (1, 3))
    assert three == one * 3


@pytest.mark.parametrize(
    ("need", "own", "room", "largest", "parts"),
    [
        (30, 10, 40, 1, 1),
        (40, 10, 40, 1, 1),
        (41, 10, 40, 1, 2),
        (100, 10, 40, 1, 3),
        (100, 40, 40, 1, None),
        (30, 10, 40, INT32_MAX + 1, 2),
    ],
)
def test_parts_share_what_is_not_of_the_parameters(need, own, room, largest, parts):
    assert _parts(need, own, room, largest) == parts


@pytest.mark.parametrize("device", ["cpu", "h200"])
def test_the_coefficients_of_each_device(device):
    costs = coefficients(device)
    assert costs.on
    assert min(costs.node_share, costs.arc_bytes, costs.start_s, costs.number_s, costs.product_s) > 0
    assert costs.node_share < 1  # `fit` plans with upper bounds


def test_a_graph_that_does_not_exist():
    found = gm.estimate(**COUNTS, device="h200")
    assert (found.nodes, found.edges, found.candidates, found.classes) == (1000, 4000, 5000, 2)
    assert found.fits
    assert found.device_memory == int(139.8 * GIB)
    huge = gm.estimate(nodes=10**9, edges=10**10, features=128, device="h200")
    assert not huge.fits
    assert huge.parts > 10
    assert huge.memory > huge.parts * 0.6 * huge.device_memory
    json.dumps(huge.to_dict())


def test_a_search_by_similarity_grows_with_the_square_of_the_nodes():
    one, two = (gm.estimate(nodes=nodes, edges=0, features=8, device="cpu") for nodes in (1000, 2000))
    assert two.candidate_seconds == pytest.approx(4 * one.candidate_seconds)
    hops = ["rewiring.candidates=two_hop"]
    one, two = (gm.estimate(nodes=1000, edges=edges, features=8, device="cpu", overrides=hops) for edges in (500, 1000))
    assert two.candidate_seconds == pytest.approx(2 * one.candidate_seconds)
    assert gm.estimate(**COUNTS, overrides=["rewiring.candidates=none"]).candidate_seconds == 0
    assert gm.estimate(**COUNTS, overrides=["rewiring.candidates=ricci"]).candidate_seconds is None


def test_more_candidates_than_pairs_cannot_be():
    assert gm.estimate(nodes=4, edges=3, features=8, overrides=["rewiring.per_node=100"]).candidates == 3
    assert gm.estimate(**COUNTS, overrides=["rewiring.candidates=global"]).candidates == 8000
    assert gm.estimate(**COUNTS, overrides=["rewiring.candidates=global", "rewiring.pairs=7"]).candidates == 7


def test_as_many_edges_as_there_can_be():
    assert gm.estimate(nodes=5, edges=10, features=8).candidates == 0
    assert gm.estimate(nodes=5, edges=20, features=8, overrides=["data.undirected=false"]).edges == 20


def test_a_data_set_and_its_own_candidates():
    data = gm.data.demo_graph()
    found = gm.estimate(data, "gcn")
    assert (found.nodes, found.features, found.classes) == (data.num_nodes, data.num_features, 4)
    assert found.edges == gm.PairGraph.of(data).num_pairs
    data = gm.candidates.TwoHop(per_node=2)(data)
    assert gm.estimate(data).candidates == data.candidate_index.shape[1]


def test_half_of_the_memory_in_16_bits():
    plain, half = (gm.estimate(**COUNTS, device="h200", overrides=[f"train.bfloat16={on}"]) for on in ("false", "true"))
    assert half.memory < plain.memory
    assert half.step_seconds < plain.step_seconds


def test_parameters_that_do_not_fit_are_told_without_being_made():
    found = gm.estimate(**COUNTS, memory=1, overrides=["model.hidden_channels=1000000"])
    assert found.parts is None
    assert found.parameters > 10**12


def test_a_device_of_this_machine():
    found = gm.estimate(**COUNTS, memory=2)
    assert found.device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert found.device_memory == 2 * GIB


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:0"])
def test_a_gpu_has_its_own_memory(monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=24 * GIB))
    found = gm.estimate(**COUNTS, device=device)
    assert found.device == ("cuda" if device == "auto" else device)
    assert found.device_memory == 24 * GIB
    assert found.measured_on == coefficients("h200").on


def test_a_gpu_that_is_not_here(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = gm.estimate(**COUNTS, device="cuda:1")
    assert (found.device, found.device_memory) == ("h200", int(139.8 * GIB))


def test_parts_take_less_memory():
    large = {"nodes": 10**6, "edges": 10**7, "features": 128, "device": "h200", "memory": 1}
    whole = gm.estimate(**large)
    assert not whole.fits
    parts = [gm.estimate(**large, overrides=[f"train.partitions={count}"]) for count in (whole.parts - 1, whole.parts)]
    assert [found.fits for found in parts] == [False, True]
    assert [found.parts for found in parts] == [whole.parts] * 2
    assert parts[1].memory <= 0.65 * parts[1].device_memory < parts[0].memory < whole.memory


def test_the_time_of_an_approximate_search_is_not_known():
    def seconds(nodes, *overrides):
        return gm.estimate(nodes=nodes, edges=10, features=8, device="cpu", overrides=overrides).candidate_seconds

    for strategy in ("local", "global"):
        chosen = f"rewiring.candidates={strategy}"
        assert seconds(50_001, chosen, "train.partitions=2") is None
        assert seconds(1000, chosen, "rewiring.candidates.search=approximate") is None
        assert seconds(50_000, chosen, "train.partitions=2") > 0
        assert seconds(50_001, chosen) > 0
        assert seconds(50_001, chosen, "train.partitions=2", "rewiring.candidates.search=exact") > 0
        assert seconds(50_001, chosen, "train.partitions=2", "rewiring.similarity=dot") > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give a data set, or the counts nodes, edges and features"),
        ({"dataset": "demo", "nodes": 5}, "give a data set, or the counts nodes, edges and features"),
        ({"nodes": 5}, "the number of edges and features is missing"),
        ({**COUNTS, "nodes": 0}, "nodes must be a whole number from 1 to 1,000,000,000,000,000, not 0"),
        ({**COUNTS, "edges": 10**16}, "edges must be a whole number from 0"),
        ({**COUNTS, "nodes": 5, "edges": 11}, "5 nodes can have 10 undirected edges at most, not 11"),
        (
            {**COUNTS, "nodes": 5, "edges": 21, "overrides": ["data.undirected=false"]},
            "5 nodes can have 20 directed edges at most, not 21",
        ),
        ({**COUNTS, "classes": 1.5}, "classes must be a whole number from 1"),
        ({**COUNTS, "memory": 0}, "memory must be a number of GiB above 0, not 0"),
        ({**COUNTS, "device": "tpu"}, "there is no device called 'tpu': did you mean 'cpu'?"),
        ({**COUNTS, "model": "gcm"}, "did you mean 'gcn'"),
        ({**COUNTS, "model": "auto"}, "'auto' trains several models and chooses one, but one is needed here: name one"),
    ],
)
def test_what_cannot_be_estimated_is_told(arguments, message):
    with pytest.raises(gm.UserError) as told:
        gm.estimate(**arguments)
    assert message in str(told.value)
