"""The search for similar nodes on a CUDA device: tensor cores within their bound, results by the definition."""

import pytest
import torch
import torch.nn.functional as F

from gumbel_mpnn.candidates import screen, screened
from gumbel_mpnn.candidates.blocks import Block
from gumbel_mpnn.candidates.closest_pairs import closest_pairs
from gumbel_mpnn.candidates.nearest import nearest
from gumbel_mpnn.candidates.screen import Screen
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.graph.kernels import import_kernels
from helpers import normal, random_edges
from similar_nodes import FEATURES, nearest_by_definition, pairs_by_definition

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]
NODES = 17_000
EXACT_IN_ANY_ORDER = ("words", "duplicates", "zeros")


def on_gpu(edge_index, nodes):
    return PairGraph.build(edge_index.cuda(), nodes)


def some_graph(nodes=NODES):
    """A random graph with a node that knows half of the others and one that knows all."""
    hub = torch.stack([torch.full((nodes // 2,), 7), torch.arange(nodes // 2) * 2])
    star = torch.stack([torch.full((nodes,), 20), torch.arange(nodes)])
    return on_gpu(torch.cat([random_edges(nodes, 7 * nodes), hub, star], dim=1), nodes)


def tensor_core_scores(view, kernels, monkeypatch):
    """The scores of the first tile's columns with all rows, one by one: every lane has a single column."""
    monkeypatch.setattr(kernels, "TILING", kernels.Tiling(lanes=kernels.TILING.cols))
    return kernels.lane_maxima(view.rows, view.cols, torch.zeros_like(view.tile_slack), 1, 1)


HARD = {
    "normal": lambda: normal(1000, 128).float(),
    "all alike": lambda: torch.full((1000, 128), 1 + 2.0**-11 + 2.0**-16),
    "many ones": lambda: torch.ones(1000, 700),
    "one large, many small": lambda: F.pad(torch.full((1000, 2047), 2.0**-11), (1, 0), value=1.0),
    "cancelling": lambda: torch.cat(
        [normal(1000, 64), normal(1000, 64) * torch.tensor([1.0, -1]).repeat(32)], 1
    ).float(),
    "spread": lambda: (normal(1000, 300) * torch.logspace(-6, 0, 300)).float(),
    "subnormal halves": lambda: (normal(1000, 100) * torch.logspace(-9, 0, 1000)[:, None]).float(),
}


@pytest.mark.parametrize("kind", HARD)
def test_tensor_cores_are_within_the_bound(kind, monkeypatch):
    x = HARD[kind]().cuda()
    kernels = import_kernels(screen.KERNELS)
    view = Screen.of(x, kernels)
    found = tensor_core_scores(view, kernels, monkeypatch)[:1000, :128].double()
    exact = x.double() @ x[:128].double().T / view.unit[:, None]
    assert ((found - exact).abs() <= view.slack[:128]).all()
    halves = view.rows[:1000].double() @ view.cols[:128].double().T
    summing = 2 * view.rows.shape[1] * 2.0**-23 * view.rows[:1000].double().norm(dim=1)[:, None]
    assert ((found - halves).abs() <= summing * view.cols[:128].double().norm(dim=1)).all()


@pytest.mark.parametrize("width", [5, 128, 300])
def test_kernels_against_dense_products(width):
    kernels = import_kernels(screen.KERNELS)
    nodes = 1100
    view = Screen.of(normal(nodes, width).float().cuda(), kernels)
    tiling, tiles = kernels.TILING, view.tile_slack.numel()
    scores = view.rows.float() @ view.cols.float().T
    looked = tiles - 1
    best = kernels.lane_maxima(view.rows, view.cols, view.tile_slack, looked, 3)
    group, looked_at = kernels.group_of(torch.arange(scores.shape[1], device="cuda"), looked, 3)
    lower = scores - view.tile_slack.repeat_interleave(tiling.cols)
    expected = torch.full_like(best, -torch.inf)
    expected.scatter_reduce_(1, group[looked_at].expand(len(best), -1), lower[:, looked_at], "amax")
    torch.testing.assert_close(best, expected, rtol=1e-4, atol=1e-4)

    upper = (scores + view.tile_slack.repeat_interleave(tiling.cols)).view(-1, tiles, tiling.members, tiling.lanes)
    upper = upper.amax(dim=2).flatten(1)
    floor = upper.topk(6, dim=1).values[:, -1] - 1e-4
    lanes, count = kernels.lanes_above(view.rows, view.cols, view.tile_slack, floor, 50, pairs=False)
    assert (count >= 6).all()
    assert ((upper >= floor[:, None] + 2e-4).sum(1) <= count).all()
    assert (count <= (upper >= floor[:, None] - 2e-4).sum(1)).all()
    listed = lanes[torch.arange(50, device="cuda") < count[:, None]]
    assert listed.unique().numel() == listed.numel()
    row, place = listed // upper.shape[1], listed % upper.shape[1]
    assert (upper[row, place] >= floor[row] - 2e-4).all()


@pytest.mark.parametrize("per_node", [1, 5, 12])
@pytest.mark.parametrize("kind", FEATURES)
def test_nearest_nodes_are_those_of_the_definition(kind, per_node):
    x, graph = FEATURES[kind](NODES).cuda(), some_graph()
    expected = nearest_by_definition(x, graph, per_node)
    found = torch.full_like(expected, -1)
    left = screened.screened_nearest(x, graph, 0, found)
    assert torch.equal(found[~left], expected[~left])
    assert (found[left] == -1).all()
    if kind in ("normal", "outlier"):
        assert int(left.sum()) <= NODES // 100
    if kind in EXACT_IN_ANY_ORDER:
        assert torch.equal(nearest(x, graph, [Block(0, NODES)], per_node), expected)


@pytest.mark.parametrize("quota", [1, 1000, 300_000])
@pytest.mark.parametrize("kind", FEATURES)
def test_closest_pairs_are_those_of_the_definition(kind, quota):
    x, graph = FEATURES[kind](NODES).cuda(), some_graph()
    expected = pairs_by_definition(x, graph, quota)
    found = screened.screened_pairs(x, graph, 0, quota)
    assert found is not None or kind not in ("normal", "outlier")
    if found is not None:
        assert torch.equal(found.pairs, expected)
    if kind in EXACT_IN_ANY_ORDER:
        assert torch.equal(closest_pairs(x, graph, [Block(0, NODES)], torch.tensor([quota])), expected)


class TestTheSizeOfOgbnArxiv:
    """169,343 nodes and 128 features, five of each node."""

    nodes = 169_343

    @pytest.fixture
    def graph(self):
        return on_gpu(random_edges(self.nodes, 7 * self.nodes), self.nodes)

    @pytest.fixture
    def x(self):
        return F.normalize(normal(self.nodes, 128).float(), dim=1).cuda()

    def extra_gib(self, search):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        out = search()
        return out, (torch.cuda.max_memory_allocated() - before) / 2**30

    def test_nearest_nodes(self, x, graph):
        found = torch.full((self.nodes, 5), -1, device="cuda")
        left, extra = self.extra_gib(lambda: screened.screened_nearest(x, graph, 0, found))
        assert extra < 2
        assert int(left.sum()) <= self.nodes // 1000
        some = torch.arange(0, self.nodes, 97, device="cuda")
        scores = (x[some].double() @ x.double().T).float()
        scores[torch.arange(some.numel(), device="cuda"), some] = -torch.inf
        near = torch.isin(graph.arcs.row.long(), some)
        row, col = graph.arcs.row.long()[near], graph.arcs.col.long()[near]
        scores[torch.searchsorted(some, row), col] = -torch.inf
        expected = scores.topk(5, dim=1)
        done = ~left[some]
        assert torch.equal(scores.gather(1, found[some].clamp(min=0))[done], expected.values[done])

    @pytest.mark.parametrize("per_edge", [0.7, 2])
    def test_closest_pairs(self, x, graph, per_edge, monkeypatch):
        quota = int(per_edge * graph.num_pairs)
        found, extra = self.extra_gib(lambda: screened.screened_pairs(x, graph, 0, quota))
        assert extra < 2
        monkeypatch.setattr(screen, "kernels_for", lambda x, wanted: None)
        plain = closest_pairs(x, graph, [Block(0, self.nodes)], torch.tensor([quota]))
        mine, others = (pairs[0] * self.nodes + pairs[1] for pairs in (found.pairs, plain))
        # Sums in 32 and in 64 bits may order the last ones differently.
        only = torch.cat([mine[~torch.isin(mine, others)], others[~torch.isin(others, mine)]])
        assert only.numel() <= quota // 1000
        compared = torch.cat([only, mine[-1:]])
        scores = (x[compared // self.nodes] * x[compared % self.nodes]).double().sum(1)
        assert ((scores - scores[-1]).abs() < 1e-6).all()
