"""Reading a graph of 10^6 to 10^8 undirected edges from npz, Parquet and CSV files: time by stage, and peak memory.

Random edges, a hundred for each node, 8 features. Each file is read in a process of its own, with the libraries
imported before. CPU seconds are shown too, since they depend less on what else the machine does.

python benchmarks/reading.py                          # up to 10^7 edges; a few minutes
python benchmarks/reading.py --edges 1e6,1e7,1e8      # needs 16 GB of memory and 4 GB of disk
python benchmarks/reading.py --toy                    # seconds; nothing is written
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import harness

# isort: split
import numpy as np

EDGES_OF_A_NODE, FEATURES, CLASSES = 100, 8, 5
FACTS = {"edges of a node": EDGES_OF_A_NODE, "features": FEATURES}
KINDS = ("npz", "parquet", "csv")
SIZES = (10**6, 10**7)
MOST_OF_CSV = 10**7
"""Larger CSV files are left out, which take minutes to write."""


def write(kind: str, edges: int, folder: Path) -> list[Path]:
    """Files of a random graph."""
    nodes = max(edges // EDGES_OF_A_NODE, 2)
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (edges, 2))
    labels, x = rng.integers(0, CLASSES, nodes), rng.random((nodes, FEATURES), dtype=np.float32)
    if kind == "npz":
        np.savez(folder / "graph.npz", edges=ends, node_labels=labels, node_features=x)
        return [folder / "graph.npz"]
    import pandas as pd

    columns = {f"x{column}": x[:, column] for column in range(FEATURES)}
    tables = {
        "nodes": pd.DataFrame({"id": np.arange(nodes), "label": labels, **columns}),
        "edges": pd.DataFrame(ends, columns=["source", "target"]),
    }
    for name, table in tables.items():
        path = folder / f"{name}.{kind}"
        if kind == "csv":
            table.to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False)
    return [folder / f"{name}.{kind}" for name in tables]


def measured(kind: str, files: list[str]) -> dict[str, Any]:
    """Times by stage and peak memory of reading, in this process."""
    import gumbel_mpnn as gm
    from gumbel_mpnn.data.csv_file import read_header, read_table
    from gumbel_mpnn.data.input_file import InputFile
    from gumbel_mpnn.data.npz import read_npz
    from gumbel_mpnn.training import data_hash

    def file_alone() -> None:
        if kind == "npz":
            read_npz(Path(files[0]))
        else:
            edges = InputFile(files[1])
            read_table(edges, read_header(edges), ["source", "target"], integers=True)

    def whole() -> Any:
        return gm.from_npz(files[0]) if kind == "npz" else gm.from_csv(files[0], files[1], "label")

    # Import what is imported when it is first used.
    with TemporaryDirectory() as folder:
        small = [str(path) for path in write(kind, 1000, Path(folder))]
        data_hash(gm.from_npz(small[0]) if kind == "npz" else gm.from_csv(small[0], small[1], "label"))
    first, read = timed(file_alone), timed(whole)
    hashed = timed(lambda: data_hash(read["result"]))
    return {
        "kind": kind,
        "edges": read["result"].edges_listed,
        "file_s": first["wall"],
        "graph_s": max(read["wall"] - first["wall"], 0.0),
        "read_s": read["wall"],
        "read_cpu_s": read["cpu"],
        "hash_s": hashed["wall"],
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def timed(program: Callable[[], Any]) -> dict[str, Any]:
    """Seconds of a call, those of the CPU, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = program()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "result": result}


def in_a_process(kind: str, edges: int) -> dict[str, Any]:
    """The row of one kind of file and number of edges."""
    with TemporaryDirectory() as folder:
        files = [str(path) for path in write(kind, edges, Path(folder))]
        done = subprocess.run(
            [sys.executable, __file__, "--one", kind, *files], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{kind} with {edges:,} edges: {done.stderr.strip().splitlines()[-1:]}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    """One kind of file and one number of edges after the other."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--edges", help="numbers of edges, separated by commas, such as 1e6,1e8")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--one", nargs="+", help="for processes that this script starts")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one[0], options.one[1:])))
        return
    sizes = [int(float(size)) for size in options.edges.split(",")] if options.edges else SIZES
    rows = []
    print("reading: file | edges | s: the file | checks and graph | together | of the CPU | hash | peak GiB")
    for edges in (2000,) if options.toy else sizes:
        for kind in options.kinds.split(","):
            if kind == "csv" and edges > MOST_OF_CSV:
                continue
            row = in_a_process(kind, edges)
            rows.append(row)
            # After each, should the next be killed.
            harness.save("reading", {"facts": FACTS, "rows": rows}, harness.folder(options))
            print(
                f"  {kind} | {row['edges']:,} | {row['file_s']:.1f} | {row['graph_s']:.1f} | {row['read_s']:.1f} |"
                f" {row['read_cpu_s']:.1f} | {row['hash_s']:.1f} | {row['peak_gib']:.1f}"
            )


if __name__ == "__main__":
    main()
