"""The literal edge model: the form by hand, dense and sparse features, blocks of columns, ranks and its start."""

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import ReplicaRNG, SparseFeatures
from gumbel_mpnn.nn.features import as_features
from gumbel_mpnn.rewiring.edge_models import NodeView, literal, scorers
from helpers import edges, normal, random_edges, randomized
from quick_fit import resolved

NODES, FEATURES = 12, 7


def scorer_of(features=FEATURES, replicas=2, **options):
    return scorers["literal"](replicas, features, 3, 64, **options)


def view(x, graph):
    return NodeView(x, torch.empty(2, graph.num_nodes, 0), graph.is_original.float())


def few_words():
    """Features with few entries that are not 0, none of which is 1."""
    return normal(NODES, FEATURES) * (normal(NODES, FEATURES, seed=1) > 1.2)


def graph_of(undirected):
    return PairGraph.build(random_edges(NODES, 40), NODES, undirected=undirected)


def with_gradients(scorer, nodes, graph):
    """θ [R, P], and the gradients of a weighted sum of them."""
    theta = scorer(nodes, graph)
    pulled = torch.autograd.grad((theta * normal(*theta.shape, seed=5)).sum(), list(scorer.parameters()))
    return [theta, *pulled]


@pytest.mark.parametrize(("undirected", "expected"), [(False, [[27.5, 51.5]]), (True, [[39.5]])])
def test_the_form_by_hand(undirected, expected):
    scorer = scorer_of(2, replicas=1)
    with torch.no_grad():
        scorer.factors[0].copy_(torch.tensor([[[1.0, 2.0], [4.0, 8.0]]]))
        scorer.bias.fill_(0.5)
    x = torch.tensor([[3.0, 0.0], [1.0, 4.0]])
    graph = PairGraph.build(edges((0, 1), (1, 0)), 2, undirected=undirected)
    # (3, 0) W = (3, 6), and (3, 6) · (1, 4) = 27; (1, 4) W = (17, 34), and (17, 34) · (3, 0) = 51
    assert scorer(view(x, graph), graph).tolist() == expected


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("undirected", [True, False])
def test_values_are_those_of_the_matrix(rank, undirected):
    scorer, graph, x = randomized(scorer_of(rank=rank)), graph_of(undirected), few_words()
    matrix = scorer.factors[0] @ scorer.factors[1].transpose(1, 2) if rank else scorer.factors[0]
    matrix = (matrix + matrix.transpose(1, 2)) / 2 if undirected else matrix
    source, target = graph.pair_index
    expected = (x @ matrix @ x.T)[:, source, target] + scorer.bias
    torch.testing.assert_close(scorer(view(x, graph), graph), expected)


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("at_once", [1, 3 * NODES, 100 * NODES])
def test_sparse_features_and_blocks_give_the_same_values_and_gradients(rank, undirected, at_once, monkeypatch):
    scorer, graph, x = randomized(scorer_of(rank=rank)), graph_of(undirected), few_words()
    expected = with_gradients(scorer, view(x, graph), graph)
    sparse = as_features(x)
    assert isinstance(sparse, SparseFeatures)
    monkeypatch.setattr(literal, "NUMBERS_AT_ONCE", at_once)
    fresh = PairGraph.build(graph.pair_index, NODES, undirected=undirected)
    for features in (x, sparse):
        for found, wanted in zip(with_gradients(scorer, view(features, fresh), fresh), expected, strict=True):
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("at_once", "widths"), [(1, [1] * 7), (3 * NODES, [3, 3, 1]), (10**6, [7])])
def test_blocks_together_are_the_features(at_once, widths, monkeypatch):
    monkeypatch.setattr(literal, "NUMBERS_AT_ONCE", at_once)
    x = few_words()
    for features in (x, as_features(x)):
        blocks = literal.Columns.of(features)
        assert blocks.widths == widths
        assert torch.equal(torch.cat([blocks[k] for k in range(len(widths))], dim=1), x)


def test_it_starts_as_torchs_bilinear():
    count = 100
    scorer, bound = scorer_of(count, replicas=3), 0.1
    scorer.init_parameters(ReplicaRNG([0, 1, 2], "test"))
    torchs = torch.nn.Bilinear(count, count, 1)
    for ours, theirs in ((scorer.factors[0], torchs.weight), (scorer.bias, torchs.bias)):
        assert float(theirs.detach().abs().max()) <= bound
        assert float(ours.detach().abs().max()) <= bound
    for matrix in scorer.factors[0].detach():
        assert float(matrix.std()) == pytest.approx(float(torchs.weight.detach().std()), rel=0.02)
        assert float(matrix.abs().max()) > 0.99 * bound
    assert not torch.equal(scorer.factors[0][0], scorer.factors[0][1])
    alone = scorer_of(count, replicas=1)
    alone.init_parameters(ReplicaRNG([1], "test"))
    assert torch.equal(alone.factors[0][0], scorer.factors[0][1])


@pytest.mark.parametrize("rank", [1, 8, 64])
def test_factors_start_with_a_product_of_the_same_scale(rank):
    count = 300
    scorer = scorer_of(count, replicas=1, rank=rank)
    scorer.init_parameters(ReplicaRNG([0], "test"))
    product = (scorer.factors[0] @ scorer.factors[1].transpose(1, 2)).detach()
    assert float(product.square().mean()) == pytest.approx(1 / (3 * count), rel=0.15)


def test_a_negative_rank_is_refused():
    with pytest.raises(UserError, match=r"rank of the matrix must be 0 \(full\) or more, but is -1"):
        scorer_of(rank=-1)


def test_the_rank_is_an_option_of_the_settings():
    data = Data(name="own", x=torch.rand(4, 2))
    given = ["rewiring.scorer=literal", "rewiring.scorer.rank=2"]
    settings = resolved(data, "gumbel-mpnn", preset=None, overrides=given).rewiring
    assert settings.options == {"scorer.rank": 2}
    model = gm.GumbelMPNN(5, out_channels=2, rewiring=settings)
    assert [tuple(factor.shape) for factor in model.rewirer.scorer.factors] == [(1, 5, 2), (1, 5, 2)]
