"""Which operations make a run's last bits depend on the runs trained with it on a GPU, and what avoiding that costs.

Every operation of a step is computed for groups of runs and for each run alone, and compared bit for bit. Then whole
runs are trained in groups and alone. Last, a product for each run, as in `replica`, is timed against torch's
batched product.

python benchmarks/same_seed_gpu.py          # less than a minute on an H200
python benchmarks/same_seed_gpu.py --toy    # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.graph import PairGraph, WeightedGraph
from gumbel_mpnn.nn import ReplicaRNG, layers, replica
from gumbel_mpnn.nn.layers import activate, linear_sum, make_norm
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.replay import Replay
from gumbel_mpnn.training.trainer import Trainer
from replicas_gpu import MODELS, SPLITS, cora, ours

SIZES = (2, 6, 10)
EPOCHS = 20
Operation = Callable[..., Tensor]


def operations(graph: PairGraph) -> dict[str, tuple[Operation, list[tuple[int, ...]]]]:
    """Each operation, with the shapes of its arguments without the replica axis."""
    nodes, pairs, arcs = graph.num_nodes, graph.num_pairs, graph.num_arcs
    found: dict[str, tuple[Operation, list[tuple[int, ...]]]] = {}
    for fan_in, out in ((256, 256), (256, 7), (64, 64), (500, 256)):
        found[f"bmm {nodes} x {fan_in} x {out}"] = torch.bmm, [(nodes, fan_in), (fan_in, out)]
        found[f"bmm {fan_in} x {nodes} x {out}"] = (
            lambda x, y: torch.bmm(x.transpose(1, 2), y),
            [(nodes, fan_in), (nodes, out)],
        )
    found["product by a loop"] = loop, [(nodes, 256), (256, 256)]
    found["narrow linear_sum, with gradients"] = gradients_of(lambda x, w: linear_sum([(x, w)])), [(nodes, 64), (64, 7)]
    found["our product"] = gradients_of(replica.product), [(nodes, 256), (256, 7)]
    found["our sums"] = (
        lambda x: torch.cat([replica.total(x[..., 0])[:, None], replica.over_nodes(x)], 1),
        [(nodes, 7)],
    )
    found["sum [R, P]"] = lambda x: x.sum(-1), [(pairs,)]
    found["sum of nodes [R, N, 256]"] = lambda x: x.sum(1), [(nodes, 256)]
    found["sum of nodes [R, N, 7]"] = lambda x: x.sum(1), [(nodes, 7)]
    found["sum of chunks [R, 11, 256]"] = lambda x: x.sum(1), [(11, 256)]
    for width in (1, 7, 64, 256):
        found[f"walk, {width} wide, with gradients"] = (
            gradients_of(lambda w, x: graph.propagate(x, w)),
            [(pairs,), (nodes, width)],
        )
        found[f"pair scores, {width} wide, with gradients"] = (
            gradients_of(graph.pair_scores),
            [(nodes, width), (nodes, width)],
        )
    found["graph convolution, with gradients"] = (
        gradients_of(lambda w, x: WeightedGraph(graph, replica.sigmoid(w), x.dtype).symmetric(x)),
        [(pairs,), (nodes, 64)],
    )
    found["attention, with gradients"] = (
        gradients_of(lambda w, x, a, b: WeightedGraph(graph, replica.sigmoid(w), x.dtype).attend(x, a, b, 0.2)),
        [(pairs,), (nodes, 64), (2, nodes), (2, nodes)],
    )
    for norm in ("none", "layer", "batch"):
        found[f"activate, norm {norm}, with gradients"] = gradients_of(normed(norm)), [(nodes, 256), (1, 256)]
    found["log_softmax"] = lambda x: x.log_softmax(-1), [(nodes, 7)]
    found["cross_entropy"] = (
        lambda x: F.cross_entropy(
            x.transpose(1, 2), torch.zeros(x.shape[:2], dtype=torch.long, device=x.device), reduction="none"
        ),
        [(nodes, 7)],
    )
    found["normalize, with gradients"] = gradients_of(lambda x: F.normalize(x, dim=-1)), [(nodes, 64)]
    found["sigmoid"] = torch.sigmoid, [(arcs,)]
    return found


def loop(x: Tensor, weight: Tensor) -> Tensor:
    """A product for each run."""
    return torch.stack([a @ b for a, b in zip(x, weight, strict=True)])


def normed(norm: str) -> Operation:
    """Bias, norm, ReLU and dropout of a layer."""

    def operation(x: Tensor, bias: Tensor) -> Tensor:
        module = make_norm(norm, len(x), x.shape[2])
        rng = ReplicaRNG([0] * len(x), "train", x.device)
        module.init_parameters(rng)
        return activate(x, bias, module.to(x.device), 0.0, rng)

    return operation


def gradients_of(operation: Operation) -> Operation:
    """The result and all gradients, flat, [R, ...]."""

    def both(*arguments: Tensor) -> Tensor:
        leaves = [argument.detach().requires_grad_() for argument in arguments]
        out = operation(*leaves)
        # The gradient that reaches a row must not depend on the other rows.
        factor = torch.arange(out[0].numel(), device=out.device).view(out.shape[1:]).cos()
        grads = torch.autograd.grad((out * factor).sum(), leaves)
        return torch.cat([tensor.detach().flatten(1) for tensor in (out, *grads)], dim=1)

    return both


def compare(graph: PairGraph, device: torch.device) -> dict[str, list[int]]:
    """For each operation, the sizes of groups in which a row differs from the same row alone."""
    differs: dict[str, list[int]] = {}
    for name, (operation, shapes) in operations(graph).items():
        generator = torch.Generator(device).manual_seed(0)
        given = [torch.randn(max(SIZES), *shape, device=device, generator=generator) for shape in shapes]
        alone = [operation(*(x[k : k + 1].clone() for x in given))[0] for k in range(max(SIZES))]
        differs[name] = []
        for size in SIZES:
            together = operation(*(x[:size].clone() for x in given))
            if not all(torch.equal(together[k], alone[k]) for k in range(size)):
                differs[name].append(size)
    return differs


def trained(data: object, model: str, options: list[str], epochs: int) -> dict[int, int | None]:
    """For groups of each size, the first epoch in which a run differs from the same run alone."""
    chosen = ["model.hidden_channels=64", "train.patience=0", f"train.epochs={epochs}", *options]
    settings = RunSpec.of(data, model, preset=None, overrides=chosen).settings
    task = Task.for_model(data, settings, data.x.device)  # type: ignore[attr-defined]
    replicas = [Replica(k % SPLITS, k // SPLITS) for k in range(max(SIZES))]
    curves = {}
    for group in ([one] for one in replicas):
        curves[group[0]] = curve(Trainer(task, settings, group), epochs)[0]
    first: dict[int, int | None] = {}
    for size in SIZES:
        found = curve(Trainer(task, settings, replicas[:size]), epochs)
        same = torch.stack([found[k] == curves[replicas[k]] for k in range(size)]).all(-1).all(0)
        first[size] = None if same.all() else int((~same).nonzero()[0]) + 1
    return first


def curve(trainer: Trainer, epochs: int) -> Tensor:
    """Training loss and validation loss of every epoch, [R, epochs, 2]."""
    for _ in range(epochs):
        trainer.step()
        trainer.evaluate()
    return trainer.best.history[:, :epochs, [0, 2]].clone()


def costs(data: object, device: torch.device, toy: bool, rounds: int) -> dict[str, float]:
    """Milliseconds of a run's epoch, as it is and with torch's batched products, and of a run's product."""
    count, width = (3, 8) if toy else (30, 256)
    replicas = [Replica(k % SPLITS, k // SPLITS) for k in range(count)]
    programs: dict[str, Callable[[], object]] = {}
    for model, title in MODELS.items():
        for size in (64, width):
            programs[f"{title}, {count} runs, {size} wide"] = ours(data, model, size, replicas)  # type: ignore[arg-type]
            with batched_products():
                programs[f"{title}, {count} runs, {size} wide, batched products"] = body = ours(
                    data,  # type: ignore[arg-type]
                    model,
                    size,
                    replicas,
                )
                for _ in range(5):  # captured
                    body()
    nodes = data.num_nodes  # type: ignore[attr-defined]
    for rows, inner, out in ((nodes, width, width), (width, nodes, width), (nodes, 64, 64)):
        x, weight = torch.randn(count, rows, inner, device=device), torch.randn(count, inner, out, device=device)
        for name, operation in {"batched": torch.bmm, "ours": replica.product, "a loop": loop}.items():
            body = Replay(lambda operation=operation, x=x, weight=weight: operation(x, weight), device)
            programs[f"product of {rows} x {inner} x {out}, {name}"] = body
    times = harness.medians(harness.alternate(programs, rounds=rounds, warm_up=5, device=device))
    return {name: 1e3 * value / count for name, value in times.items()}


@contextmanager
def batched_products() -> Iterator[None]:
    """Let torch multiply the matrices of all runs at once, as it would without `replica`."""

    def forward(ctx: Any, x: Tensor, weight: Tensor, start: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.bmm(x, weight) if start is None else torch.baddbmm(start, x, weight)

    def over_nodes(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return torch.bmm(x.transpose(1, 2), y)

    def add(out: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return out.baddbmm_(x, weight)

    with (
        mock.patch.object(replica._Product, "forward", staticmethod(forward)),
        mock.patch.object(replica._OuterSum, "forward", staticmethod(over_nodes)),
        mock.patch.object(layers, "add_product", add),
    ):
        yield


def main() -> None:
    """Compare, train, time and print."""
    options = harness.arguments(__doc__, rounds=9).parse_args()
    device = harness.gpu(options)
    name, data = cora(device, options.toy)
    epochs, rounds = (3, 2) if options.toy else (EPOCHS, options.rounds)
    with harness.tf32(False):
        operation_differs = compare(PairGraph.of(data), device)
        print(f"same_seed_gpu: graph {name}; sizes of groups in which a run's bits differ from those alone")
        for operation, sizes in operation_differs.items():
            print(f"  {operation:44s} {', '.join(map(str, sizes)) or 'none'}")
        cases = {
            "GCN": ("gcn", []),
            "GraphSAGE, batch norm": ("sage", ["model.norm=batch"]),
            "GAT": ("gat", ["model.heads=2"]),
            "Gumbel-MPNN, mixed": ("gumbel-mpnn", ["rewiring.scorer=mixed"]),
        }
        training_differs = {title: trained(data, *case, epochs) for title, case in cases.items()}
        print(f"first epoch, of {epochs}, in which a run differs from the same run alone, by size of group")
        for title, first in training_differs.items():
            print(f"  {title:44s} {', '.join(f'{size}: {epoch}' for size, epoch in first.items())}")
        ms = costs(data, device, options.toy, rounds)
    print("ms of a run")
    for program, value in ms.items():
        print(f"  {program:56s} {value:8.4f}")
    result = {"facts": {"graph": name}, "operations": operation_differs, "training": training_differs, "ms": ms}
    harness.save("same_seed_gpu", result, harness.folder(options))


if __name__ == "__main__":
    main()
