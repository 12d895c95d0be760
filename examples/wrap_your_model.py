"""Your own PyG model on a graph that is rewired while it trains: one line, and your loop stays yours.

python examples/wrap_your_model.py
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import gumbel_mpnn as gm


class MyGCN(nn.Module):
    """Any model that takes `(x, edge_index, edge_weight)`."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(in_channels, 64), GCNConv(64, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Logits [N, C]."""
        hidden = F.dropout(self.first(x, edge_index, edge_weight).relu(), 0.5, self.training)
        return self.second(hidden, edge_index, edge_weight)


def main(epochs: int = 100) -> float:
    """Train on the first split of the demo graph; returns the test accuracy."""
    torch.manual_seed(0)
    data = gm.data.demo_graph()
    data.train_mask, data.test_mask = data.train_mask[:, 0], data.test_mask[:, 0]
    data = gm.candidates.Local(per_node=5)(data)
    model = gm.Rewired(MyGCN(data.num_features, 4), data.num_features, 4, scorer="class-space", origin="none")
    label_consistency = gm.regularizers.LabelConsistency(2.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(epochs):
        model.train()
        model.progress = epoch / epochs
        optimizer.zero_grad()
        out, graph = model(data)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss = loss + model.auxiliary_loss(data) + label_consistency(out, graph, data)
        loss.backward()
        optimizer.step()
    model.eval()
    correct = model(data)[0].argmax(-1) == data.y
    accuracy = float(correct[data.test_mask].float().mean())
    rewired = model.rewire(data)
    given = int(rewired.edge_origin.sum()) // 2
    print(f"test accuracy {100 * accuracy:.1f} %, {rewired.num_edges // 2} edges of which {given} given")
    return accuracy


if __name__ == "__main__":
    main()
