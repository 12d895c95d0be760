"""Mini-batches of a PyG loader, for a graph that does not fit: each has the candidates among its own nodes.

python examples/mini_batches.py
"""

import torch
import torch.nn.functional as F
from torch_geometric.loader import RandomNodeLoader

import gumbel_mpnn as gm

PARTS = 4


def main(epochs: int = 60) -> float:
    """Train on the first split of the demo graph; returns the test accuracy on the whole graph."""
    torch.manual_seed(0)
    data = gm.data.demo_graph()
    data.train_mask, data.test_mask = data.train_mask[:, 0], data.test_mask[:, 0]
    data.n_id = torch.arange(data.num_nodes)  # by which a batch knows its nodes
    whole = gm.candidates.Local(per_node=5)(data)
    model = gm.GumbelMPNN(gm.GCN(data.num_features, hidden_channels=64, out_channels=4), origin="none")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(epochs):
        model.train()
        model.progress = epoch / epochs
        for batch in RandomNodeLoader(data, num_parts=PARTS, shuffle=True):
            batch = gm.candidates.for_batch(batch, whole.candidate_index)
            optimizer.zero_grad()
            out = model(batch)
            loss = F.cross_entropy(out[batch.train_mask], batch.y[batch.train_mask]) + model.auxiliary_loss(batch)
            loss.backward()
            optimizer.step()
    model.eval()
    correct = model(whole).argmax(-1) == data.y
    accuracy = float(correct[data.test_mask].float().mean())
    print(f"test accuracy {100 * accuracy:.1f} % on the whole graph, trained on {PARTS} parts")
    return accuracy


if __name__ == "__main__":
    main()
