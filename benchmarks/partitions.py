"""Training on parts of the graph against training on the whole: accuracy, memory, and recall of approximate candidates.

Gumbel-MPNN with five local candidates for each node, on pubmed (10 splits) and coauthor-physics (10 seeds). Both
programs have the candidates of the exact search, so that they differ in nothing but the parts. Recall is the share of
these candidates that the approximate search finds. Peaks of memory are those of
a GPU, with all replicas; on a CPU there are none.

python benchmarks/partitions.py                    # on a GPU, or for long on a CPU
python benchmarks/partitions.py --only pubmed --runs 2 --epochs 30
python benchmarks/partitions.py --toy              # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import time
from typing import Any

import harness  # before torch: it sets how threads wait

# isort: split
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.candidates import Local
from gumbel_mpnn.graph import contains, pair_key
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.training import Task

PER_NODE = 5
SIZES = {
    "pubmed": (19_717, 44_324, 500, 3),
    "coauthor-physics": (34_493, 247_962, 1_000, 5),
    "toy": (400, 800, 16, 3),
}
"""Nodes, edges, features and classes of a generated graph in place of a data set that is not there."""


def generated(nodes: int, edges: int, features: int, classes: int) -> Data:
    """Features around the center of a class, neighbors close by number, two thirds of them of the same class."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(nodes) * classes // nodes
    x = torch.randn(classes, features, generator=generator)[y] + 4 * torch.randn(nodes, features, generator=generator)
    first = torch.randint(nodes, (edges,), generator=generator)
    far = torch.rand(edges, generator=generator) < 1 / 3
    near = (first + torch.randint(1, 50, (edges,), generator=generator)).clamp(max=nodes - 1)
    second = torch.where(far, torch.randint(nodes, (edges,), generator=generator), near)
    return Data(x=x, y=y, edge_index=torch.stack([first, second]), undirected=True)


def graph_of(name: str) -> tuple[str, Data]:
    """A data set, or a generated graph of its size, and how it is called."""
    try:
        return name, gm.load(name)
    except gm.UserError:
        return f"generated, of the size of {name}", generated(*SIZES[name])


def recall(data: Data, exact: torch.Tensor) -> dict[str, float]:
    """Share of the exact candidates that the approximate search finds, and its seconds."""
    begin = time.perf_counter()
    found = Local(PER_NODE, search="approximate")(data.clone()).candidate_index
    keys = [pair_key(pairs, int(data.num_nodes)) for pairs in (found, exact)]
    return {"recall": float(contains(*keys).float().mean()), "seconds": time.perf_counter() - begin}


def trained(data: Data, options: Any, device: torch.device, partitions: int) -> dict[str, Any]:
    """Mean test accuracy in per cent, seconds and peak memory of all runs."""
    tables: dict[str, Any] = {
        "model": {"hidden_channels": options.hidden},
        "train": {"epochs": options.epochs, "lr": 0.01, "weight_decay": 5e-4, "partitions": partitions},
        "rewiring": {"candidates": "data"},
    }
    splits = min(options.runs, 1 if data.train_mask.dim() == 1 else data.train_mask.shape[1])
    how = {"splits": range(splits), "seeds": options.runs // splits, "preset": None, "settings": tables}
    found: list[gm.Run] = []
    begin = time.perf_counter()
    peak = harness.peak_gib(lambda: found.append(gm.fit(data, "gumbel-mpnn", device=device.type, **how)), device)
    seconds = time.perf_counter() - begin
    task = Task.of(data, RunSpec.of(data, "gumbel-mpnn", **how).settings)
    largest = task.largest.graph
    return {
        "test": 100 * found[0].test.mean,
        "std": 100 * found[0].test.std,
        "runs": found[0].n,
        "seconds": seconds,
        "peak_gib": None if peak is None else peak["allocated"],
        "largest_nodes": largest.num_nodes,
        "largest_pairs": largest.num_pairs,
    }


def compared(name: str, options: Any, device: torch.device) -> dict[str, Any]:
    """One graph, whole and in parts."""
    called, data = graph_of(name)
    begin = time.perf_counter()
    searched = Local(PER_NODE)(data.clone().to(device)).cpu()
    data.candidate_index, seconds = searched.candidate_index, time.perf_counter() - begin
    if "train_mask" not in data:
        data = gm.data.add_splits(data, "random-60-20-20")
    whole, parts = (trained(data, options, device, count) for count in (1, options.partitions))
    print(f"{called}: {whole['runs']} runs, {options.epochs} epochs, {options.partitions} parts")
    for what, result in (("whole", whole), ("parts", parts)):
        peak = "" if result["peak_gib"] is None else f", peak {result['peak_gib']:.2f} GiB"
        print(
            f"  {what}  test {result['test']:.2f} ± {result['std']:.2f} %, {result['largest_nodes']} nodes and"
            f" {result['largest_pairs']} pairs at once{peak}, {result['seconds']:.1f} s"
        )
    print(f"  difference {parts['test'] - whole['test']:+.2f} points", flush=True)
    if options.no_recall:
        return {"graph": called, "whole": whole, "parts": parts}
    found = recall(data, data.candidate_index)
    print(f"  recall of candidates {found['recall']:.4f} in {found['seconds']:.1f} s, exact in {seconds:.1f} s")
    return {"graph": called, "whole": whole, "parts": parts, "candidates": {**found, "exact_seconds": seconds}}


def main() -> None:
    """Compare all and print the differences."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--only", choices=["pubmed", "coauthor-physics"], help="one of the graphs")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--runs", type=int, default=10, help="splits, or seeds of a single split")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--no-recall", action="store_true", help="without the approximate search, which a CPU does")
    options = parser.parse_args()
    names = [options.only] if options.only else ["pubmed", "coauthor-physics"]
    if options.toy:
        names, options.partitions, options.runs, options.epochs, options.hidden = ["toy"], 3, 2, 10, 8
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    results = [compared(name, options, device) for name in names]
    facts = {"partitions": options.partitions, "epochs": options.epochs, "hidden_channels": options.hidden}
    harness.save("partitions", {"facts": facts, "results": results}, harness.folder(options))


if __name__ == "__main__":
    main()
