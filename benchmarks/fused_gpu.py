"""What the fused layer kernels are worth on a GPU: ours, plain torch, and torch.compile, forward and backward.

`activate` is bias, norm, ReLU and dropout of a layer; `linear_sum` adds several linear maps up, as a GraphSAGE layer
with a shortcut does. Shapes are those of `reproduce`: 30 runs of minesweeper at once (batch norm, 64 wide), 30 of
pubmed (layer norm, 256 wide), and one run at the size of ogbn-arxiv. Every program is a CUDA graph, as in training.

python benchmarks/fused_gpu.py          # about two minutes on an H200, most of it torch.compile
python benchmarks/fused_gpu.py --toy    # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

from collections.abc import Callable

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.activation import activate
from gumbel_mpnn.nn.fused_linear import linear_sum
from gumbel_mpnn.nn.modules import make_norm
from gumbel_mpnn.training.replay import Replay

SHAPES = {
    "minesweeper": (30, 10_000, 64, "batch"),
    "pubmed": (30, 19_717, 256, "layer"),
    "arxiv": (1, 169_343, 256, "batch"),
}
DROPOUT = 0.5

Program = Callable[[], None]


def plain_activate(x: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, kind: str) -> Tensor:
    """Bias, norm, ReLU and dropout by torch, for every replica."""
    x = x + bias
    if kind == "layer":
        x = F.layer_norm(x, x.shape[-1:])
    else:
        var, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        x = (x - mean) * (var + 1e-5).rsqrt()
    return F.dropout(torch.relu(torch.addcmul(shift, x, weight)), DROPOUT)


def plain_sum(xs: list[Tensor], weights: list[Tensor]) -> Tensor:
    """Three linear maps added up by torch."""
    total = torch.bmm(xs[0], weights[0])
    for x, weight in zip(xs[1:], weights[1:], strict=True):
        total = torch.baddbmm(total, x, weight)
    return total


def captured(forward: Callable[[], Tensor], leaves: list[Tensor], device: torch.device) -> Program:
    """Forward and backward as one CUDA graph."""
    grad = torch.ones_like(forward())

    def both() -> None:
        for leaf in leaves:
            leaf.grad = None
        forward().backward(grad)

    return Replay(both, device)


def activations(shape: tuple[int, int, int, str], device: torch.device, compile: bool) -> dict[str, Program]:
    """The three programs for what follows a layer."""
    replicas, nodes, width, kind = shape
    x = torch.randn(replicas, nodes, width, device=device, requires_grad=True)
    bias = torch.zeros(replicas, 1, width, device=device, requires_grad=True)
    norm = make_norm(kind, replicas, width)
    rng = ReplicaRNG(range(replicas), "train", device)
    norm.init_parameters(ReplicaRNG(range(replicas), "init"))
    norm = norm.to(device).train()
    weight, shift = norm.get_parameter("weight"), norm.get_parameter("bias")
    leaves = [x, bias, weight, shift]
    compiled = torch.compile(plain_activate, dynamic=False) if compile else plain_activate
    return {
        "ours": captured(lambda: activate(x, bias, norm, DROPOUT, rng), leaves, device),
        "torch": captured(lambda: plain_activate(x, bias, weight, shift, kind), leaves, device),
        "torch.compile": captured(lambda: compiled(x, bias, weight, shift, kind), leaves, device),
    }


def sums(shape: tuple[int, int, int, str], device: torch.device, compile: bool) -> dict[str, Program]:
    """The three programs for a sum of three linear maps."""
    replicas, nodes, width, _ = shape
    xs = [torch.randn(replicas, nodes, width, device=device, requires_grad=True) for _ in range(3)]
    weights = [torch.randn(replicas, width, width, device=device, requires_grad=True) for _ in range(3)]
    leaves = [*xs, *weights]
    compiled = torch.compile(plain_sum, dynamic=False) if compile else plain_sum
    return {
        "ours": captured(lambda: linear_sum(list(zip(xs, weights, strict=True))), leaves, device),
        "torch": captured(lambda: plain_sum(xs, weights), leaves, device),
        "torch.compile": captured(lambda: compiled(xs, weights), leaves, device),
    }


def main() -> None:
    """Time all and print the ratios."""
    options = harness.arguments(__doc__, rounds=15).parse_args()
    device = harness.gpu(options)
    torch.backends.cuda.matmul.allow_tf32 = True
    shapes = {"toy": (2, 50, 8, "layer")} if options.toy else SHAPES
    times: dict[str, list[float]] = {}
    for name, shape in shapes.items():
        for part, make in (("activate", activations), ("linear_sum", sums)):
            programs = make(shape, device, compile=not options.toy)
            found = harness.alternate(
                {f"{part}, {name}, {who}": program for who, program in programs.items()},
                rounds=2 if options.toy else options.rounds,
                warm_up=5,
                device=device,
            )
            times |= found
            del programs
            harness.free()
    harness.report("fused_gpu", times, next(iter(times)), {"dropout": DROPOUT}, harness.folder(options))


if __name__ == "__main__":
    main()
