"""The search behind local and global candidates: embeddings, order, memory, precision, devices."""

import math
import sys

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.candidates import Global, Local, search, with_candidates
from gumbel_mpnn.candidates.search import closest_pairs, embeddings, full_precision, nearest, rank_of, sortable
from gumbel_mpnn.graph import PairGraph, contains, ordered, pair_key
from gumbel_mpnn.settings import RewiringSettings
from gumbel_mpnn.util.errors import UserError
from helpers import LargestOutput, edges, normal, random_edges

STRATEGIES = [Local(), Local(similarity="dot"), Local(per_node=40), Global(), Global(pairs=700, similarity="dot")]


def some_graph(nodes=300, **changes):
    """A graph whose similarities, dot and cosine, float32 holds exactly, with many ties: four of 16 features are ±1."""
    chosen = normal(nodes, 16).argsort(dim=1)[:, :4]
    x = torch.zeros(nodes, 16).scatter_(1, chosen, normal(nodes, 4, seed=1, dtype=torch.float32).sign())
    return Data(**{"x": x, "edge_index": random_edges(nodes, 3 * nodes), **changes})


def test_cosine_embeddings_have_length_one_and_zero_stays_zero():
    x = torch.tensor([[3.0, 4], [0, 0], [-2, 0], [1e-30, 0], [3e38, 3e38]])
    half = math.sqrt(0.5)
    expected = torch.tensor([[0.6, 0.8], [0, 0], [-1, 0], [1, 0], [half, half]])
    torch.testing.assert_close(embeddings(Data(x=x), "x", "cosine"), expected)
    torch.testing.assert_close(embeddings(Data(x=x.double() * 1e200), "x", "cosine"), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", ["smallest_normal", 1.0, "max"])
def test_dot_products_neither_overflow_nor_vanish(dtype, scale):
    scale = getattr(torch.finfo(dtype), scale) if isinstance(scale, str) else scale
    x = torch.tensor([[1.0, 0.5], [-1, 0.25], [0, 0]], dtype=torch.float64) * scale
    out = embeddings(Data(x=x.to(dtype)), "x", "dot")
    assert out.dtype == torch.float32
    products = out @ out.T
    assert torch.isfinite(products).all()
    torch.testing.assert_close(
        products / products.max(), torch.tensor([[1.25, -0.875, 0], [-0.875, 1.0625, 0], [0, 0, 0]]) / 1.25
    )


@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_any_numbers_will_do(kind):
    for x in (
        torch.tensor([[1, 0], [2, 0]]),
        torch.ones(2, 2).bool(),
        torch.ones(2, 2).to_sparse(),
        torch.eye(2).half(),
    ):
        out = embeddings(Data(x=x), "x", kind)
        assert (out.dtype, out.shape) == (torch.float32, (2, 2))


@pytest.mark.parametrize(
    "x",
    [torch.empty(4, 0), torch.zeros(4, 2), torch.eye(4), torch.eye(4).to_sparse()],
    ids=["none", "zeros", "identity", "sparse identity"],
)
@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_a_similarity_of_zero_proposes_nothing(x, kind):
    data = Data(x=x, edge_index=edges((0, 1)))
    assert Local(per_node=1, similarity=kind)(data).candidate_index.shape == (2, 0)
    assert Global(pairs=3, similarity=kind)(data).candidate_index.shape == (2, 0)


def test_keys_are_in_the_order_of_scores_then_of_ranks():
    scores = torch.tensor([-math.inf, -3e38, -1.5, -1e-40, -0.0, 0.0, 1e-40, 1.5, 3e38])
    key = sortable(scores, torch.tensor([9, 0, 5, 2**31 - 1, 3, 3, 2**31 - 1, 0, 1]))
    assert key[4] == key[5]
    assert (key.unique() == torch.cat([key[:4], key[5:]])).all()
    assert rank_of(key).tolist() == [9, 0, 5, 2**31 - 1, 3, 3, 2**31 - 1, 0, 1]
    assert (key > 0).tolist() == [False] * 6 + [True] * 3
    same = sortable(torch.full((3,), -2.0), torch.tensor([0, 1, 2**31 - 1]))
    assert (same.diff() < 0).all()


@pytest.mark.parametrize("per_node", [1, 4, 30])
@pytest.mark.parametrize("nodes", [31, 200, 1100])
def test_ties_go_to_the_numbers_that_follow(nodes, per_node):
    graph = PairGraph.build(edges((3, 4), (nodes - 1, 0)), nodes)
    found = nearest(torch.ones(nodes, 2), graph, [(0, nodes)], per_node).tolist()
    for node in (0, 3, 17, nodes - 2, nodes - 1):
        neighbors = {3: 4, 4: 3, 0: nodes - 1, nodes - 1: 0}
        around = [(node + step) % nodes for step in range(1, nodes)]
        expected = [other for other in around if other != neighbors.get(node)][:per_node]
        assert found[node] == expected + [-1] * (len(found[node]) - len(expected))


def test_equal_features_are_no_trouble_for_the_pairs_either(monkeypatch):
    monkeypatch.setitem(search.MEMORY, "cpu", 64 * 16**2)
    first, second = ordered(closest_pairs(torch.ones(100, 2), torch.tensor([1]), (0, 100), 150))  # the edge 0 – 1
    assert (second - first).bincount().tolist() == [0, 98, 52]
    assert first[second - first == 2].tolist() == list(range(52))


@pytest.mark.parametrize("strategy", [Local(), Global(pairs=500)], ids=str)
def test_no_array_is_as_large_as_the_budget_is_small(strategy, monkeypatch):
    monkeypatch.setitem(search.MEMORY, "cpu", 100_000)
    data = some_graph(nodes=1000)
    with LargestOutput() as largest:
        strategy(data)
    assert largest.elements <= 25_000  # of a million pairs


def precision_switches():
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = "refused"
    return older, torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision


@pytest.mark.parametrize("chosen", ["", "older switch", "newer switch"])
def test_the_search_is_precise_and_leaves_the_switches_as_they_were(chosen):
    at_first = precision_switches()[1:]
    try:
        if chosen == "older switch":
            torch.set_float32_matmul_precision("medium")
        elif chosen == "newer switch":
            torch.backends.cuda.matmul.fp32_precision = "tf32"
        before = precision_switches()
        with full_precision():
            assert precision_switches()[1:] == ("ieee", "ieee")
        assert precision_switches() == before
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = at_first


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_a_gpu_finds_the_same(strategy):
    data = some_graph(nodes=3000)
    found = strategy(data.clone().to("cuda")).candidate_index
    assert found.is_cuda
    assert torch.equal(found.cpu(), strategy(data).candidate_index)


class TestApproximateSearch:
    def around_centers(self, nodes):
        """Normal features around twenty centers, and edges along the numbers of the nodes."""
        generator = torch.Generator().manual_seed(0)
        centers = torch.randn(20, 16, generator=generator)
        x = centers[torch.randint(20, (nodes,), generator=generator)] + torch.randn(nodes, 16, generator=generator)
        near = torch.randint(1, 6, (2 * nodes,), generator=generator)
        first = torch.randint(nodes - 6, (2 * nodes,), generator=generator)
        return Data(x=x, edge_index=torch.stack([first, first + near]))

    def similarity(self, data):
        first, second = torch.nn.functional.normalize(data.x, dim=1)[data.candidate_index]
        return (first * second).sum(-1)

    @pytest.mark.slow  # pynndescent compiles its functions
    def test_nearly_all_candidates_of_the_exact_search_are_found(self):
        data, threads = self.around_centers(900), torch.get_num_threads()
        exact, found, again = Local()(data), *(Local(search="approximate")(data) for _ in range(2))
        keys, expected = (pair_key(each.candidate_index, 900) for each in (found, exact))
        assert contains(keys, expected).float().mean() > 0.95
        assert not contains(pair_key(PairGraph.of(data).pair_index, 900), keys).any()
        assert torch.equal(found.candidate_index, again.candidate_index)
        assert torch.get_num_threads() == threads  # numba would have set it to all cores

    @pytest.mark.slow  # pynndescent compiles its functions
    def test_sparse_features(self):
        data = self.around_centers(900)
        words = torch.randint(300, (900, 8), generator=torch.Generator().manual_seed(0))
        data.x = torch.zeros(900, 300).scatter_(1, words // 4 * 4, 1.0)
        exact, found = Local(2)(data), Local(2, search="approximate")(data)
        # Many nodes are equally similar, and any of them will do.
        assert self.similarity(found).mean() > 0.97 * self.similarity(exact).mean()

    def test_when_it_is_chosen(self, monkeypatch):
        monkeypatch.setattr("gumbel_mpnn.candidates.strategies.EXACT_UP_TO", 600)
        monkeypatch.setitem(sys.modules, "pynndescent", None)
        data, small = self.around_centers(700), self.around_centers(400)
        assert Local(search="approximate")(small).candidate_index.numel()
        data.batch = torch.zeros(700)
        assert Local(search="approximate")(data).candidate_index.numel()
        del data.batch
        assert with_candidates(data, RewiringSettings(), partitions=1).candidate_index.numel()
        with pytest.raises(UserError, match="needs the package pynndescent: pip install 'gumbel-mpnn\\[scale\\]', or"):
            with_candidates(data, RewiringSettings(), partitions=2)
