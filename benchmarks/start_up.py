"""How long the command takes to start: its help against a bare program on typer, training against its imports.

Everything is a process of its own. "train, one epoch" is `gumbel-mpnn train cora` on one split, from the start of
Python to the end of the first epoch, evaluation and record included; it needs the files of cora (GUMBEL_MPNN_DATA).

python benchmarks/start_up.py          # about three minutes
python benchmarks/start_up.py --toy    # seconds, for the tests, on a graph of their own; nothing is written
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import harness

TYPER = """
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None)
@app.command()
def one(): "A command."
@app.command()
def two(): "Another."
app(["--help"])
"""
TRAIN = ("--splits", "0", "--set", "train.epochs=1", "--device", "cpu")


def python(*arguments: str) -> Callable[[], object]:
    """A call of Python with these arguments."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def toy_graph(folder: Path) -> tuple[str, ...]:
    """The options that name a small random graph."""
    rng = np.random.default_rng(0)
    path = folder / "graph.npz"
    np.savez(
        path,
        node_features=rng.random((100, 8), dtype=np.float32),
        node_labels=np.arange(100) % 4,
        edges=rng.integers(100, size=(300, 2)),
    )
    return ("--graph", str(path))


def main() -> None:
    """Time all in turn and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graph = toy_graph(Path(folder)) if options.toy else ("cora",)
        fresh = (str(Path(folder) / f"runs{number}") for number in itertools.count())
        programs = {
            "typer --help": python("-c", TYPER),
            "gumbel-mpnn --help": python("-m", "gumbel_mpnn", "--help"),
            "train, one epoch": lambda: python("-m", "gumbel_mpnn", "train", *graph, *TRAIN, "--runs", next(fresh))(),
        }
        if not options.toy:
            programs |= {name: python("-c", name) for name in ("import torch", "import torch_geometric")}
        rounds, warm_up = (1, 0) if options.toy else (options.rounds, 1)
        times = harness.alternate(programs, rounds=rounds, warm_up=warm_up)
    facts = {"graph": "a random graph" if options.toy else "cora"}
    harness.report("start_up", times, "typer --help", facts, write=not options.toy)


if __name__ == "__main__":
    main()
