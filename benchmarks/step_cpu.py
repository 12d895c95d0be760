"""A training step of a GCN on PubMed (2 layers, 128 wide): ours against PyG's GCNConv, alternating in one process.

python benchmarks/step_cpu.py            # PubMed where its files are, else a random graph of its size
python benchmarks/step_cpu.py --toy      # seconds, for the tests; nothing is written
"""

from __future__ import annotations

import argparse

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.nn import as_features

WIDTH, DROPOUT = 128, 0.5


class PlainGCN(nn.Module):
    """The same stack written with PyG's layers, its normalisation cached."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            [pyg.GCNConv(in_channels, WIDTH, cached=True), pyg.GCNConv(WIDTH, WIDTH, cached=True)]
        )
        self.head = nn.Linear(WIDTH, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits [N, C]."""
        for conv in self.convs:
            x = F.dropout(conv(x, edge_index).relu(), DROPOUT, self.training)
        return self.head(x)


def problem(toy: bool) -> tuple[str, Data]:
    """PubMed, or a random graph with its counts."""
    if not toy:
        try:
            return "pubmed", gm.load("pubmed", split=0)
        except gm.UserError:
            pass
    nodes, edges, features = (200, 400, 50) if toy else (19717, 44324, 500)
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, features, generator=generator)
    edge_index = torch.randint(nodes, (2, edges), generator=generator)
    data = Data(x=x * (x < 0.1), edge_index=torch.cat([edge_index, edge_index.flip(0)], 1))
    data.y = torch.randint(3, (nodes,), generator=generator)
    data.train_mask = torch.rand(nodes, generator=generator) < 0.48
    return "a random graph", data


def main() -> None:
    """Time both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    name, data = problem(options.toy)
    classes = int(data.y.max()) + 1
    plain = PlainGCN(data.num_features, classes)
    ours = gm.GCN(data.num_features, out_channels=classes, hidden_channels=WIDTH, num_layers=2, dropout=DROPOUT)
    features, graph = as_features(data.x), gm.PairGraph.of(data)

    def step(model: nn.Module, *inputs: object) -> None:
        optimizer = optimizers[model]
        optimizer.zero_grad()
        F.cross_entropy(model(*inputs)[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()

    optimizers = {model: torch.optim.Adam(model.parameters(), lr=1e-3) for model in (plain, ours)}
    times = harness.alternate(
        {
            "PyG GCNConv": lambda: step(plain, data.x, data.edge_index),
            "gumbel-mpnn": lambda: step(ours, features, graph),
        },
        rounds=2 if options.toy else options.rounds,
    )
    facts = {"graph": name, "nodes": data.num_nodes, "arcs": graph.num_arcs, "features": data.num_features}
    harness.report("step_cpu", times, "PyG GCNConv", facts, write=not options.toy)


if __name__ == "__main__":
    main()
