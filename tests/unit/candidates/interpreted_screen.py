"""Tests of the GPU's search; run by test_screen_interpreted.py in a process where Triton interprets its kernels."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data
from triton.runtime import interpreter

from gumbel_mpnn.candidates import Global, Local, blocks, screen, screened, similarity, triton_similarity
from gumbel_mpnn.candidates.blocks import Block
from gumbel_mpnn.candidates.closest_pairs import closest_pairs
from gumbel_mpnn.candidates.nearest import nearest
from gumbel_mpnn.candidates.screen import Screen
from gumbel_mpnn.candidates.triton_similarity import Tiling, dots, group_of, lane_maxima, lanes_above
from gumbel_mpnn.graph import PairGraph
from helpers import normal, random_edges
from similar_nodes import FEATURES, nearest_by_definition, pairs_by_definition

NODES = 150
EXACT_IN_ANY_ORDER = ("words", "duplicates", "zeros")
"""Features whose similarities are float32 numbers, however they are added up."""


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles that fit a small graph several times, and lists and samples of a size to match."""
    monkeypatch.setattr(triton_similarity, "TILING", Tiling(rows=128, cols=32, depth=16, whole=16))
    monkeypatch.setattr(triton_similarity, "PARTS", 2)
    monkeypatch.setattr(triton_similarity, "DOTS", 1024)
    monkeypatch.setattr(screened, "GROUPS", 6)
    monkeypatch.setattr(screened, "SAMPLE", 2000)


@pytest.fixture(autouse=True)
def bounds_of_loops(monkeypatch):
    """Since NumPy 2.4 an array with one number is no index; the interpreter of triton 3.6 takes it for one."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


@pytest.fixture
def on_cpu(monkeypatch):
    """The search uses the kernels although the tensors lie on the CPU and the graph is small."""
    monkeypatch.setattr(screen, "kernels_for", lambda x, wanted: triton_similarity if x.shape[0] > 100 else None)


def some_graph(nodes=NODES, seed=0):
    """A random graph with a node that knows half of the others and one that knows all."""
    hub = torch.stack([torch.full((nodes // 2,), 7), torch.arange(nodes // 2) * 2])
    star = torch.stack([torch.full((nodes,), 20), torch.arange(nodes)])
    return PairGraph.build(torch.cat([random_edges(nodes, 3 * nodes, seed), hub, star], dim=1), nodes)


def halves(rows, width, seed=0):
    return normal(rows, width, seed=seed).half()


@pytest.mark.parametrize("width", [16, 48], ids=["whole", "wide"])
class TestKernels:
    @pytest.mark.parametrize(("tiles", "parts"), [(5, 1), (5, 3), (4, 2)])
    def test_lane_maxima(self, width, tiles, parts):
        rows, cols, slack = halves(128, width), halves(160, width, 1), normal(5, seed=2).float()
        found = lane_maxima(rows, cols, slack, tiles, parts)
        scores = rows.float() @ cols.float().T - slack.repeat_interleave(32)
        group, looked_at = group_of(torch.arange(160), tiles, parts)
        assert looked_at.view(5, 32).all(1).tolist() == [tile < tiles for tile in range(5)]
        expected = torch.full((128, parts * 8), -math.inf)
        for column in looked_at.nonzero().flatten().tolist():
            expected[:, group[column]] = expected[:, group[column]].maximum(scores[:, column])
        torch.testing.assert_close(found, expected)
        assert torch.isfinite(found).all()

    @pytest.mark.parametrize("capacity", [1000, 3])
    def test_lanes_above_for_each_row(self, width, capacity):
        rows, cols, slack = halves(128, width), halves(160, width, 1), normal(5, seed=2).float()
        floor = 4 * normal(128, seed=3).float() + 8
        floor[5], floor[6] = math.inf, -math.inf
        lanes, count = lanes_above(rows, cols, slack, floor, capacity, pairs=False)
        scores = rows.float() @ cols.float().T + slack.repeat_interleave(32)
        good = scores.view(128, 5, 4, 8).amax(dim=2).view(128, 40) >= floor[:, None]
        assert count.tolist() == good.sum(1).tolist()
        for row in range(128):
            expected = (row * 40 + good[row].nonzero().flatten()).tolist()
            kept = lanes[row, : min(int(count[row]), capacity)].tolist()
            assert set(kept) <= set(expected)
            assert len(set(kept)) == min(len(expected), capacity)

    def test_lanes_above_for_pairs(self, width, monkeypatch):
        monkeypatch.setattr(triton_similarity, "TILING", replace(triton_similarity.TILING, rows=64))
        x, slack = halves(192, width), normal(6, seed=2).float()
        lanes, count = lanes_above(x, x, slack, torch.full((192,), 9.0), 10**4, pairs=True)
        scores = (x.float() @ x.float().T + slack.repeat_interleave(32)).view(192, 6, 4, 8).amax(dim=2)
        scores[64:, :2], scores[128:, :4] = -math.inf, -math.inf  # tiles of columns before all rows of a program
        assert lanes[0, : int(count)].sort().values.tolist() == (scores.flatten() >= 9).nonzero().flatten().tolist()
        assert int(count) > 100

    def test_dots(self, width):
        x = normal(50, width, dtype=torch.float32)
        row, col = torch.tensor([0, 3, 49]), torch.tensor([7, 40, 1])
        expected = torch.full((3, 4), -math.inf)
        for place, (i, j) in enumerate(zip(row, col, strict=True)):
            for member in range(4):
                if j + 5 * member < 50:
                    expected[place, member] = (x[i].double() @ x[j + 5 * member].double()).float()
        assert dots(x, row, col, members=4, step=5).tolist() == expected.tolist()
        assert dots(x, row, col)[:, 0].tolist() == expected[:, 0].tolist()


def test_dots_of_nothing():
    none = torch.empty(0, dtype=torch.int64)
    assert dots(torch.ones(3, 2), none, none, members=4).shape == (0, 4)


def far_apart(nodes, magnitudes):
    """Nodes of all magnitudes, from 2⁰ down: at 2⁻¹⁴⁸ float32 has no digits left."""
    exponent = torch.randint(magnitudes, (nodes, 1), generator=torch.Generator().manual_seed(0))
    return (normal(nodes, 15) / 2.0 ** exponent.double()).float()


BOUNDED = {
    **FEATURES,
    "rounded up alike": lambda nodes: torch.full((nodes, 20), 1 + 2.0**-11 + 2.0**-16),
    "sum of many": lambda nodes: torch.ones(nodes, 700),
    "enormous": lambda nodes: 2.0**28 * normal(nodes, 5).float(),
    "minute": lambda nodes: 2.0**-49 * normal(nodes, 5).float(),
    "far apart": lambda nodes: far_apart(nodes, 148),
}


@pytest.mark.parametrize("kind", BOUNDED)
def test_the_bound_holds_and_is_of_use(kind):
    x = BOUNDED[kind](NODES)
    view = Screen.of(x, triton_similarity)
    assert view.x is x
    assert view.cols.abs().max() <= 1
    approximate = (view.rows[:NODES].float() @ view.cols[:NODES].float().T).double()
    wrong = (approximate - (x.double() @ x.double().T) / view.unit[:, None]).abs()
    assert (wrong <= view.slack).all()
    if kind != "far apart":
        # Rounding to 11 bits, twice, and the sum.
        length = view.cols[:NODES].double().norm(dim=1)
        assert (view.slack <= (2.0**-9.8 + (x.shape[1] + 40) * 2.0**-22) * length + 2.0**-22).all()
    assert torch.equal(view.tile_slack, F.pad(view.slack, (0, 10)).view(5, 32).amax(dim=1))


def test_features_that_16_bits_hold_have_almost_no_slack():
    x = torch.eye(16).repeat(3, 1) * torch.arange(1.0, 49)[:, None]
    view = Screen.of(x, triton_similarity)
    torch.testing.assert_close(view.slack, 24 * 2.0**-22 * torch.arange(1.0, 49) / 64, rtol=1e-3, atol=0)


def left_of(x, graph, per_node, start=0):
    found = torch.full((x.shape[0], per_node), -1)
    return found, screened.screened_nearest(x, graph, start, found)


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(("per_node", "slots"), [(1, 8), (4, 8), (4, 1)])
@pytest.mark.parametrize("kind", FEATURES)
def test_nearest_nodes_are_those_of_the_definition(kind, per_node, slots, monkeypatch):
    monkeypatch.setattr(screened, "SLOTS", slots)
    x, graph = FEATURES[kind](NODES), some_graph()
    expected = nearest_by_definition(x, graph, per_node)
    found, left = left_of(x, graph, per_node)
    fits_all = slots * (per_node + 2) >= 5 * 8  # the lanes of five tiles
    if fits_all or (slots == 8 and "zeros" not in kind):
        assert left.sum() == 1
    else:
        assert left.sum() > 1  # lists overflow
    assert torch.equal(found[~left], expected[~left])
    assert (found[left] == -1).all()
    assert left[20]  # it has no one left to choose
    if kind in EXACT_IN_ANY_ORDER:
        assert torch.equal(nearest(x, graph, [Block(0, NODES)], per_node), expected)


@pytest.mark.usefixtures("on_cpu")
def test_whole_tiles_and_columns_that_lie_one_after_the_other():
    x, graph = FEATURES["normal"](256).T.contiguous().T, some_graph(256)
    found, left = left_of(x, graph, 3)
    assert left.sum() == 1
    assert torch.equal(found[~left], nearest_by_definition(x, graph, 3)[~left])
    assert torch.equal(screened.screened_pairs(x, graph, 0, 90).pairs, pairs_by_definition(x, graph, 90))


@pytest.mark.usefixtures("on_cpu")
def test_zeros_that_fill_up_the_last_tile_are_no_nodes():
    x = -1 - torch.arange(NODES)[:, None] / 100
    x[9] = 1  # all others are less similar to it than nothing
    graph = PairGraph.build(random_edges(NODES, 3 * NODES), NODES)
    found, left = left_of(x, graph, 4)
    assert not left[9]
    assert torch.equal(found[~left], nearest_by_definition(x, graph, 4)[~left])


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("magnitudes", [60, 148])
def test_similarities_that_float32_cannot_tell_from_0_are_ties(magnitudes):
    x, graph = far_apart(NODES, magnitudes), some_graph()
    found, left = left_of(x, graph, 2)
    assert torch.equal(found[~left], nearest_by_definition(x, graph, 2)[~left])
    assert left.sum() == 1 or magnitudes > 60
    for quota in (5, 170):
        pairs = screened.screened_pairs(x, graph, 0, quota)
        assert torch.equal(pairs.pairs, pairs_by_definition(x, graph, quota))


@pytest.mark.usefixtures("on_cpu")
def test_memory_changes_nothing(monkeypatch):
    x, graph = FEATURES["normal"](NODES), some_graph()
    expected = nearest_by_definition(x, graph, 3)
    monkeypatch.setitem(similarity.MEMORY, "cpu", 2**17)
    found, left = left_of(x, graph, 3)
    assert torch.equal(found[~left], expected[~left])
    assert int(left.sum()) == 1
    assert torch.equal(screened.screened_pairs(x, graph, 0, 20).pairs, pairs_by_definition(x, graph, 20))
    monkeypatch.setitem(similarity.MEMORY, "cpu", 2**14)
    assert screened.screened_pairs(x, graph, 0, 20) is None


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("quota", [1, 170])
@pytest.mark.parametrize("kind", FEATURES)
def test_closest_pairs_are_those_of_the_definition(kind, quota):
    x, graph = FEATURES[kind](NODES), some_graph()
    found = screened.screened_pairs(x, graph, 0, quota)
    assert torch.equal(found.pairs, pairs_by_definition(x, graph, quota))
    assert (found.score.diff() <= 0).all()


@pytest.mark.usefixtures("on_cpu")
def test_too_many_equals_are_left_to_the_search_in_tiles(monkeypatch):
    monkeypatch.setitem(similarity.MEMORY, "cpu", 2**17)
    x, graph = FEATURES["zeros"](NODES), some_graph()
    assert screened.screened_pairs(x, graph, 0, 30) is None
    found = closest_pairs(x, graph, [Block(0, NODES)], torch.tensor([30]))
    assert torch.equal(found, pairs_by_definition(x, graph, 30))


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("sample", [1, 10, 100])
def test_an_unlucky_sample_finds_nothing_or_the_best(sample, monkeypatch):
    monkeypatch.setattr(screened, "SAMPLE", sample)
    x, graph = FEATURES["normal"](NODES), some_graph()
    for quota in (5, 170):
        found = screened.screened_pairs(x, graph, 0, quota)
        assert found is None or torch.equal(found.pairs, pairs_by_definition(x, graph, quota))


@pytest.mark.usefixtures("on_cpu")
def test_a_floor_that_is_too_high_finds_nothing(monkeypatch):
    monkeypatch.setattr(screened, "_floor_of_pairs", lambda view, edges, share: (0.6, 0.01))
    assert screened.screened_pairs(FEATURES["normal"](NODES), some_graph(), 0, 170) is None


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("strategy", [Local(3), Local(2, "dot"), Global(90), Global(60, "dot")], ids=str)
def test_strategies_find_the_same_in_a_batch(strategy, monkeypatch):
    monkeypatch.setattr(blocks, "SMALL", 100)
    sizes = (120, 30, 50, 150)
    parts = [Data(x=FEATURES["words"](nodes), edge_index=random_edges(nodes, 3 * nodes)) for nodes in sizes]
    batch = Batch.from_data_list(parts)
    assert [block.graph_of is None for block in blocks.blocks_of(batch)] == [True, False, True]
    found = strategy(batch.clone()).candidate_index
    monkeypatch.setattr(screen, "kernels_for", lambda x, wanted: None)
    assert torch.equal(found, strategy(batch).candidate_index)


def test_a_screen_is_for_large_graphs_on_a_gpu():
    assert screen.kernels_for(torch.zeros(screen.SMALLEST, 1), 1) is None
    large = type("", (), {"is_cuda": True, "shape": (100_000, 1)})
    small = type("", (), {"is_cuda": True, "shape": (10_000, 1)})
    assert screen.kernels_for(large, 5) is triton_similarity
    assert screen.kernels_for(large, 500) is None
    assert screen.kernels_for(small, 5) is None
