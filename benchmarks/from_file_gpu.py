"""From a file to a trained model on one GPU: time and memory of every stage, up to the largest graph that fits.

Generated graphs with a power law, 128 features, written to npz files. Each is read, checked and merged, gets two-hop
candidates, as many as it has edges at the most, and trains a Gumbel-MPNN of 2 layers of 128 for some epochs. Writing
the file is not counted. Files are read and candidates searched by the CPU.

python benchmarks/from_file_gpu.py                        # 10^6, 10^7 and 5 * 10^7 edges
python benchmarks/from_file_gpu.py --edges 1e8            # other sizes; the last row is the last that fits
python benchmarks/from_file_gpu.py --toy                  # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import harness  # before torch: it says how torch's threads wait

# isort: split
import numpy as np
import torch

import gumbel_mpnn as gm
import power_law
from gumbel_mpnn.config import Replica
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.training import Task, data_hash
from gumbel_mpnn.training.trainer import Trainer

SIZES = (10**6, 10**7, 5 * 10**7)
EDGES_OF_A_NODE, CLASSES, LAYERS = 6, 40, 2
EPOCHS = 20
T = TypeVar("T")


def write(edges: int, features: int, path: Path, device: torch.device) -> int:
    """Write a generated graph to an npz file; returns its number of nodes."""
    nodes = edges // EDGES_OF_A_NODE
    data = power_law.problem(nodes, 2 * edges, features, CLASSES, device)
    np.savez(
        path,
        edges=data.edge_index.T.cpu().numpy(),
        node_labels=data.y.cpu().numpy(),
        node_features=data.x.cpu().numpy(),
        **{f"{part}_masks": data[f"{part}_mask"][None].cpu().numpy() for part in ("train", "val", "test")},
    )
    return nodes


def measure(edges: int, features: int, epochs: int, device: torch.device) -> dict[str, Any]:
    """The row of one size."""
    times: dict[str, float] = {}

    def stage(name: str, work: Callable[[], T]) -> T:
        start = harness.now(device)
        result = work()
        times[name] = harness.now(device) - start
        return result

    with TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        nodes = write(edges, features, path, device)
        harness.free()
        data = stage("read_s", partial(gm.from_npz, path))
    stage("hash_s", partial(data_hash, data))
    data = stage("candidates_s", partial(gm.candidates.TwoHop(per_node=EDGES_OF_A_NODE), data))
    stack = [f"model.hidden_channels={features}", f"model.num_layers={LAYERS}", f"train.epochs={epochs}"]
    stack += ["rewiring.scorer=bilinear", f"rewiring.channels={features}", "rewiring.candidates=data"]
    settings = RunSpec.of(data, "gumbel-mpnn", preset=None, overrides=stack).settings
    # On the device, sorting takes a moment; `fit` does it on the CPU.
    data = data.to(device)
    task = stage("lay_out_s", partial(Task.for_model, data, settings, device))
    row = {"edges": int(task.graph.is_original.sum()), "nodes": nodes, "arcs": task.graph.num_arcs}
    del data
    if device.type == "cuda":
        harness.free()
        torch.cuda.reset_peak_memory_stats(device)

    def train() -> Trainer:
        trainer = Trainer(task, settings, [Replica(0, 0)])
        for _ in range(epochs):
            trainer.step()
            trainer.evaluate()
        return trainer

    stage("train_s", train)
    gpu = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None
    reserved = torch.cuda.max_memory_reserved(device) / 2**30 if device.type == "cuda" else None
    return {
        **row,
        **times,
        "epochs": epochs,
        "gpu_gib": gpu,
        "gpu_reserved_gib": reserved,
        "host_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def main() -> None:
    """One size after the other, until one does not fit."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--edges", help="numbers of edges, separated by commas, such as 1e6,1e8")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    device = harness.gpu(options)
    sizes = [int(float(size)) for size in options.edges.split(",")] if options.edges else SIZES
    features, epochs = (16, 2) if options.toy else (128, options.epochs)
    rows: list[dict[str, Any]] = []
    did_not_fit = None
    print(
        "from_file_gpu: edges | nodes | arcs with candidates | s: read | hash | candidates | lay out | train |"
        " GPU GiB | host GiB"
    )
    gm.candidates.TwoHop()(power_law.problem(20, 20, 4, 2, torch.device("cpu")))  # compiled at first use
    start = time.perf_counter()
    for edges in (3000,) if options.toy else sizes:
        try:
            row = measure(edges, features, epochs, device)
        except torch.OutOfMemoryError as error:
            did_not_fit = {"edges": edges, "why": ". ".join(str(error).split(". ")[:3])}
            print(f"  {edges:,} edges do not fit: {did_not_fit['why']}")
            break
        rows.append(row)
        gpu = "-" if row["gpu_gib"] is None else f"{row['gpu_gib']:.1f}"
        print(
            f"  {row['edges']:,} | {row['nodes']:,} | {row['arcs']:,} | {row['read_s']:.1f} | {row['hash_s']:.1f} |"
            f" {row['candidates_s']:.1f} | {row['lay_out_s']:.1f} | {row['train_s']:.1f} | {gpu} |"
            f" {row['host_gib']:.1f}",
            flush=True,
        )
        facts = {"layers": f"{LAYERS} x {features}", "features": features, "classes": CLASSES, "epochs": epochs}
        result = {"facts": facts, "rows": rows, "did_not_fit": did_not_fit}
        harness.save("from_file_gpu", result, harness.folder(options))  # after each, should the next be killed
        harness.free()
    if rows and did_not_fit:
        harness.save("from_file_gpu", {**result, "did_not_fit": did_not_fit}, harness.folder(options))
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
