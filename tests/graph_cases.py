"""Graphs that sparse products get wrong most easily, and the one check that every backend must pass on them."""

import torch

from gumbel_mpnn.graph import PairGraph, WeightedGraph

NODES = 40
WIDTHS = (1, 7, 33)
REPLICAS = (1, 10)


def power_law():
    """Few nodes with many edges and many with few."""
    generator = torch.Generator().manual_seed(1)
    ends = (torch.rand(2, 150, generator=generator) ** 3 * NODES).long()
    return ends, NODES


def isolated():
    """Edges among the first ten nodes only."""
    return torch.randint(10, (2, 20), generator=torch.Generator().manual_seed(2)), NODES


def hub():
    """One node is an end of half of all edges."""
    others = torch.arange(1, NODES)
    rest = torch.randint(1, NODES, (2, NODES - 1), generator=torch.Generator().manual_seed(3))
    return torch.cat([torch.stack([torch.zeros_like(others), others]), rest], 1), NODES


def empty():
    """No edge at all."""
    return torch.empty(2, 0, dtype=torch.int64), 3


GRAPHS = {made.__name__: made for made in (power_law, isolated, hub, empty)}


def products(name, width, replicas, dtype, device="cpu"):
    """Sums, means, pair scores and a graph convolution on a graph, with all gradients, in float64 on the CPU."""
    edge_index, nodes = GRAPHS[name]()
    graph = PairGraph.build(edge_index, nodes).to(device)
    generator = torch.Generator().manual_seed(4)
    weight = torch.rand(replicas, graph.num_pairs, generator=generator, dtype=torch.float64)
    x, y = torch.randn(2, replicas, nodes, width, generator=generator, dtype=torch.float64)
    inputs = [tensor.to(device, dtype).requires_grad_() for tensor in (weight, x, y)]
    weighted = WeightedGraph(graph, inputs[0], dtype)
    outs = [graph.propagate(inputs[1], inputs[0]), weighted.mean(inputs[1]), weighted.symmetric(inputs[2])]
    outs.append(graph.pair_scores(inputs[1], inputs[2]))
    probes = [torch.randn(out.shape, generator=generator, dtype=torch.float64).to(device, dtype) for out in outs]
    loss = torch.stack([(out * probe).sum() for out, probe in zip(outs, probes, strict=True)]).sum()
    return [tensor.detach().double().cpu() for tensor in (*outs, *torch.autograd.grad(loss, inputs))]


def check_against_float64(name, width, replicas, device="cpu"):
    """Whatever the device and its kernels, float32 is off by rounding alone."""
    exact = products(name, width, replicas, torch.float64)
    found = products(name, width, replicas, torch.float32, device)
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-4)
