"""The products of the CPU on graphs that are hard for sparse kernels; the GPU's pass the same check elsewhere."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from graph_cases import GRAPHS, REPLICAS, WIDTHS, check_against_float64
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.rewiring.scorers import scorers


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", GRAPHS)
def test_products_are_those_of_float64(name, width, replicas):
    check_against_float64(name, width, replicas)


class Largest(TorchDispatchMode):
    """The most numbers in any tensor that was made."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, _numbers(tensor))
        return out


def _numbers(tensor):
    if tensor.layout == torch.sparse_csr:
        return tensor._nnz()
    return tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)


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
    with Largest() as largest:
        model.training_loss(x, graph, y, mask, torch.zeros(())).sum().backward()
    assert largest.numel >= NODES * WIDTH  # it does look
    # Some numbers for each arc are what there must be; 64 for each would be an array of arcs times channels.
    assert largest.numel <= 20 * graph.num_arcs
