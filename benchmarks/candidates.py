"""Each node's five most similar non-neighbors: ours against scikit-learn's brute-force search, in one process.

python benchmarks/candidates.py          # 20,000 nodes × 128 features
python benchmarks/candidates.py --toy    # seconds, for the tests; nothing is written

scikit-learn only searches: it does not leave out neighbors. The largest part of either is one product of all pairs.
"""

from __future__ import annotations

import harness  # before torch: it sets how threads wait

# isort: split
import torch
from sklearn.neighbors import NearestNeighbors
from torch_geometric.data import Data

from gumbel_mpnn.candidates import Global, Local, TwoHop

PER_NODE, FEATURES, MEAN_DEGREE = 5, 128, 14


def problem(nodes: int) -> Data:
    """Normal features and random edges, as many per node as ogbn-arxiv has."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(nodes, (2, nodes * MEAN_DEGREE // 2), generator=generator)
    return Data(x=torch.randn(nodes, FEATURES, generator=generator), edge_index=edge_index)


def scikit_learn(data: Data) -> object:
    """Each node's nearest by cosine, itself among them."""
    search = NearestNeighbors(n_neighbors=PER_NODE + 1, algorithm="brute", metric="cosine", n_jobs=-1)
    return search.fit(data.x.numpy()).kneighbors(data.x.numpy(), return_distance=False)


def main() -> None:
    """Time all and print the ratios."""
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("--nodes", type=int, default=20_000)
    options = parser.parse_args()
    data = problem(300 if options.toy else options.nodes)
    times = harness.alternate(
        {
            "scikit-learn, brute force": lambda: scikit_learn(data),
            "Local": lambda: Local(PER_NODE)(data),
            "Global, 2 |E| pairs": lambda: Global()(data),
            "TwoHop": lambda: TwoHop()(data),
        },
        rounds=2 if options.toy else options.rounds,
        warm_up=1,
    )
    facts = {"nodes": data.num_nodes, "features": FEATURES, "edges": data.num_edges, "per node": PER_NODE}
    harness.report("candidates", times, "scikit-learn, brute force", facts, harness.folder(options))


if __name__ == "__main__":
    main()
