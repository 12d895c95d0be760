"""Mini-batches by hand, for a graph that does not fit: candidates are made after sampling, in each batch.

Candidates are pairs of node numbers, and a subgraph has other numbers: those of the whole graph would be wrong in it.

python examples/mini_batches.py
"""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import gumbel_mpnn as gm

BATCHES = 4


def batches(data: Data, generator: torch.Generator) -> list[Data]:
    """The graph in random parts with the edges inside each, and with candidates of their own."""
    parts = torch.randperm(data.num_nodes, generator=generator).chunk(BATCHES)
    candidates = gm.candidates.Local(per_node=5)
    return [candidates(data.subgraph(part.sort().values)) for part in parts]


def main(epochs: int = 60) -> float:
    """Train on the first split of the demo graph; returns the test accuracy on the whole graph."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    data = gm.data.demo_graph()
    data.train_mask, data.test_mask = data.train_mask[:, 0], data.test_mask[:, 0]
    model = gm.GumbelMPNN(data.num_features, out_channels=4, hidden_channels=64, origin="none")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(epochs):
        model.train()
        model.progress = epoch / epochs
        for batch in batches(data, generator):
            optimizer.zero_grad()
            out = model(batch)
            loss = F.cross_entropy(out[batch.train_mask], batch.y[batch.train_mask]) + model.auxiliary_loss(batch)
            loss.backward()
            optimizer.step()
    model.eval()
    whole = gm.candidates.Local(per_node=5)(data)
    correct = model(whole).argmax(-1) == data.y
    accuracy = float(correct[data.test_mask].float().mean())
    print(f"test accuracy {100 * accuracy:.1f} % on the whole graph, trained on {BATCHES} parts at a time")
    return accuracy


if __name__ == "__main__":
    main()
