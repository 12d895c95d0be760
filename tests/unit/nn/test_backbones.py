"""The plain models: options, sizes, shortcuts by hand, models that are too large, and torch's own machinery."""

import pytest
import torch

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import GAT, GCN, MLP, backbones
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.util.errors import UserError
from helpers import both_ways, edges, normal, randomized, small_data

DATA = small_data()


def test_options_of_a_model_are_its_signature():
    common = {
        "hidden_channels": 256,
        "num_layers": 2,
        "dropout": 0.5,
        "norm": "none",
        "residual": False,
        "shortcut": "linear",
        "input_layer": False,
        "input_dropout": 0.0,
    }
    assert backbones["GraphSAGE"] is backbones["sage"]
    assert backbones.defaults("gcn") == common
    assert backbones.defaults("gat") == {**common, "heads": 1}


def test_str_says_the_sizes():
    assert str(GCN(5, out_channels=3)) == "GCN(256 wide, 2 layers, 3 classes)"
    model = GAT(5, out_channels=3, hidden_channels=16, num_layers=4, heads=2, replicas=7)
    assert str(model) == "GAT(16 wide, 4 layers, 3 classes, replicas=7)"


def test_a_graph_beside_data_wins():
    model = GCN(6, out_channels=3, hidden_channels=8).eval()
    graph = PairGraph.build(DATA.edge_index, 24, undirected=False)
    assert torch.equal(model(DATA, graph), model(DATA.x, graph))
    assert not torch.equal(model(DATA, graph), model(DATA))


@pytest.mark.parametrize(("replicas", "shape"), [(None, (24, 3)), (1, (1, 24, 3)), (4, (4, 24, 3))])
def test_output_has_a_replica_axis_where_one_was_asked_for(replicas, shape):
    assert GCN(6, out_channels=3, hidden_channels=8, replicas=replicas)(DATA).shape == shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 0}, "num_layers must lie between 1 and 1048576, but is 0"),
        ({"hidden_channels": 0}, "hidden_channels must lie between 1 and"),
        ({"dropout": 1.1}, "dropout must lie between 0 and 1, but is 1.1"),
        ({"dropout": -0.1}, "dropout must lie between 0 and 1"),
        ({"dropout": float("nan")}, "dropout must lie between 0 and 1"),
        ({"input_dropout": 2.0}, "input_dropout must lie between 0 and 1"),
        ({"norm": "Layer"}, r"there is no norm called 'Layer': did you mean 'layer'\?"),
    ],
)
@pytest.mark.parametrize("name", list(backbones))
def test_a_wrong_option_is_one_sentence(name, options, message):
    with pytest.raises(UserError, match=f"^{message}"):
        backbones[name](6, out_channels=3, **{"hidden_channels": 8, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": "a"}, "dropout must lie between 0 and 1, but is 'a'"),
        ({"hidden_channels": 8.5}, "hidden_channels must be a whole number, but is 8.5"),
        ({"in_channels": -1}, "in_channels must be at least 0, but is -1"),
        ({"in_channels": "6"}, "in_channels must be a whole number"),
        ({"out_channels": 0}, "out_channels must be at least 1, but is 0"),
        ({"replicas": 0}, "replicas must lie between 1 and"),
        ({"seeds": [1, 2]}, "seeds must have one entry per replica, 1, not 2"),
        ({"heads": "a"}, "heads must be a whole number"),
        ({"heads": 0, "hidden_channels": 8}, "^heads=0 must be at least 1 and divide hidden_channels=8$"),
        ({"heads": 3, "hidden_channels": 8}, "^heads=3 must be at least 1 and divide hidden_channels=8$"),
    ],
)
def test_options_that_make_no_model(options, message):
    with pytest.raises(UserError, match=message):
        GAT(**{"in_channels": 6, "out_channels": 3, **options})


@pytest.mark.parametrize("seeds", [7, [1.5], ["7"], "7", [None]], ids=repr)
def test_seeds_are_whole_numbers(seeds):
    with pytest.raises(UserError) as caught:
        GCN(6, out_channels=3, hidden_channels=8, seeds=seeds)
    assert str(caught.value) == f"seeds are a list of whole numbers, as [0] or range(3), not {seeds!r}"


def test_reset_parameters_returns_to_the_start():
    model = GAT(6, out_channels=3, hidden_channels=8, norm="batch", residual=True, input_layer=True, seeds=[3])
    start = {name: value.clone() for name, value in model.state_dict().items()}
    randomized(model).reset_parameters()
    for name, value in model.float().state_dict().items():
        assert torch.equal(value, start[name]), name


def test_the_stack_worked_by_hand():
    model = MLP(2, out_channels=1, hidden_channels=2, num_layers=1, residual=True, input_layer=True).eval()
    values = {
        "input.weight": [[[1.0, 0.0], [0.0, 2.0]]],
        "input.bias": [[[0.0, 1.0]]],
        "convs.0.self_loop.weight": [[[1.0, 1.0], [-1.0, 1.0]]],
        "convs.0.self_loop.bias": [[[0.5, 0.0]]],
        "shortcuts.0.weight": [[[1.0, 0.0], [0.0, -1.0]]],
        "shortcuts.0.bias": [[[0.0, 0.25]]],
        "head.weight": [[[10.0], [100.0]]],
        "head.bias": [[[7.0]]],
    }
    model.load_state_dict({name: torch.tensor(value) for name, value in values.items()})
    out = model(torch.tensor([[3.0, 0.5], [0.0, 1.0]]), both_ways(edges((0, 1))))
    assert out.tolist() == [[10 * (1 + 0.5 + 3) + 100 * (5 - 2 + 0.25) + 7], [10 * 0 + 100 * (3 - 3 + 0.25) + 7]]


@pytest.mark.parametrize(
    ("shortcut", "input_layer", "layer"),
    [
        ("identity", False, lambda conv, x, added: conv(x, None).relu() + added),
        ("identity", True, lambda conv, x, added: conv(x, None).relu() + added),
        ("inner", False, lambda conv, x, added: (conv(x, None) + added).relu()),
        ("inner", True, lambda conv, x, added: (conv(x, None) + added).relu()),
    ],
)
def test_a_shortcut_adds_the_input_itself(shortcut, input_layer, layer):
    stack = {"residual": True, "shortcut": shortcut, "input_layer": input_layer}
    model = randomized(MLP(3, out_channels=2, hidden_channels=4, num_layers=2, **stack)).eval()
    assert len(model.shortcuts) == (0 if input_layer else 1)  # the features have another width than the layers
    x = normal(5, 3)
    start = model.input(x) if input_layer else x
    hidden = layer(model.convs[0], start, start if input_layer else model.shortcuts[0](x))
    hidden = layer(model.convs[1], hidden, hidden)
    torch.testing.assert_close(model(x, edges((0, 1))), model.head(hidden).squeeze(0))


@pytest.mark.parametrize("model", list(backbones))
def test_a_call_in_the_order_of_pyg_is_refused(model):
    model = backbones[model]
    with pytest.raises(TypeError, match="positional argument"):
        model(5, 64, 2, 3)  # PyG: in_channels, hidden_channels, num_layers, out_channels
    with pytest.raises(TypeError, match="positional argument"):
        model(5, 64, num_layers=2)  # PyG: no linear head
    assert model(5, hidden_channels=64, num_layers=2, out_channels=3) is not None


@pytest.mark.parametrize("in_channels", [1, 2], ids=["features are sent", "their maps are sent"])
def test_given_and_added_edges_have_channels_of_their_own(in_channels):
    """Node 0 has the given neighbor 1 and the added neighbors 2 and 3, one of weight 1 and one of weight 3."""
    conv = backbones["sage-channels"](in_channels, out_channels=1, hidden_channels=1, num_layers=1).convs[0]
    for linear, value in ((conv.neighbors[0], 10.0), (conv.neighbors[1], 100.0), (conv.self_loop, 1000.0)):
        linear.weight.data.fill_(value)
    conv.self_loop.bias.data.fill_(0.5)
    graph = PairGraph.build(edges((0, 1)), 4, candidate_index=edges((0, 2), (0, 3)))
    x = torch.zeros(1, 4, in_channels)
    x[0, :, 0] = torch.tensor([1.0, 2.0, 3.0, 7.0])
    weighted = WeightedGraph(graph, torch.tensor([[0.5, 1.0, 3.0]]), x.dtype)
    with torch.no_grad():
        out = conv(x, weighted)[0, :, 0].tolist()
    assert out == [10 * 2 + 100 * (3 + 3 * 7) / 4 + 1000.5, 10 * 1 + 2000.5, 100 * 1 + 3000.5, 100 * 1 + 7000.5]


@pytest.mark.parametrize(("name", "norm"), [("gcn", "none"), ("sage", "none"), ("gat", "none"), ("mlp", "batch")])
def test_second_derivatives_are_refused_and_not_silently_wrong(name, norm):
    data = small_data()
    model = backbones[name](6, out_channels=3, hidden_channels=4, num_layers=2, dropout=0.0, norm=norm)
    x = data.x.clone().requires_grad_()
    with pytest.raises(UserError, match="no second derivatives"):
        torch.autograd.grad((model(x, data.edge_index) ** 3).sum(), x, create_graph=True)


def test_an_mlp_has_second_derivatives():
    model = backbones["mlp"](6, out_channels=3, hidden_channels=4, num_layers=2, dropout=0.0).double()
    data = small_data()
    x = data.x[:5].double().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda features: model(features, data.edge_index[:, :0]) ** 3, x)


@pytest.mark.filterwarnings("ignore")
def test_models_can_be_compiled():
    """With breaks in the graph, but with the same results."""
    data = small_data()
    data.train_mask = data.train_mask[:, 0]
    plain = GumbelMPNN(in_channels=6, out_channels=3, hidden_channels=4, dropout=0.0, num_layers=2).eval()
    compiled = torch.compile(plain, backend="eager")
    out = compiled(data)
    torch.testing.assert_close(out, plain(data))
    (out.sum() + plain.auxiliary_loss(data)).backward()
    assert all(parameter.grad is not None for parameter in plain.parameters())
