"""What the benchmarks share: alternating timing of peers in one process, and a result file with the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# Threads that spin while they wait would time the neighbors' load; must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

RESULTS = Path(__file__).parent / "results"


def alternate(programs: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Seconds of every call: after a warm-up, one call of each program in turn, `rounds` times."""
    for program in programs.values():
        for _ in range(warm_up):
            program()
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            times[name].append(time.perf_counter() - start)
    return times


def report(name: str, times: Mapping[str, list[float]], baseline: str, facts: Mapping[str, Any], write: bool) -> None:
    """Print medians and their ratio to the baseline's, and write them to `results/<name>.json`."""
    medians = {program: statistics.median(values) for program, values in times.items()}
    print(f"{name}: {', '.join(f'{key} {value}' for key, value in facts.items())}")
    for program, seconds in medians.items():
        print(f"  {program:32s} {1e3 * seconds:9.2f} ms   {seconds / medians[baseline]:.3f} of {baseline}")
    if write:
        RESULTS.mkdir(exist_ok=True)
        result = {
            "benchmark": name,
            "facts": dict(facts),
            "median_ms": {program: 1e3 * seconds for program, seconds in medians.items()},
            "ratio_to": baseline,
            "ratio": {program: seconds / medians[baseline] for program, seconds in medians.items()},
            "rounds": len(next(iter(times.values()))),
            "machine": machine(),
        }
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def machine() -> dict[str, str]:
    """The processor and the versions."""
    import torch
    import torch_geometric

    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = models[0] if models else processor
    return {
        "processor": processor,
        "threads": str(torch.get_num_threads()),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }
