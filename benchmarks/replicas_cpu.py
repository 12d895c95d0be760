"""Many runs at once on a CPU: what a run's epoch costs by how many there are.

Cora, GCN and Gumbel-MPNN of 2 layers, narrow and wide; an epoch is one full-batch step and one evaluation. All programs
alternate in one process. Beside each stands the size of a hidden layer of all its runs: from 32 MiB on the C library
maps every array anew, and `fit` therefore trains in smaller groups.

python benchmarks/replicas_cpu.py         # Cora where its files are, else a generated graph of its size
python benchmarks/replicas_cpu.py --toy   # seconds; nothing is written
"""

from __future__ import annotations

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch

from gumbel_mpnn.settings import Replica
from replicas_gpu import LAYERS, MODELS, SPLITS, Epoch, cora, ours

COUNTS = (1, 2, 5, 10, 20, 30)
WIDTHS = (64, 512)
EPOCHS_BEFORE = 2


def main() -> None:
    """Build all, let them alternate, and print what an epoch of one run costs."""
    options = harness.arguments(__doc__, rounds=5).parse_args()
    counts, widths, rounds = ((1, 2), (8,), 2) if options.toy else (COUNTS, WIDTHS, options.rounds)
    name, data = cora(torch.device("cpu"), options.toy)
    programs: dict[str, Epoch] = {}
    sizes: dict[str, tuple[str, int, float]] = {}
    for width in widths:
        for model, title in MODELS.items():
            for count in counts:
                program = f"{title} {LAYERS} x {width}, {count} at once"
                programs[program] = ours(data, model, width, [Replica(k % SPLITS, k // SPLITS) for k in range(count)])
                sizes[program] = f"{title} {LAYERS} x {width}", count, 4 * count * data.num_nodes * width / 2**20
    times = harness.medians(harness.alternate(programs, rounds=rounds, warm_up=EPOCHS_BEFORE))
    rows = [
        {"program": title, "at_once": count, "layer_mib": layer, "ms": 1e3 * times[program] / count}
        for program, (title, count, layer) in sizes.items()
    ]
    print(f"replicas_cpu: graph {name}")
    for row in rows:
        print(f"  {row['program']:22s} {row['at_once']:3d} at once, {row['layer_mib']:6.1f} MiB {row['ms']:8.1f} ms")
    facts = {"graph": name, "nodes": data.num_nodes}
    harness.save("replicas_cpu", {"facts": facts, "rows": rows, "rounds": rounds}, harness.folder(options))


if __name__ == "__main__":
    main()
