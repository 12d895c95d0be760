"""Where the time of training goes: a step and an evaluation of a tuned model, and the kernels that they are made of.

Several runs at once, as `reproduce` trains them; what is printed is not kept.

python benchmarks/profile_step.py minesweeper sage --runs 30
python benchmarks/profile_step.py --toy   # a generated graph, in seconds, on a CPU too
"""

from __future__ import annotations

from collections.abc import Callable

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
from torch.profiler import ProfilerActivity, profile

from gumbel_mpnn.config import Replica
from gumbel_mpnn.runs import DataReader, RunSpec
from gumbel_mpnn.training import Task, prepare
from gumbel_mpnn.training.precision import matmul_precision
from gumbel_mpnn.training.trainer import Trainer
from replicas_gpu import WARM_UP, generated

SHOWN = 20
"""Kernels that are listed, those that take longest first."""


def trainer_of(dataset: str, model: str, runs: int, device: torch.device, toy: bool) -> Trainer:
    """The first runs of a tuned model."""
    source = generated(60, 120, 30, 4, 2) if toy else dataset
    settings = RunSpec.of(source, model).settings
    data, _ = DataReader().read(source, settings.data, None, None)
    task = Task.for_model(prepare(data, settings), settings, device)
    splits = data.train_mask.shape[1]
    return Trainer(task, settings, [Replica(k % splits, k // splits) for k in range(runs)])


def kernels(program: Callable[[], None], device: torch.device, times: int = 3) -> list[tuple[float, float, str]]:
    """Milliseconds, number and name of every kernel in a call; of every operation where there is no GPU."""
    kind = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    with profile(activities=[kind]) as found:
        for _ in range(times):
            program()
        harness.now(device)
    events = found.key_averages()
    spent = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    return sorted(((getattr(e, spent) / 1e3 / times, e.count / times, e.key) for e in events), reverse=True)


def main() -> None:
    """Step and evaluation, their times and their kernels."""
    parser = harness.arguments(__doc__, rounds=20)
    parser.add_argument("dataset", nargs="?", default="cora")
    parser.add_argument("model", nargs="?", default="gcn")
    parser.add_argument("--runs", type=int, default=30, help="how many at once")
    options = parser.parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    runs = 2 if options.toy else options.runs
    trainer = trainer_of(options.dataset, options.model, runs, device, options.toy)
    name = "a generated graph" if options.toy else options.dataset
    with matmul_precision(trainer.settings):
        for _ in range(WARM_UP):
            trainer.step()
            trainer.evaluate()
        for program in (trainer.step, trainer.evaluate):
            start = harness.now(device)
            for _ in range(options.rounds):
                program()
            each = (harness.now(device) - start) / options.rounds * 1e3
            print(f"{name}, {options.model}, {len(trainer.replicas)} runs at once, {program.__name__}: {each:.2f} ms")
            found = kernels(program, device)
            total = sum(ms for ms, _, _ in found) or 1.0
            for ms, count, kernel in found[:SHOWN]:
                print(f"  {ms:8.3f} ms  {ms / total:4.0%}  {count:5.0f} times  {kernel[:80]}")


if __name__ == "__main__":
    main()
