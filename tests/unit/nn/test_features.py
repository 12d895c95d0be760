"""What a model is called with: PyG's own calls mean what they mean there, and what does not fit is one sentence."""

import math

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import SparseFeatures, as_features
from gumbel_mpnn.nn.features import LARGE, SPARSE_BELOW, Standardize, column_statistics, features_of
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import changed, edges, normal, small_data


def with_nonzeros(count):
    x = torch.zeros(4, 10, dtype=torch.float64)
    x.view(-1)[torch.arange(count) * 40 // max(count, 1)] = torch.arange(1.0, count + 1, dtype=torch.float64)
    return x


@pytest.mark.parametrize(("nonzeros", "sparse"), [(0, True), (1, True), (9, True), (10, False), (40, False)])
def test_features_are_sparse_below_a_quarter(nonzeros, sparse):
    assert SPARSE_BELOW["cpu"] == 0.25
    x = with_nonzeros(nonzeros)
    features = as_features(x)
    assert isinstance(features, SparseFeatures) == sparse
    if not sparse:
        assert features is x


@pytest.mark.parametrize("nonzeros", [0, 3, 40])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_become_what_dense_ones_do(nonzeros, layout):
    x = with_nonzeros(nonzeros)
    expected, features = as_features(x), as_features(x.to_sparse(layout=layout))
    assert isinstance(features, SparseFeatures) == isinstance(expected, SparseFeatures)
    if isinstance(features, SparseFeatures):
        assert features.shape == expected.shape
        assert torch.equal(features.layout.rowptr, expected.layout.rowptr)
        assert torch.equal(features.layout.col, expected.layout.col)
        assert torch.equal(features.values, expected.values)
    else:
        assert torch.equal(features, expected)


X = torch.tensor([[1.0, 7.0, 0.1], [3.0, 7.0, 0.1], [5.0, 1.0, 0.1], [100.0, 9.0, 4.0]])
MASK = torch.tensor([[True, True, True, False], [True, True, False, False]])


def test_statistics_worked_by_hand():
    mean, scale = column_statistics(X[:3])
    # (1, 3, 5): mean 3, variance (4 + 0 + 4) / 3. (7, 7, 1): mean 5, variance (4 + 4 + 16) / 3. The third is constant.
    torch.testing.assert_close(mean, torch.tensor([3.0, 5.0, X[0, 2].double()], dtype=torch.float64))
    torch.testing.assert_close(scale, torch.tensor([math.sqrt(8 / 3), math.sqrt(8), 1.0], dtype=torch.float64))


def test_each_replica_has_the_statistics_of_its_training_nodes():
    standardize = Standardize(2, 3)
    standardize.fit(X, MASK)
    out = standardize(X)
    assert (out.shape, out.dtype) == ((2, 4, 3), torch.float32)
    # In the second replica, the first column has mean 2 and deviation 1; the second is constant and only centered.
    torch.testing.assert_close(out[1, :, :2], torch.tensor([[-1.0, 0.0], [1.0, 0.0], [3.0, -6.0], [98.0, 2.0]]))
    assert out[:, :3, 2].abs().max() == 0  # exactly, though 0.1 is not a binary number
    torch.testing.assert_close(out[0, :3].mean(0), torch.zeros(3))


DATA = small_data()
PATH = edges((0, 1), (1, 0), (1, 2), (2, 1))
WEIGHTS = torch.tensor([0.1, 0.1, 0.9, 0.9])


def model(kind=gm.GCN, in_channels=6, **options):
    return kind(in_channels=in_channels, out_channels=3, **{"hidden_channels": 8, "seeds": [0], **options}).eval()


def one_layer_of_pyg(x, edge_index, edge_weight, mine):
    """`mine`, a GCN of one layer, by PyG's own layer."""
    theirs = GCNConv(x.shape[1], 8)
    with torch.no_grad():
        theirs.lin.weight.copy_(mine.convs[0].linear.weight[0].T)
        theirs.bias.copy_(mine.convs[0].bias[0, 0])
    hidden = theirs(x, edge_index, edge_weight).relu()
    return hidden @ mine.head.weight[0] + mine.head.bias[0]


def test_weights_beside_an_edge_index_are_those_of_its_edges():
    mine, x = model(num_layers=1), normal(3, 6).float()
    out = mine(x, PATH, WEIGHTS)
    assert torch.equal(out, mine(x, PairGraph.build(PATH, 3, edge_weight=WEIGHTS)))
    torch.testing.assert_close(out, one_layer_of_pyg(x, PATH, WEIGHTS, mine))
    assert not torch.allclose(out, mine(x, PATH))


@pytest.mark.parametrize("kind", [gm.GCN, gm.GraphSAGE, gm.GAT])
def test_the_gradient_reaches_the_weights_of_listed_edges_in_every_step(kind):
    mine, x = model(kind), normal(3, 6).float()
    listed = torch.cat([PATH, edges((2, 2), (0, 1))], dim=1)
    weight = torch.tensor([0.5, 0.25, 0.75, 1.0, 9.0, 0.75], requires_grad=True)
    pairs = torch.tensor([0.5, 0.875], requires_grad=True)
    mine(x, PairGraph.build(PATH, 3), pairs).square().sum().backward()
    for _ in range(2):
        weight.grad = None
        mine(x, listed, weight).square().sum().backward()
        share = pairs.grad / torch.tensor([3.0, 2.0])
        expected = [share[0], share[0], share[1], share[1], torch.tensor(0.0), share[0]]
        torch.testing.assert_close(weight.grad, torch.stack(expected))


@pytest.mark.parametrize("ways", ["edge_index", "data"])
def test_learned_weights_do_not_lay_the_graph_out_again(ways, monkeypatch):
    mine, x, edge_index = model(), normal(3, 6).float(), PATH.clone()
    calls = []
    lay_out = PairGraph._lay_out.__func__
    monkeypatch.setattr(PairGraph, "_lay_out", classmethod(lambda *given: calls.append(1) or lay_out(*given)))
    for step in range(3):
        weight = (WEIGHTS + step).requires_grad_()
        out = mine(x, edge_index, weight) if ways == "edge_index" else mine(Data(x, edge_index, edge_weight=weight))
        torch.testing.assert_close(out, mine(x, PATH.clone(), weight.detach()))
        out.sum().backward()
        assert weight.grad.abs().sum() > 0
    assert len(calls) == 1 + 3  # once for `edge_index`, and for each of the clones


@pytest.mark.parametrize(
    ("graph", "weight", "message"),
    [
        (PATH, torch.ones(2), r"edge_weight must have shape \[4\], not \[2\]"),
        (PATH, torch.ones(5), r"edge_weight must have shape \[4\], not \[5\]"),
        (PATH, torch.ones(2, 4), r"edge_weight must have shape \[4\], not \[2, 4\]"),
        (PairGraph.build(PATH, 3), torch.ones(4), r"shape \[2\] or \[R, 2\], not \[4\]"),
        (PairGraph.build(PATH, 3), torch.ones(1), r"shape \[2\] or \[R, 2\], not \[1\]"),
        (PairGraph.build(PATH, 3), torch.ones(()), r"shape \[2\] or \[R, 2\], not \[\]"),
        (PATH, -WEIGHTS, r"the weight of edge 0 is negative \(-0.1\)"),
        (PATH, (-WEIGHTS).requires_grad_(), r"the weight of edge 0 is negative \(-0.1\)"),
        ([[0, 1], [1, 0]], None, "a PairGraph or an edge_index .*, not a list"),
        (torch.eye(3), None, r"edge_index must be integers of shape \[2, E\]"),
    ],
)
def test_graphs_and_weights_that_do_not_fit(graph, weight, message):
    graph = graph.clone() if isinstance(graph, torch.Tensor) else graph
    with pytest.raises(UserError, match=message):
        model()(normal(3, 6).float(), graph, weight)


@pytest.mark.parametrize("kind", [gm.GCN, gm.MLP, gm.GraphSAGE, gm.GAT, gm.baselines.DropEdge])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None, "num_nodes": 24}, "this graph has no features: give it data.x"),
        ({"x": DATA.x.long()}, r"the features are torch.int64 .*: give x.to\(torch.float32\)"),
        ({"x": DATA.x > 0}, "the features are torch.bool"),
        ({"x": DATA.x.double()}, "the features are torch.float64"),
        ({"x": DATA.x[:, :4]}, r"the features must have the shape \[N, 6\] for this model, not \[24, 4\]"),
        ({"x": DATA.x[:, 0]}, r"the features must have the shape \[N, 6\] for this model, not \[24\]"),
        ({"x": DATA.x.numpy()}, r"features are a tensor \[N, 6\] or a Data, not a ndarray"),
        ({"num_nodes": 25}, "there are features for 24 nodes, but the graph has 25"),
        ({"edge_index": None}, "this graph has no edge_index: give it data.edge_index"),
        ({"edge_index": None, "adj_t": torch.eye(24).to_sparse()}, r"no edge_index \(adj_t is not read\)"),
    ],
)
def test_data_that_do_not_fit(kind, change, message):
    with pytest.raises(UserError, match=message):
        model(kind).train()(changed(DATA, **change))


@pytest.mark.parametrize("kind", [gm.MLP, gm.GCN, gm.GraphSAGE, gm.GAT, gm.baselines.DropEdge, gm.GumbelMPNN])
@pytest.mark.parametrize("training", [False, True])
def test_every_model_takes_the_call_and_the_keywords_of_pyg(kind, training):
    x, weighted = normal(3, 6).float(), PairGraph.build(PATH, 3, edge_weight=WEIGHTS)
    made = [model(kind, seeds=[0]).train(training) for _ in range(3)]
    by_place = made[0](x, PATH, WEIGHTS)
    assert torch.equal(made[1](x=x, edge_index=PATH, edge_weight=WEIGHTS), by_place)
    assert torch.equal(made[2](x, weighted), by_place)


@pytest.mark.parametrize("convert", [lambda tensor: tensor.numpy(), lambda tensor: tensor.tolist()])
@pytest.mark.parametrize("name", ["edge_index", "edge_weight", "candidate_index", "y", "train_mask"])
def test_arrays_and_lists_in_a_graph_are_refused_by_name(name, convert):
    """The fault: an AttributeError of numpy.ndarray."""
    data = changed(small_data(), train_mask=small_data().train_mask[:, 0], edge_weight=torch.ones(72))
    data.candidate_index = torch.tensor([[0], [5]])
    wrong = changed(data, **{name: convert(data[name])})
    model = gm.GumbelMPNN(in_channels=6, out_channels=3, hidden_channels=4)
    with pytest.raises(DataError, match=rf"data\.{name} must be a tensor, not a (list|ndarray): convert it"):
        model.auxiliary_loss(wrong) + model(wrong).sum()


class TestLargeSparseFeatures:
    """Features of a `Data` that are large and mostly 0 are converted once, and mean the same."""

    def graph(self, share=0.1):
        data = small_data(nodes=1024, features=LARGE // 1024)
        data.x = data.x * (normal(*data.x.shape, seed=1).abs() < share)
        return data

    def test_they_are_converted_once_and_again_if_they_change(self):
        data = self.graph()
        first = features_of(data, data.num_features, torch.float32)
        assert isinstance(first, SparseFeatures)
        assert features_of(data, data.num_features, torch.float32) is first
        data.x[0, 0] = 7.0
        changed = features_of(data, data.num_features, torch.float32)
        assert changed.values[0] == 7.0
        assert isinstance(features_of(self.graph(share=9), data.num_features, torch.float32), torch.Tensor)

    @pytest.mark.parametrize("kind", [gm.GCN, gm.MLP, gm.GumbelMPNN])
    def test_logits_are_those_of_dense_features(self, kind):
        data = self.graph()
        net = model(kind, in_channels=data.num_features)
        torch.testing.assert_close(net(data), net(data.x, PairGraph.of(data)), rtol=1e-4, atol=1e-5)

    def test_features_with_a_gradient_stay_dense(self):
        data = self.graph()
        data.x.requires_grad_()
        model(in_channels=data.num_features)(data).sum().backward()
        assert data.x.grad is not None

    def test_a_model_of_ones_own_gets_a_tensor(self):
        data, seen = self.graph(), []

        class Own(torch.nn.Module):
            def forward(self, x, edge_index, edge_weight):
                seen.append(x)
                return x[:, :3]

        gm.Rewired(Own(), data.num_features, out_channels=3).eval()(data)
        assert seen[0] is data.x
