"""The products of the CPU on graphs that are hard for sparse kernels; the GPU's pass the same check elsewhere."""

import pytest
import torch

from graph_cases import GRAPHS, REPLICAS, WIDTHS, check_against_float64
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.scorers import scorers
from helpers import LargestOutput


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", GRAPHS)
def test_products_are_those_of_float64(name, width, replicas):
    check_against_float64(name, width, replicas)


NODES, WIDTH = 100, 64
MODELS = {
    **{name: lambda name=name, **kw: backbones[name](in_channels=8, **kw) for name in backbones},
    **{
        f"gumbel-mpnn, {scorer}": lambda scorer=scorer, **kw: GumbelMPNN(in_channels=8, scorer=scorer, **kw)
        for scorer in scorers
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_no_step_makes_an_array_of_arcs_times_channels(name):
    both = torch.triu_indices(NODES, NODES, 1)
    graph = PairGraph.build(both[:, ::2], NODES, candidate_index=both[:, 1::2])
    model = MODELS[name](out_channels=3, hidden_channels=WIDTH, num_layers=2, replicas=1)
    x, y = torch.randn(NODES, 8), torch.arange(NODES) % 3
    mask = torch.ones(1, NODES, dtype=torch.bool)
    model.training_loss(x, graph, y, mask, torch.zeros(()))  # lays out what steps only use
    with LargestOutput() as largest:
        model.training_loss(x, graph, y, mask, torch.zeros(())).sum().backward()
    assert largest.elements >= NODES * WIDTH  # it does look
    # Some numbers for each arc are what there must be; 64 for each would be an array of arcs times channels.
    assert largest.elements <= 20 * graph.num_arcs
