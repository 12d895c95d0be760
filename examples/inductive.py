"""A trained model on nodes that it has never seen: scores depend on features, so new nodes get edges of their own.

A third of the nodes is cut out of the graph, with all its edges, and the rest is trained on. Then the model gets the
whole graph, to predict the new nodes and to see which edges it would draw at them.

python examples/inductive.py
"""

import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm


def main(epochs: int = 100, splits: int = 5) -> tuple[float, float]:
    """Train on two thirds of the demo graph; returns the accuracy on the new nodes, with and without their edges."""
    whole = gm.data.demo_graph()
    new = torch.arange(whole.num_nodes) % 3 == 0
    seen = whole.subgraph(~new)
    for name in ("train_mask", "val_mask", "test_mask"):
        del seen[name]  # fit makes random splits of the nodes that are left
    settings = {"train": {"epochs": epochs}, "rewiring": {"origin": "none"}}
    run = gm.fit(seen, "gumbel-mpnn", splits=range(splits), settings=settings, progress=False)

    def accuracy(data: Data) -> float:
        return float((torch.tensor(run.predict(data)) == whole.y)[new].float().mean())

    with_edges = accuracy(whole)
    alone = whole.clone()
    alone.edge_index = whole.edge_index[:, :0]
    without = accuracy(alone)
    graph = run.rewire(whole)  # candidates are found in the new graph, as in training
    at_new = new[graph.edge_index].any(0)
    edges, given = int(at_new.sum()) // 2, int(graph.edge_origin[at_new].sum()) // 2
    print(f"accuracy on {int(new.sum())} new nodes: {100 * with_edges:.1f} %, without edges {100 * without:.1f} %")
    print(f"{edges} learned edges at new nodes, of which {given} were given")
    return with_edges, without


if __name__ == "__main__":
    main()
