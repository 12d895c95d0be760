"""A plain PyG training loop with Gumbel-MPNN: candidates, three lines of loss, the best epoch by validation.

python examples/pyg_loop.py
"""

import copy

import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import gumbel_mpnn as gm


def accuracy(model: gm.GumbelMPNN, data: Data, mask: torch.Tensor) -> float:
    """Share of the nodes of a mask that are classified correctly."""
    model.eval()
    with torch.no_grad():
        correct = model(data).argmax(-1) == data.y
    return float(correct[mask].float().mean())


def main(epochs: int = 100) -> float:
    """Train on the first split of the demo graph; returns the test accuracy of the epoch that validation chose."""
    torch.manual_seed(0)
    data = gm.data.demo_graph()  # any Data with x, y, edge_index and masks
    for name in ("train_mask", "val_mask", "test_mask"):
        data[name] = data[name][:, 0]
    data = gm.candidates.Local(per_node=5)(data)  # adds data.candidate_index: the edges that may be added
    model = gm.GumbelMPNN(gm.GCN(data.num_features, hidden_channels=64, out_channels=4), origin="none")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, best_state = -1.0, model.state_dict()
    for epoch in range(epochs):
        model.train()
        model.progress = epoch / epochs  # the temperature falls with it
        optimizer.zero_grad()
        out = model(data)  # on a graph that is drawn in this step
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss = loss + model.auxiliary_loss(data)  # trains the class probabilities that the edge scores compare
        loss.backward()
        optimizer.step()
        if (val := accuracy(model, data, data.val_mask)) > best:
            best, best_state = val, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    test = accuracy(model, data, data.test_mask)
    graph = model.rewire(data)
    given = int(graph.edge_origin.sum()) // 2
    print(f"test accuracy {100 * test:.1f} %, {graph.num_edges // 2} edges of which {given} given")
    return test


if __name__ == "__main__":
    main()
