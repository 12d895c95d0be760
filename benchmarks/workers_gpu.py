"""Several processes that train on one GPU at the same time, as `reproduce --workers` does: is it more than in turn?

Four kinds of training, of the sizes of the paper's graphs, each a group of runs at once. Each kind is timed while
nobody else uses the GPU. Then two, four, eight and twelve processes train at the same time, and what each does in a
second is counted in seconds that it would have needed alone: their sum is 1 where sharing the GPU costs and gains
nothing. Under NVIDIA's MPS (CUDA_MPS_PIPE_DIRECTORY is set) the result has a file of its own.

python benchmarks/workers_gpu.py
python benchmarks/workers_gpu.py --toy   # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch

from gumbel_mpnn.config import Replica
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.trainer import Trainer
from replicas_gpu import SPLITS, WARM_UP, generated

SECONDS = 4.0
COUNTS = (2, 4, 8, 12)
EPOCHS_AT_ONCE = 5
"""Epochs between two looks at the clock, which wait for the device."""


@dataclass(frozen=True)
class Kind:
    """A graph and a model on it."""

    nodes: int
    edges: int
    features: int
    words: int
    model: str
    width: int
    layers: int
    norm: str
    runs: int


KINDS = {
    "minesweeper, SAGE 12 x 64": Kind(10_000, 39_402, 7, 2, "sage", 64, 12, "batch", 15),
    "tolokers, GCN 3 x 256": Kind(11_758, 519_000, 10, 10, "gcn", 256, 3, "layer", 15),
    "pubmed, GCN 2 x 256": Kind(19_717, 44_324, 500, 50, "gcn", 256, 2, "layer", 10),
    "cora, Gumbel-MPNN 2 x 256": Kind(2_708, 5_278, 1_433, 18, "gumbel-mpnn", 256, 2, "layer", 30),
}
TOY = {"toy, GCN 2 x 8": Kind(60, 120, 30, 4, "gcn", 8, 2, "layer", 3)}


def work(kind: Kind, device: torch.device, pipe: Connection) -> None:
    """Set up, then train for as many seconds as the pipe says and answer with the epochs of each of them."""
    torch.set_num_threads(1)
    data = generated(kind.nodes, kind.edges, kind.features, kind.words, 5).to(device)
    chosen = [f"model.hidden_channels={kind.width}", f"model.num_layers={kind.layers}", f"model.norm={kind.norm}"]
    chosen += ["train.patience=0"]
    if kind.model == "gumbel-mpnn":
        chosen += ["rewiring.scorer=bilinear", "rewiring.prior=0"]
    settings = RunSpec.of(data, kind.model, preset=None, overrides=[*chosen, "model.residual=true"]).settings
    task = Task.for_model(data, settings, device)
    trainer = Trainer(task, settings, [Replica(k % SPLITS, k // SPLITS) for k in range(kind.runs)])

    def train(epochs: int) -> None:
        for _ in range(epochs):
            trainer.step()
            trainer.evaluate()
            trainer.evaluations = 0  # room for more than the settings' epochs

    with harness.tf32(True):
        train(WARM_UP)
        pipe.send("ready")
        while (seconds := pipe.recv()) is not None:
            start, done, passed = harness.now(device), 0, 0.0
            while passed < seconds:
                train(EPOCHS_AT_ONCE)
                done, passed = done + EPOCHS_AT_ONCE, harness.now(device) - start
            pipe.send(done / passed)


@contextmanager
def processes(kinds: list[Kind], device: torch.device) -> Iterator[list[Connection]]:
    """The pipes of a process for each of the kinds, all set up."""
    spawning = multiprocessing.get_context("spawn")
    pipes, started = [], []
    for kind in kinds:
        ours, theirs = spawning.Pipe()
        started.append(spawning.Process(target=work, args=(kind, device, theirs), daemon=True))
        started[-1].start()
        theirs.close()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    yield pipes
    for pipe in pipes:
        pipe.send(None)
    for process in started:
        process.join()


def at_once(pipes: list[Connection], seconds: float, rounds: int) -> list[float]:
    """Epochs a second of the processes, all at work: the median of so many times."""
    samples = []
    for _ in range(rounds):
        for pipe in pipes:
            pipe.send(seconds)
        samples.append([pipe.recv() for pipe in pipes])
    return [statistics.median(rates) for rates in zip(*samples, strict=True)]


def main() -> None:
    """Every kind alone, then more and more processes."""
    options = harness.arguments(__doc__, rounds=1).parse_args()
    device = harness.gpu(options)
    kinds, counts, seconds = (TOY, (2,), 0.2) if options.toy else (KINDS, COUNTS, SECONDS)
    names = [list(kinds)[place % len(kinds)] for place in range(counts[-1])]
    with processes([kinds[name] for name in names], device) as pipes:
        alone = {name: at_once([pipe], seconds, options.rounds)[0] for name, pipe in zip(kinds, pipes, strict=False)}
        shares = {}
        for count in counts:
            rates = at_once(pipes[:count], seconds, options.rounds)
            shares[count] = [rate / alone[name] for rate, name in zip(rates, names[:count], strict=True)]
    under_mps = "CUDA_MPS_PIPE_DIRECTORY" in os.environ
    print(f"workers_gpu: {seconds} s each, {'with' if under_mps else 'without'} MPS")
    for name, rate in alone.items():
        print(f"  {name:32s} alone {rate:8.1f} epochs a second of {kinds[name].runs} runs")
    for count, each in shares.items():
        listed = " ".join(f"{share:.2f}" for share in each)
        print(f"  {count:2d} processes do {sum(each):.2f} of what one after the other does ({listed})")
    result = {
        "facts": {"seconds of a sample": seconds, "MPS": "on" if under_mps else "off"},
        "epochs_per_second_alone": alone,
        "runs_of_a_group": {name: kind.runs for name, kind in kinds.items()},
        "work_of_one_after_the_other": {str(count): sum(each) for count, each in shares.items()},
        "shares": {str(count): each for count, each in shares.items()},
        "rounds": options.rounds,
    }
    harness.save("workers_gpu_mps" if under_mps else "workers_gpu", result, harness.folder(options))


if __name__ == "__main__":
    main()
