"""SDRF: curvature of all edges and seconds per step, beside a correct dense version where that fits in memory.

python benchmarks/sdrf.py                # writes results/sdrf.json and docs/results/sdrf.md
python benchmarks/sdrf.py --toy          # seconds, for the tests; nothing is written

Every row is a process of its own, so that its peak of memory is its own; Python, torch and the data are in it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness  # before torch: it sets how threads wait

# isort: split
import torch

import gumbel_mpnn as gm
from dense_sdrf import step as dense_step
from gumbel_mpnn.baselines.sdrf_steps import Flow

PAGE = Path(__file__).parents[1] / "docs" / "results" / "sdrf.md"
TAU, BOUND, SEED = 1.0, 0.5, 0
STEPS = {"cora": 1000, "pubmed": 1000, "squirrel-unfiltered": 300, "tolokers": 300, "ogbn-arxiv": 1000, "toy": 20}
DENSE = {"cora": 3, "toy": 3}
"""Steps of the dense version; elsewhere a step takes more than ten minutes, or its matrices do not fit."""


def problem(name: str) -> gm.PairGraph:
    """The graph of a data set, or a random one for the tests."""
    if name == "toy":
        generator = torch.Generator().manual_seed(0)
        return gm.PairGraph.build(torch.randint(60, (2, 150), generator=generator), 60)
    data = gm.load(name, features=name != "ogbn-arxiv")
    return gm.PairGraph.build(data.edge_index, int(data.num_nodes))


def measure(name: str) -> dict[str, Any]:
    """The figures of one graph: ours, then the dense version on the same random numbers."""
    graph = problem(name)
    warm = Flow(problem("toy"), 2, TAU, BOUND, SEED)
    warm.advance(2)  # machine code is loaded
    start = time.perf_counter()
    flow = Flow(graph, STEPS[name], TAU, BOUND, SEED)
    counted = time.perf_counter()
    flow.advance(STEPS[name])
    done = time.perf_counter()
    row = {
        "graph": name,
        "nodes": graph.num_nodes,
        "edges": graph.num_pairs,
        "largest_degree": int(graph.degree().max()),
        "curvature_s": counted - start,
        "steps": flow.done,
        "step_ms": 1e3 * (done - counted) / flow.done,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "dense_step_ms": None,
        "times_faster": None,
    }
    if name in DENSE:
        seconds = _dense_seconds(graph, DENSE[name])
        row |= {"dense_step_ms": 1e3 * seconds, "times_faster": 1e3 * seconds / row["step_ms"]}
    return row


def _dense_seconds(graph: gm.PairGraph, steps: int) -> float:
    """Seconds of a dense step; it must do what ours does."""
    flow = Flow(graph, steps, TAU, BOUND, SEED)
    a = torch.zeros(graph.num_nodes, graph.num_nodes)
    a[graph.pair_index[0], graph.pair_index[1]] = a[graph.pair_index[1], graph.pair_index[0]] = 1
    start = time.perf_counter()
    for uniform in flow.uniforms:
        dense_step(a, float(uniform), TAU, BOUND)
    seconds = (time.perf_counter() - start) / steps
    flow.advance(steps)
    if flow.pairs.T.tolist() != a.triu().nonzero().tolist():
        raise SystemExit(f"after {steps} steps the dense version has another graph than ours")
    return seconds


def child(*arguments: str, **environment: str) -> str:
    """What this script prints in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def compile_seconds() -> float:
    """What the very first use costs: all functions compiled, with nothing kept from before."""
    with tempfile.TemporaryDirectory() as folder:
        return float(child("--compile", NUMBA_CACHE_DIR=folder))


def page(rows: list[dict[str, Any]], compiling: float, machine: dict[str, str]) -> str:
    """The tables as Markdown."""
    lines = [
        "# Curvature and SDRF",
        "",
        "Made by `python benchmarks/sdrf.py`; the figures are in `benchmarks/results/sdrf.json`.",
        f"{machine['processor']}, {machine['threads']} threads, torch {machine['torch']}; τ = {TAU:g}, removal bound"
        f" {BOUND:g}, seed {SEED}.",
        "",
        "Curvature is counted once, for all edges, on all threads; steps run on one. Memory is the peak of the whole",
        "process, Python, torch and the data included. The dense version (`benchmarks/dense_sdrf.py`) is correct and",
        "makes the same steps, but counts everything anew in each and judges the candidates one by one, as the code",
        "published with the paper does; it stands where a step takes less than ten minutes.",
        f"The first use after an installation compiles for {compiling:.0f} s; then that is kept on disk.",
        "",
        "| graph | nodes | edges | largest degree | curvature s | steps | ms per step | peak GiB | dense ms per step |"
        " times faster |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        dense = f"{row['dense_step_ms']:,.0f} | {row['times_faster']:,.0f}" if row["dense_step_ms"] else "– | –"
        lines.append(
            f"| {row['graph']} | {row['nodes']:,} | {row['edges']:,} | {row['largest_degree']:,} |"
            f" {row['curvature_s']:.3f} | {row['steps']:,} | {row['step_ms']:.3f} | {row['peak_gib']:.2f} | {dense} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every graph, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--one", metavar="GRAPH", help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    if options.compile:
        start = time.perf_counter()
        Flow(problem("toy"), 2, TAU, BOUND, SEED).advance(2)
        print(time.perf_counter() - start)
        return
    if options.toy:
        print(page([measure("toy")], 0.0, harness.machine()))
        return
    rows = [json.loads(child("--one", name)) for name in STEPS if name != "toy"]
    compiling = compile_seconds()
    text = page(rows, compiling, harness.machine())
    print(text)
    result = {"benchmark": "sdrf", "compile_s": compiling, "rows": rows, "machine": harness.machine()}
    harness.RESULTS.mkdir(exist_ok=True)
    (harness.RESULTS / "sdrf.json").write_text(json.dumps(result, indent=1) + "\n")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
