"""What the benchmarks share: alternating timing of peers in one process, peaks of memory, a file with the machine."""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbel_mpnn.cli import set_up

if TYPE_CHECKING:
    import torch

# As the command does, before torch is imported: threads that spin while they wait would time the neighbors' load.
set_up()

RESULTS = Path(__file__).parent / "results"


def arguments(doc: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="seconds, for the tests; writes only with --out")
    parser.add_argument("--rounds", type=int, default=rounds, help="samples of each program")
    parser.add_argument("--out", type=Path, help="folder for the JSON file in place of benchmarks/results")
    return parser


def folder(options: argparse.Namespace) -> Path | None:
    """Where the result goes; None, nowhere, for a toy that names no folder."""
    if options.out is not None:
        chosen: Path = options.out
        return chosen
    return None if options.toy else RESULTS


def gpu(options: argparse.Namespace) -> torch.device:
    """The GPU; a toy does without one and says so."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda:0")
    if not options.toy:
        raise SystemExit("this benchmark needs a GPU; --toy runs it on the CPU at toy size")
    print("no GPU: at toy size on the CPU")
    return torch.device("cpu")


def seconds(program: Callable[[], object], device: torch.device | None = None) -> float:
    """Seconds of one call; on a GPU from an event before it to one after it, when the work is done."""
    if device is None or device.type != "cuda":
        start = time.perf_counter()
        program()
        return time.perf_counter() - start
    import torch

    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    before.record()
    program()
    after.record()
    torch.cuda.synchronize(device)
    return before.elapsed_time(after) / 1e3


def now(device: torch.device) -> float:
    """The clock when all work so far is done."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def alternate(
    programs: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 3, device: torch.device | None = None
) -> dict[str, list[float]]:
    """Seconds of every call: after a warm-up, one call of each program in turn, `rounds` times."""
    for program in programs.values():
        for _ in range(warm_up):
            program()
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            times[name].append(seconds(program, device))
    return times


def peak_gib(program: Callable[[], object], device: torch.device) -> dict[str, float] | None:
    """GiB of the device's memory while `program` runs, everything that is alive counted; None on a CPU.

    `allocated` is what tensors take at the most; `reserved` what the process holds for them, with gaps.
    """
    import torch

    if device.type != "cuda":
        program()
        return None
    free()
    torch.cuda.reset_peak_memory_stats(device)
    program()
    torch.cuda.synchronize(device)
    return {
        "allocated": torch.cuda.max_memory_allocated(device) / 2**30,
        "reserved": torch.cuda.max_memory_reserved(device) / 2**30,
    }


def free() -> None:
    """Give back the memory of what nobody holds any more."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Whether a GPU may multiply float32 matrices in TF32 within."""
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    """Median of each program's seconds."""
    return {program: statistics.median(values) for program, values in times.items()}


def report(
    name: str,
    times: Mapping[str, list[float]],
    baseline: str,
    facts: Mapping[str, Any],
    folder: Path | None,
    **more: Any,
) -> None:
    """Print medians and their ratio to the baseline's, and write them, with `more`, to `<folder>/<name>.json`."""
    median = medians(times)
    print(f"{name}: {', '.join(f'{key} {value}' for key, value in facts.items())}")
    for program, value in median.items():
        print(f"  {program:32s} {1e3 * value:9.2f} ms   {value / median[baseline]:.3f} of {baseline}")
    result = {
        "facts": dict(facts),
        "median_ms": {program: 1e3 * value for program, value in median.items()},
        "range_ms": {program: [1e3 * min(values), 1e3 * max(values)] for program, values in times.items()},
        "ratio_to": baseline,
        "ratio": {program: value / median[baseline] for program, value in median.items()},
        "rounds": max(map(len, times.values())),
    }
    save(name, {**result, **more}, folder)


def save(name: str, result: Mapping[str, Any], folder: Path | None) -> None:
    """Write a result with its machine to `<folder>/<name>.json`."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        whole = {"benchmark": name, **result, "machine": machine()}
        (folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")


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
