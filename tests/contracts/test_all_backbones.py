"""What every registered model keeps to; a new one is tested by being registered."""

from itertools import product

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.utils import coalesce, remove_self_loops

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import SparseFeatures, as_features, backbones
from helpers import (
    both_ways,
    edges,
    normal,
    positive,
    random_edges,
    randomized,
)

NODES, FEATURES, CLASSES, WIDTH = 9, 5, 3, 8
EDGES = random_edges(NODES, 16)
NAMES = list(backbones)
KINDS = [(name, {}) for name in NAMES] + [("gat", {"heads": 4})]
STACKS = [
    {"norm": norm, "residual": residual, "input_layer": input_layer}
    for norm, residual, input_layer in product(["none", "layer", "batch"], [False, True], [False, True])
] + [
    {"norm": "layer", "residual": True, "shortcut": shortcut, "input_layer": input_layer}
    for shortcut, input_layer in product(["identity", "inner"], [False, True])
]
each_model = pytest.mark.parametrize("name", NAMES)
each_kind = pytest.mark.parametrize(("name", "options"), KINDS, ids=lambda value: str(value))
each_direction = pytest.mark.parametrize("undirected", [True, False], ids=["undirected", "directed"])


def make(name, **options):
    """A model in float64 and evaluation mode whose every parameter is random."""
    options = {"hidden_channels": WIDTH, **options}
    return randomized(backbones[name](FEATURES, out_channels=CLASSES, **options)).eval()


def mlp_layer(conv, replica):
    layer = pyg.Linear(*conv.self_loop.weight.shape[1:])
    layer.weight.data, layer.bias.data = conv.self_loop.weight[replica].T, conv.self_loop.bias[replica, 0]
    return lambda x, edge_index: layer(x)


def gcn_layer(conv, replica):
    layer = pyg.GCNConv(*conv.linear.weight.shape[1:])
    layer.lin.weight.data, layer.bias.data = conv.linear.weight[replica].T, conv.bias[replica, 0]
    return layer


def sage_layer(conv, replica):
    layer = pyg.SAGEConv(*conv.neighbors[0].weight.shape[1:])
    layer.lin_l.weight.data, layer.lin_r.weight.data = (
        conv.neighbors[0].weight[replica].T,
        conv.self_loop.weight[replica].T,
    )
    layer.lin_l.bias.data = conv.self_loop.bias[replica, 0]
    return layer


def gat_layer(conv, replica):
    fan_in, fan_out = conv.linear.weight.shape[1:]
    layer = pyg.GATConv(fan_in, fan_out // conv.heads, heads=conv.heads)
    layer.lin.weight.data, layer.bias.data = conv.linear.weight[replica].T, conv.bias[replica, 0]
    layer.att_src.data, layer.att_dst.data = conv.source[replica][None], conv.target[replica][None]
    return layer


PLAIN_LAYERS = {
    "mlp": mlp_layer,
    "gcn": gcn_layer,
    "sage": sage_layer,
    "sage-channels": sage_layer,  # without added edges
    "gat": gat_layer,
    "appnp": mlp_layer,
}
"""How to make the layer of PyG with the parameters of one replica of ours."""


AFTER_THE_HEAD = {"appnp": pyg.APPNP(10, 0.1)}
"""What models do with their logits."""


def test_every_model_has_a_plain_layer_to_be_compared_with():
    assert set(PLAIN_LAYERS) == set(backbones)


@each_direction
@pytest.mark.parametrize("weight", [None, 1.0])
@each_kind
def test_weight_one_is_the_plain_layer(name, options, weight, undirected):
    conv = make(name, num_layers=1, replicas=2, **options).convs[0]
    graph = PairGraph.build(EDGES, NODES, undirected=undirected)
    weight = weight and torch.ones(2, graph.num_pairs, dtype=torch.float64)
    x = normal(2, NODES, FEATURES)
    arcs = coalesce(remove_self_loops(both_ways(EDGES) if undirected else EDGES)[0])
    with torch.no_grad():
        out = conv(x, WeightedGraph(graph, weight, x.dtype))
        for replica in range(2):
            plain = PLAIN_LAYERS[name](conv, replica)(x[replica], arcs)
            torch.testing.assert_close(out[replica], plain, rtol=1e-5, atol=1e-5)


@each_kind
def test_the_whole_model_is_a_stack_of_plain_layers(name, options):
    model = make(name, num_layers=3, **options)
    x, edge_index = normal(NODES, FEATURES), both_ways(edges((0, 1), (1, 2), (0, 3), (3, 4), (4, 5), (6, 7)))
    with torch.no_grad():
        hidden = x
        for conv in model.convs:
            hidden = PLAIN_LAYERS[name](conv, 0)(hidden, edge_index).relu()
        expected = hidden @ model.head.weight[0] + model.head.bias[0]
        if name in AFTER_THE_HEAD:
            expected = AFTER_THE_HEAD[name](expected, edge_index)
        torch.testing.assert_close(model(x, edge_index), expected, rtol=1e-5, atol=1e-5)


@each_direction
@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: "-".join(map(str, stack.values())))
@each_kind
def test_weight_zero_is_the_edge_removed(name, options, stack, undirected):
    model = make(name, replicas=2, **options, **stack)
    graph = PairGraph.build(EDGES, NODES, undirected=undirected)
    weight, x = positive(2, graph.num_pairs), normal(NODES, FEATURES, seed=1)
    removed = torch.zeros(2, graph.num_pairs, dtype=torch.bool)
    removed[0, ::3] = removed[1, : graph.num_pairs // 2] = True
    with torch.no_grad():
        out = model(x, graph, weight.masked_fill(removed, 0))
        for replica in range(2):
            kept = ~removed[replica]
            smaller = PairGraph.build(graph.pair_index[:, kept], NODES, undirected=undirected)
            alone = model(x, smaller, weight[:, kept])
            torch.testing.assert_close(out[replica], alone[replica], rtol=1e-5, atol=1e-5)


@each_model
def test_edges_matter_to_all_but_the_mlp(name):
    model, graph, x = make(name), PairGraph.build(EDGES, NODES), normal(NODES, FEATURES)
    without = model(x, graph, torch.zeros(graph.num_pairs, dtype=torch.float64))
    assert torch.equal(model(x, graph), without) == (name == "mlp")


@pytest.mark.parametrize("weighted", [True, False])
@each_kind
def test_a_graph_without_pairs(name, options, weighted):
    model = make(name, replicas=2, **options)
    weight = torch.ones(2, 0, requires_grad=True) if weighted else None
    out = model(normal(4, FEATURES), PairGraph.build(EDGES[:, :0], 4), weight)
    out.sum().backward()
    assert torch.isfinite(out).all()
    without_gradient = {name for name, value in model.named_parameters() if value.grad is None}
    assert not without_gradient
    assert all(torch.isfinite(value.grad).all() for value in model.parameters())


@each_kind
def test_gradients_are_finite_for_tiny_weights(name, options):
    model, graph = make(name, **options).float(), PairGraph.build(EDGES, NODES)
    weight = torch.full((graph.num_pairs,), 1e-40, requires_grad=True)
    model(normal(NODES, FEATURES).float(), graph, weight).sum().backward()
    assert all(torch.isfinite(value.grad).all() for value in model.parameters())
    assert weight.grad is None or torch.isfinite(weight.grad).all()


@pytest.mark.parametrize("scale", [1.0, 1e3], ids=["usual", "extreme"])
@pytest.mark.parametrize("every", [1, 2, 10**6], ids=["all-weights-0", "half-of-them", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@each_kind
def test_output_and_gradients_are_finite(name, options, dtype, every, scale):
    model = make(name, replicas=2, **options).to(dtype)
    graph = PairGraph.build(EDGES, NODES)
    assert graph.degree()[0, -1] == 0
    weight = torch.ones(2, graph.num_pairs, dtype=dtype)
    weight[:, every - 1 :: every] = 0
    weight.requires_grad_()
    out = model(scale * normal(NODES, FEATURES, dtype=dtype), graph, weight)
    assert torch.isfinite(out).all()
    out.square().mean().backward()
    for parameter, value in model.named_parameters():
        assert torch.isfinite(value.grad).all(), parameter
    if name != "mlp":
        assert torch.isfinite(weight.grad).all()
        assert weight.grad.any()


@each_direction
@each_kind
def test_numbering_the_nodes_otherwise_only_renumbers_the_output(name, options, undirected):
    model = make(name, norm="batch", residual=True, **options)
    x, by_nodes = normal(NODES, FEATURES), positive(NODES, NODES)
    by_nodes = by_nodes + by_nodes.T
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    place = order.argsort()

    def weigh(graph, number):
        return by_nodes[number[graph.pair_index[0]], number[graph.pair_index[1]]]

    graph = PairGraph.build(EDGES, NODES, undirected=undirected)
    renumbered = PairGraph.build(place[EDGES], NODES, undirected=undirected)
    out = model(x, graph, weigh(graph, torch.arange(NODES)))
    again = model(x[order], renumbered, weigh(renumbered, order))
    torch.testing.assert_close(again, out[order], rtol=1e-9, atol=1e-9)


def sparse_input():
    x = normal(NODES, FEATURES, seed=5)
    x[torch.rand(NODES, FEATURES, generator=torch.Generator().manual_seed(6)) > 0.2] = 0
    return x


@pytest.mark.parametrize("stack", STACKS[:4], ids=lambda stack: "-".join(map(str, stack.values())))
@each_kind
def test_sparse_features_are_the_dense_ones(name, options, stack):
    model = make(name, replicas=3, **options, **stack)
    x, graph = sparse_input(), PairGraph.build(EDGES, NODES)
    features = as_features(x)
    assert isinstance(features, SparseFeatures)
    sparse, dense = model(features, graph), model(x, graph)
    torch.testing.assert_close(sparse, dense)
    for expected, actual in zip(
        *(torch.autograd.grad(out.sum(), model.parameters()) for out in (dense, sparse)), strict=True
    ):
        torch.testing.assert_close(actual, expected)


@each_model
def test_evaluation_is_deterministic_and_training_is_not(name):
    model = make(name, dropout=0.5, input_dropout=0.5, replicas=2)
    x, graph = normal(NODES, FEATURES), PairGraph.build(EDGES, NODES)
    assert torch.equal(model(x, graph), model(x, graph))
    model.train()
    assert not torch.equal(model(x, graph), model(x, graph))


@each_model
def test_torchs_seed_decides_where_no_seeds_are_given(name):
    def start(seed):
        torch.manual_seed(seed)
        model = backbones[name](FEATURES, out_channels=CLASSES, hidden_channels=WIDTH, replicas=2)
        out = model(normal(NODES, FEATURES, dtype=torch.float32), PairGraph.build(EDGES, NODES))
        return [*model.state_dict().values(), out]

    first, again, other = start(1), start(1), start(2)
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))
    assert not torch.equal(first[-1][0], first[-1][1])
