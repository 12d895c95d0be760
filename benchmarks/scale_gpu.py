"""Gumbel-MPNN steps from 1 to 200 million arcs on one GPU: time and memory, and both for each million arcs.

Generated graphs with a power law, 25 arcs to a node, half of the pairs edges and half candidates; 128 features, 2
layers of 128, float32. The last row is the last that fits.

python benchmarks/scale_gpu.py           # about a minute on an H200
python benchmarks/scale_gpu.py --toy     # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import statistics
from typing import Any

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch

import power_law
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.trainer import Trainer

MILLIONS = (1, 2, 5, 10, 20, 50, 100, 200)
ARCS_OF_A_NODE, FEATURES, CLASSES, WIDTH, LAYERS = 25, 128, 40, 128, 2
WARM_UP = 5
"""Steps while memory is watched, before the first sample: plain ones, the capture, and replayed ones."""


def measure(arcs: int, width: int, rounds: int, device: torch.device) -> dict[str, Any]:
    """The row of one size."""
    start = harness.now(device)
    nodes = arcs // ARCS_OF_A_NODE
    data = power_law.problem(nodes, arcs // 2, width, CLASSES, device)
    largest = power_law.largest_degree(data.edge_index)
    generated = harness.now(device)
    stack = [f"model.hidden_channels={width}", f"model.num_layers={LAYERS}", f"rewiring.scorer.channels={width}"]
    stack += ["rewiring.scorer=bilinear", "rewiring.prior=0"]
    settings = RunSpec.of(data, "gumbel-mpnn", preset=None, overrides=stack).settings
    task = Task.of(data, settings, device)
    num_arcs = task.graph.num_arcs
    laid_out = harness.now(device)
    del data
    trainer = Trainer(task, settings, [Replica(0, 0)])
    trainer.step()  # what is laid out at first use is not part of a step
    peak = harness.peak_gib(lambda: [trainer.step() for _ in range(WARM_UP)], device)
    times = [harness.seconds(trainer.step, device) for _ in range(rounds)]
    millions = num_arcs / 1e6
    row = {
        "arcs": num_arcs,
        "nodes": nodes,
        "largest_degree": largest,
        "generate_s": generated - start,
        "lay_out_s": laid_out - generated,
        "step_ms": 1e3 * statistics.median(times),
        "peak_gib": None if peak is None else peak["allocated"],
        "reserved_gib": None if peak is None else peak["reserved"],
    }
    row["step_ms_per_million"] = row["step_ms"] / millions
    row["peak_gib_per_million"] = None if peak is None else peak["allocated"] / millions
    return row


def main() -> None:
    """One size after the other, until one does not fit."""
    options = harness.arguments(__doc__, rounds=9).parse_args()
    device = harness.gpu(options)
    sizes = (1000, 2000) if options.toy else tuple(1_000_000 * count for count in MILLIONS)
    width, rounds = (16, 2) if options.toy else (WIDTH, options.rounds)
    rows: list[dict[str, Any]] = []
    did_not_fit = None
    print("scale_gpu: arcs | nodes | largest degree | ms per step | per million | peak GiB | per million | lay out s")
    for arcs in sizes:
        try:
            row = measure(arcs, width, rounds, device)
        except torch.OutOfMemoryError as error:
            did_not_fit = {"arcs": arcs, "why": str(error).splitlines()[0]}
            print(f"  {arcs:,} arcs do not fit: {did_not_fit['why']}")
            break
        rows.append(row)
        memory = "- | -" if row["peak_gib"] is None else f"{row['peak_gib']:.2f} | {row['peak_gib_per_million']:.3f}"
        print(
            f"  {row['arcs']:,} | {row['nodes']:,} | {row['largest_degree']:,} | {row['step_ms']:.2f} |"
            f" {row['step_ms_per_million']:.3f} | {memory} | {row['lay_out_s']:.2f}"
        )
        harness.free()
    facts = {"layers": f"{LAYERS} x {width}", "features": width, "classes": CLASSES, "arcs of a node": ARCS_OF_A_NODE}
    result = {"facts": facts, "rows": rows, "did_not_fit": did_not_fit, "rounds": rounds}
    harness.save("scale_gpu", result, harness.folder(options))


if __name__ == "__main__":
    main()
