"""Coefficients of `gumbel-mpnn estimate`: fitted to steps of several models and sizes, or checked on three other runs.

python benchmarks/estimate.py                  # measure this device and write its file of coefficients
python benchmarks/estimate.py --check          # three runs beside their estimates; fails if one is off by over 25 %
python benchmarks/estimate.py --toy            # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import harness  # before torch: it says how torch's threads wait

# isort: split
import numpy as np
import torch
from scipy.optimize import nnls
from torch.profiler import ProfilerActivity, profile

import gumbel_mpnn as gm
import power_law
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.runs.coefficients import FOLDER, Coefficients, coefficients
from gumbel_mpnn.runs.estimating import GIB, Bounds, GraphSize, estimate_size
from gumbel_mpnn.training import Task
from gumbel_mpnn.training.trainer import Trainer

FILES = Path(gm.__file__).parent / "runs" / FOLDER
WITHIN = 0.25
CLASSES = 16
IN_BFLOAT16 = {"memory": 0.75, "time": 0.61}
"""Of float32, from benchmarks/results/step_gpu.json."""


@dataclass(frozen=True)
class Case:
    """A model on a generated graph; half of its pairs are candidates, which plain models do not see."""

    model: str
    nodes: int
    pairs: int
    features: int
    width: int
    layers: int
    more: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """Settings of the model, in float32."""
        stack = [f"model.hidden_channels={self.width}", f"model.num_layers={self.layers}", "train.tf32=false"]
        if self.model == "gumbel-mpnn":
            stack += ["rewiring.candidates=data"]
        stand_in = power_law.problem(4, 4, 1, 2, torch.device("cpu"))
        return RunSpec.of(stand_in, self.model, preset=None, overrides=[*stack, *self.more]).settings

    @property
    def size(self) -> GraphSize:
        """Counts of the graph."""
        edges = self.pairs // 2
        return GraphSize(self.nodes, edges, self.features, CLASSES, candidates=self.pairs - edges)

    def __str__(self) -> str:
        backbone = "".join(f" {word.partition('=')[2]}" for word in self.more)
        return (
            f"{self.model}{backbone} {self.layers} x {self.width}, {self.nodes:,} nodes, {self.pairs // 2:,} edges,"
            f" {self.features} features"
        )


BILINEAR = ("rewiring.scorer=bilinear", "rewiring.channels=64")


def cases_to_fit(on_gpu: bool, toy: bool) -> list[Case]:
    """Cases in which each of nodes, arcs, features and width is large in turn."""
    scale = 1 if toy else 500 if on_gpu else 15
    return [
        Case("mlp", 600 * scale, 600 * scale, 64, 128, 2),
        Case("gcn", 600 * scale, 1200 * scale, 64, 64, 2),
        Case("gcn", 600 * scale, 9600 * scale, 64, 64, 2),
        Case("gcn", 600 * scale, 4800 * scale, 64, 256, 3),
        Case("gcn", 1200 * scale, 2400 * scale, 128, 96, 2),
        Case("sage", 600 * scale, 4800 * scale, 256, 128, 2),
        Case("sage", 1200 * scale, 2400 * scale, 64, 96, 2),
        Case("sage", 300 * scale, 2400 * scale, 120, 240, 2),
        Case("gumbel-mpnn", 600 * scale, 1200 * scale, 64, 64, 2),
        Case("gumbel-mpnn", 600 * scale, 9600 * scale, 64, 64, 2),
        Case("gumbel-mpnn", 600 * scale, 4800 * scale, 128, 128, 2),
        Case("gumbel-mpnn", 600 * scale, 2400 * scale, 256, 64, 3),
        Case("gumbel-mpnn", 600 * scale, 4800 * scale, 256, 256, 3, BILINEAR),
        Case("gumbel-mpnn", 1200 * scale, 4800 * scale, 64, 128, 2, BILINEAR),
        Case("gumbel-mpnn", 20, 40, 4, 8, 2),
    ]


def cases_to_check(on_gpu: bool, toy: bool) -> list[Case]:
    """Three other runs."""
    scale = 1 if toy else 400 if on_gpu else 10
    return [
        Case("sage", 1000 * scale, 5000 * scale, 100, 160, 2),
        Case("gumbel-mpnn", 800 * scale, 7000 * scale, 160, 96, 2),
        Case("gumbel-mpnn", 700 * scale, 3000 * scale, 200, 192, 3, BILINEAR),
    ]


def measured(case: Case, rounds: int, device: torch.device) -> dict[str, float]:
    """Bytes at the peak of training, with graph and features, and seconds of a step."""
    harness.free()
    settings = case.settings
    before = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    data = power_law.problem(case.nodes, case.pairs, case.features, CLASSES, device)
    task = Task.for_model(data, settings, device)
    del data
    if device.type == "cuda":
        trainer = Trainer(task, settings, [Replica(0, 0)])
        epoch(trainer)  # what is laid out at first use is not part of a step
        peak = harness.peak_gib(lambda: [epoch(trainer) for _ in range(4)], device)
        assert peak is not None
        memory = int(peak["allocated"] * GIB) - before
    else:
        memory = bytes_on_cpu(task, settings)
        trainer = Trainer(task, settings, [Replica(0, 0)])
        epoch(trainer)
    return {"memory": memory, "step_s": seconds(trainer.step, rounds, device)}


def seconds(program: Callable[[], object], rounds: int, device: torch.device) -> float:
    """Median of a GPU's seconds; on a CPU the fewest of one thread's own, which other programs disturb least."""
    if device.type == "cuda":
        return statistics.median(harness.seconds(program, device) for _ in range(rounds))
    return fewest(program, rounds, time.process_time)


def fewest(program: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    """The fewest seconds of `rounds` calls."""
    times = []
    for _ in range(rounds):
        start = clock()
        program()
        times.append(clock() - start)
    return min(times)


def epoch(trainer: Trainer) -> None:
    """What `fit` does in an epoch."""
    trainer.step()
    trainer.evaluate()


def bytes_on_cpu(task: Task, settings: Settings) -> int:
    """Bytes of tensors at the peak of two epochs, with graph and features."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        trainer = Trainer(task, settings, [Replica(0, 0)])
        for _ in range(2):
            epoch(trainer)
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        watched.export_chrome_trace(str(trace))
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    first = min(events, key=lambda event: event["ts"])["args"]
    start = first["Total Allocated"] - first["Bytes"]
    peak: int = max(event["args"]["Total Allocated"] for event in events) - start
    return peak + task.features.numel() * 4 + layout_bytes(task)


def layout_bytes(task: Task) -> int:
    """Bytes of the graph as it is laid out before the first step."""
    tensors: dict[int, int] = {}
    graph = task.graph
    for value in (*vars(graph).values(), *vars(graph.arcs).values()):
        if isinstance(value, torch.Tensor):
            tensors[value.data_ptr()] = value.numel() * value.element_size()
    return sum(tensors.values())


def fitted(rows: list[dict[str, float]], columns: list[str], target: str, known: str | None = None) -> dict[str, float]:
    """Coefficients of `columns`, none negative, by which the sum of a row is relatively near its `target`."""
    goal = np.array([row[target] for row in rows])
    rest = goal - (0 if known is None else np.array([row[known] for row in rows]))
    matrix = np.array([[row[name] for name in columns] for row in rows]) / goal[:, None]
    scale = np.maximum(matrix.max(axis=0), 1e-300)
    found, _ = nnls(matrix / scale, rest / goal)
    return dict(zip(columns, (found / scale).tolist(), strict=True))


def row_of(bounds: Bounds, memory: float, step_s: float) -> dict[str, float]:
    """What is known and measured of a case."""
    return {
        "node_share": bounds.nodes,
        "arc_share": bounds.arcs,
        "arc_bytes": bounds.sizes.arcs,
        "features": 4 * bounds.sizes.inputs,
        "memory": memory,
        "start_s": 1,
        "row_s": bounds.work.rows,
        "number_s": bounds.work.numbers,
        "weighed_s": bounds.work.weighed,
        "byte_s": bounds.nodes,
        "product_s": bounds.work.products,
        "step_s": step_s,
    }


def all_fitted(rows: list[dict[str, float]]) -> dict[str, float]:
    """Coefficients of memory and step."""
    memory = fitted(rows, ["node_share", "arc_share", "arc_bytes"], "memory", "features")
    return memory | fitted(rows, ["start_s", "row_s", "number_s", "weighed_s", "byte_s", "product_s"], "step_s")


def search_costs(on_gpu: bool, toy: bool) -> dict[str, float]:
    """Time of the searches for candidates, which `fit` does on the CPU: with all threads, or of one."""
    clock = time.perf_counter if on_gpu else time.process_time
    count = 300 if toy else 12_000
    times = []
    for features in (32, 512):
        data = power_law.problem(count, 4 * count, features, CLASSES, torch.device("cpu"))
        del data.candidate_index
        search = gm.candidates.Local(per_node=5)
        times.append(fewest(partial(search, data), 3, clock))
    number = max(times[1] - times[0], 0.0) / (count**2 * 480)
    hops = gm.candidates.TwoHop(per_node=3)
    data.x = data.x[:, :32].contiguous()
    walk = fewest(partial(hops, data), 3, clock)
    return {
        "compared_number_s": number,
        "compared_pair_s": max(times[0] / count**2 - 32 * number, 0.0),
        "two_hop_arc_s": walk / (2 * data.edge_index.shape[1]),
    }


def tf32_product_s(device: torch.device) -> float:
    """Time of an operation of a product in TF32."""
    side = 8192
    one, other = (torch.randn(side, side, device=device) for _ in range(2))
    with harness.tf32(True):
        one @ other
        times = [harness.seconds(lambda: one @ other, device) for _ in range(5)]
    return statistics.median(times) / (2 * side**3)


def measure(device: torch.device, rounds: int, toy: bool) -> Coefficients:
    """Coefficients of this machine."""
    on_gpu = device.type == "cuda"
    rows = []
    for case in cases_to_fit(on_gpu, toy):
        found = measured(case, rounds, device)
        rows.append(row_of(Bounds.of(case.size, case.settings, on_gpu), **found))
        print(f"  {case}: {found['memory'] / GIB:.3f} GiB, {1e3 * found['step_s']:.2f} ms")
    values = all_fitted(rows)
    where = harness.machine()
    name = where["gpu"] if on_gpu else f"one thread of {where['processor']}"
    shares = IN_BFLOAT16 if on_gpu else dict.fromkeys(IN_BFLOAT16, 1.0)
    return Coefficients(
        on=f"{name}, torch {where['torch']}, by benchmarks/estimate.py",
        memory_gib=torch.cuda.get_device_properties(device).total_memory / GIB if on_gpu else 0.0,
        product_tf32_s=tf32_product_s(device) if on_gpu else values["product_s"],
        bfloat16_memory=shares["memory"],
        bfloat16_time=shares["time"],
        **values,
        **search_costs(on_gpu, toy),
    )


def check(device: torch.device, rounds: int, toy: bool) -> list[dict[str, Any]]:
    """Print and return three runs beside their estimates."""
    on_gpu, rows = device.type == "cuda", list[dict[str, Any]]()
    for case in cases_to_check(on_gpu, toy):
        found = measured(case, rounds, device)
        said = estimate_size(case.size, case.settings, "h200" if on_gpu else "cpu")
        row: dict[str, Any] = {
            "case": str(case),
            "gib": found["memory"] / GIB,
            "gib_ratio": said.memory / found["memory"],
            "ms": 1e3 * found["step_s"],
            "ms_ratio": said.step_seconds / found["step_s"],
        }
        rows.append(row)
        print(
            "  {case}: {gib:.3f} GiB, estimated {gib_ratio:.2f} of it; {ms:.2f} ms, {ms_ratio:.2f} of it".format(**row)
        )
    return rows


def write(values: Coefficients, path: Path) -> None:
    """Write a file of coefficients."""
    lines = ["# Written by benchmarks/estimate.py; runs/coefficients.py says what the numbers mean.\n"]
    for name, value in asdict(values).items():
        lines.append(f"{name} = {json.dumps(value) if isinstance(value, str) else f'{value:.4g}'}\n")
    path.write_text("".join(lines), encoding="utf-8")
    assert math.isclose(coefficients(path.stem).arc_bytes, values.arc_bytes, rel_tol=1e-3)


def main() -> None:
    """Measure and write, or check."""
    parser = harness.arguments(__doc__, rounds=9)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    rounds = 2 if options.toy else options.rounds
    if device.type == "cpu":
        torch.set_num_threads(1)
    if options.check:
        print("estimate, of what was measured:")
        rows = check(device, rounds, options.toy)
        if device.type == "cuda":
            harness.save("estimate", {"facts": {}, "rows": rows}, harness.folder(options))
        if any(abs(row[ratio] - 1) > WITHIN for row in rows for ratio in ("gib_ratio", "ms_ratio")) and not options.toy:
            sys.exit(f"an estimate is off by more than {WITHIN:.0%}")
        return
    print("estimate: case: memory, time of a step")
    values = measure(device, rounds, options.toy)
    print("\n".join(f"  {name} {value}" for name, value in asdict(values).items()))
    if not options.toy:
        write(values, FILES / f"{'h200' if device.type == 'cuda' else 'cpu'}.toml")


if __name__ == "__main__":
    main()
