"""A training step on PubMed (2 layers, 128 wide): our GCN and our Gumbel-MPNN against PyG's GCNConv on the given graph.

All alternate in one process. PyG's layers get the edges as a list, as its examples do, and as a sparse CSR matrix.
Gumbel-MPNN has five local candidates for each node: it scores and draws every pair, and propagates over three times as
many. It stands here as `fit` trains it, with the bilinear scorer, and as users call it in a loop of their own, with
the defaults: `model(data)`, and the auxiliary loss of its beliefs.

python benchmarks/step_cpu.py            # PubMed where its files are, else a random graph of its size
python benchmarks/step_cpu.py --toy      # seconds, for the tests; nothing is written
"""

from __future__ import annotations

from collections.abc import Callable

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

import gumbel_mpnn as gm
import peers
from gumbel_mpnn.nn import as_features
from gumbel_mpnn.settings import RewiringSettings

WIDTH, LAYERS = 128, 2


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
    """Time all and print the ratios."""
    options = harness.arguments(__doc__, rounds=30).parse_args()
    name, data = problem(options.toy)
    classes = int(data.y.max()) + 1
    plain, by_matrix = (peers.PlainGCN(data.num_features, WIDTH, classes, LAYERS) for _ in range(2))
    matrix = peers.as_matrix(data.edge_index, data.num_nodes)
    stack = {"hidden_channels": WIDTH, "num_layers": LAYERS, "dropout": peers.DROPOUT}
    ours = gm.GCN(data.num_features, out_channels=classes, **stack)
    rewiring = RewiringSettings(scorer="bilinear", prior=0.0)
    rewired = gm.GumbelMPNN(in_channels=data.num_features, out_channels=classes, rewiring=rewiring, **stack)
    called = gm.GumbelMPNN(in_channels=data.num_features, out_channels=classes, **stack)
    features, graph = as_features(data.x), gm.PairGraph.of(data)
    with_candidates = gm.candidates.Local(per_node=5)(data.clone())
    pairs = gm.PairGraph.of(with_candidates)

    def step(model: nn.Module, loss: Callable[[], Tensor]) -> None:
        optimizer = optimizers[model]
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    def error(logits: Tensor) -> Tensor:
        return F.cross_entropy(logits[data.train_mask], data.y[data.train_mask])

    def rewired_loss() -> Tensor:
        return rewired.training_loss(features, pairs, data.y, data.train_mask[None], torch.tensor(0.5)).sum()

    def called_loss() -> Tensor:
        return error(called(with_candidates)) + called.auxiliary_loss(with_candidates)

    models = (plain, by_matrix, ours, rewired, called)
    optimizers = {model: torch.optim.Adam(model.parameters(), lr=1e-3) for model in models}
    times = harness.alternate(
        {
            "PyG GCNConv": lambda: step(plain, lambda: error(plain(data.x, data.edge_index))),
            "PyG GCNConv, CSR": lambda: step(by_matrix, lambda: error(by_matrix(data.x, matrix))),
            "our GCN": lambda: step(ours, lambda: error(ours(features, graph))),
            "Gumbel-MPNN": lambda: step(rewired, rewired_loss),
            "Gumbel-MPNN, own loop": lambda: step(called, called_loss),
        },
        rounds=2 if options.toy else options.rounds,
    )
    facts = {"graph": name, "nodes": data.num_nodes, "arcs": graph.num_arcs, "features": data.num_features}
    facts |= {"arcs with candidates": pairs.num_arcs}
    harness.report("step_cpu", times, "PyG GCNConv", facts, harness.folder(options))


if __name__ == "__main__":
    main()
