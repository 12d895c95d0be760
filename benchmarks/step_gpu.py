"""A training step on a GPU at the size of ogbn-arxiv with as many candidates: PyG's GCN, Gumbel rewiring, and ours.

169,343 nodes, 2,315,598 pairs (4,631,196 arcs), 128 features, 40 classes, 3 layers of 256, dropout, Adam, float32. The
graph is generated with a power law, half of its pairs edges and half candidates. First each program runs alone for its
peak of memory; then all alternate in one process. The ceilings of the machine are measured beside them, and the bytes
and operations that the step needs are counted in cost.py.

python benchmarks/step_gpu.py            # about a minute on an H200
python benchmarks/step_gpu.py --toy      # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
from torch_geometric.data import Data

import cost
import peers
import power_law
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.trainer import Trainer

TOY = cost.Sizes(nodes=300, pairs=1000, features=16, width=32, layers=3, classes=4, channels=16)
REWIRED, PLAIN = "Gumbel-MPNN", "PyG GCNConv, all arcs"
STEPS_ALONE = 5
"""Steps while memory is watched: plain ones, the capture, and replayed ones."""

Program = Callable[[], None]


def pyg_gcn(data: Data, size: cost.Sizes, *, candidates: bool, matrix: bool = False, tf32: bool = False) -> Program:
    """A step of PyG's GCN on the edges or on all arcs, given as a list or as a sparse matrix."""
    arcs = peers.both_ways(peers.all_pairs(data)[0] if candidates else data.edge_index)
    model = peers.PlainGCN(size.features, size.width, size.classes, size.layers)
    return with_precision(peers.Training(model, data, peers.as_matrix(arcs, size.nodes) if matrix else arcs).step, tf32)


def plain_gumbel(data: Data, size: cost.Sizes, *, factorised: bool) -> Program:
    """A step of Gumbel rewiring by PyG's layers."""
    shape = (size.features, size.width, size.classes, size.layers, size.channels)
    model = peers.PlainGumbel(*shape, factorised=factorised)
    return with_precision(peers.Training(model, data, *peers.all_pairs(data)).step, False)


def ours(data: Data, size: cost.Sizes, model: str, *overrides: str, tf32: bool = False) -> Program:
    """A step of our trainer; a model that does not rewire gets all arcs as edges."""
    chosen = [f"model.hidden_channels={size.width}", f"model.num_layers={size.layers}"]
    chosen += [f"model.dropout={peers.DROPOUT}"]
    if model == "gumbel-mpnn":
        chosen += [f"rewiring.scorer.channels={size.channels}", "rewiring.scorer=bilinear", "rewiring.prior=0"]
    settings = RunSpec.of(data, model, preset=None, overrides=[*chosen, *overrides]).settings
    if settings.rewiring is None:
        data = data.clone()
        data.edge_index = peers.all_pairs(data)[0]
    task = Task.of(data, settings, data.x.device)
    return with_precision(Trainer(task, settings, [Replica(0, 0)]).step, tf32)


def with_precision(step: Program, tf32: bool) -> Program:
    """The step with float32 products as asked for."""

    def run() -> None:
        with harness.tf32(tf32):
            step()

    return run


def programs(data: Data, size: cost.Sizes) -> dict[str, Callable[[], Program]]:
    """How each program is built."""
    return {
        "PyG GCNConv, edges only": lambda: pyg_gcn(data, size, candidates=False),
        PLAIN: lambda: pyg_gcn(data, size, candidates=True),
        "PyG GCNConv, edges only, CSR": lambda: pyg_gcn(data, size, candidates=False, matrix=True),
        f"{PLAIN}, CSR": lambda: pyg_gcn(data, size, candidates=True, matrix=True),
        f"{PLAIN}, TF32": lambda: pyg_gcn(data, size, candidates=True, tf32=True),
        "Gumbel rewiring, plainly": lambda: plain_gumbel(data, size, factorised=False),
        "Gumbel rewiring, factorised": lambda: plain_gumbel(data, size, factorised=True),
        "our GCN, all arcs": lambda: ours(data, size, "gcn"),
        REWIRED: lambda: ours(data, size, "gumbel-mpnn"),
        f"{REWIRED}, TF32": lambda: ours(data, size, "gumbel-mpnn", tf32=True),
        f"{REWIRED}, bfloat16": lambda: ours(data, size, "gumbel-mpnn", "train.bfloat16=true", tf32=True),
    }


def memory_alone(build: Callable[[], Program], device: torch.device) -> dict[str, float] | None:
    """The peak of a program's steps, when no other is alive."""
    step = build()
    step()  # what is laid out at first use is not part of a step
    return harness.peak_gib(lambda: [step() for _ in range(STEPS_ALONE)], device)


def ceilings(device: torch.device, toy: bool) -> dict[str, float]:
    """What the machine can do: bytes copied (read and written) and operations of a product, per second."""
    count, width = (2**16, 64) if toy else (2**29, 8192)
    source = torch.ones(count, device=device)
    target = torch.empty_like(source)
    a, b = (torch.randn(width, width, device=device) for _ in range(2))
    product = torch.empty_like(a)
    times = harness.alternate(
        {
            "copy": lambda: target.copy_(source),
            "float32": with_precision(lambda: torch.mm(a, b, out=product), False),
            "tf32": with_precision(lambda: torch.mm(a, b, out=product), True),
        },
        rounds=10,
        device=device,
    )
    median = harness.medians(times)
    return {
        "copy_bytes_per_s": 2 * source.nbytes / median["copy"],
        "float32_flops_per_s": 2 * width**3 / median["float32"],
        "tf32_flops_per_s": 2 * width**3 / median["tf32"],
    }


def share_of_ceiling(name: str, seconds: float, size: cost.Sizes, limits: dict[str, float]) -> dict[str, float]:
    """The time of our step at the machine's ceilings, and what share of them the measured time reaches."""
    narrow = "bfloat16" in name
    terms = cost.step_terms(cost.Sizes(**{**asdict(size), "number": 2 if narrow else 4}))
    # Products of bfloat16 are counted at the rate of TF32: an upper bound of their time.
    rate = limits["tf32_flops_per_s" if narrow or "TF32" in name else "float32_flops_per_s"]
    ceiling = cost.seconds_at(terms, limits["copy_bytes_per_s"], limits["float32_flops_per_s"], rate)
    return {
        "bytes": sum(term.bytes for term in terms),
        "flops": sum(term.flops for term in terms),
        "ceiling_ms": 1e3 * ceiling,
        "share": ceiling / seconds,
    }


def main() -> None:
    """Memory of each alone, then times in turn, then the share of the ceilings."""
    options = harness.arguments(__doc__, rounds=15).parse_args()
    device, size = harness.gpu(options), TOY if options.toy else cost.ARXIV
    data = power_law.problem(size.nodes, size.pairs, size.features, size.classes, device)
    limits = ceilings(device, options.toy)
    peak: dict[str, dict[str, float] | None] = {}
    left_out: dict[str, str] = {}
    steps: dict[str, Program] = {}
    builders = programs(data, size)
    for name, build in builders.items():
        try:
            peak[name] = memory_alone(build, device)
        except RuntimeError as error:  # out of memory is one of them
            left_out[name] = str(error).splitlines()[0]
            print(f"  {name} is left out: {left_out[name]}")
        harness.free()
    for name in peak:
        steps[name] = builders[name]()
    times = harness.alternate(steps, rounds=2 if options.toy else options.rounds, warm_up=5, device=device)
    facts = {
        "graph": "generated, power law, half edges, half random candidates",
        "nodes": size.nodes,
        "arcs": size.arcs,
        "largest degree": power_law.largest_degree(data.edge_index),
        "features": size.features,
        "classes": size.classes,
        "layers": f"{size.layers} x {size.width}",
    }
    median = harness.medians(times)
    shares = {name: share_of_ceiling(name, median[name], size, limits) for name in median if name.startswith(REWIRED)}
    harness.report(
        "step_gpu",
        times,
        PLAIN,
        facts,
        harness.folder(options),
        peak_gib=peak,
        left_out=left_out,
        ceilings=limits,
        counted=shares,
        terms=[asdict(term) for term in cost.step_terms(size)],
    )
    for name, gib in peak.items():
        if gib is not None:
            print(f"  {name:32s} {gib['allocated']:9.2f} GiB ({gib['reserved']:.2f} reserved)")
    print(", ".join(f"{name} {value:.3g}" for name, value in limits.items()))
    for name, row in shares.items():
        print(
            f"  {name}: {row['bytes'] / 1e9:.2f} GB and {row['flops'] / 1e9:.1f} G operations take"
            f" {row['ceiling_ms']:.2f} ms at the ceilings: {100 * row['share']:.0f} % reached"
        )


if __name__ == "__main__":
    main()
