"""How long the command takes to start: its help, a list of no runs, and from nothing to the end of one epoch on Cora.

Every sample is a process of its own, from its start to its end, with the files in the system's cache. Beside them stand
a command that does nothing, written with typer, and the imports of torch and PyG alone, which training needs. The
command puts off what PyG imports and training does not use, so that it needs less than the second import.

python benchmarks/start_up.py          # Cora where its files are, else a generated graph of its size
python benchmarks/start_up.py --toy    # seconds, for the tests; nothing is written
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import harness

BARE, HELP = "typer, --help", "gumbel-mpnn --help"
FIRST, TRAIN = "gumbel-mpnn train, to the end of its first step", "gumbel-mpnn train, one epoch"
EMPTY_COMMAND = "import typer; app = typer.Typer(rich_markup_mode=None); app.command()(lambda: None); app()"
IMPORTS = "import torch, torch_geometric.data, torch_geometric.transforms, torch_geometric.utils"
COMMAND = ("-m", "gumbel_mpnn")
TO_FIRST_STEP = """
import os
from gumbel_mpnn.cli import app, set_up
set_up()
from gumbel_mpnn.training.trainer import Trainer
step = Trainer.step
Trainer.step = lambda self: (step(self), os._exit(0))
app()
"""
"""The command, which ends as soon as the first step of training is done."""


def python(*arguments: str) -> None:
    """A process of its own, which must end well."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed: {done.stderr}")


def write_graph(path: Path, nodes: int, edges: int, features: int, classes: int) -> None:
    """A random graph as an npz of our own layout, for machines without Cora's files."""
    import numpy as np

    draw = np.random.default_rng(0)
    x = (draw.random((nodes, features)) < 18 / features).astype(np.float32)
    labels = np.arange(nodes) % classes
    np.savez(path, edges=draw.integers(nodes, size=(edges, 2)), node_labels=labels, node_features=x)


def graph_arguments(folder: Path, toy: bool) -> tuple[str, tuple[str, ...]]:
    """What is trained on, and how to say it to the command."""
    cora = (*COMMAND, "data", "cora")
    if not toy and subprocess.run([sys.executable, *cora], capture_output=True).returncode == 0:
        return "cora", ("cora", "--splits", "0")
    write_graph(folder / "graph.npz", *((40, 80, 18, 2) if toy else (2708, 5278, 1433, 7)))
    return "generated", ("--graph", str(folder / "graph.npz"))


def main() -> None:
    """Time all and print the ratios."""
    options = harness.arguments(__doc__, rounds=7).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph, arguments = graph_arguments(folder, options.toy)

        def train(*command: str) -> None:
            shutil.rmtree(folder / "runs", ignore_errors=True)  # else the run is found finished
            python(*command, "train", *arguments, "--set", "train.epochs=1", "--runs", str(folder / "runs"))

        programs: dict[str, Callable[[], None]] = {
            BARE: lambda: python("-c", EMPTY_COMMAND, "--help"),
            HELP: lambda: python(*COMMAND, "--help"),
        }
        if not options.toy:
            programs["import torch"] = lambda: python("-c", "import torch")
            programs["import torch and PyG"] = lambda: python("-c", IMPORTS)
            programs["gumbel-mpnn runs, none there"] = lambda: python(*COMMAND, "runs", "--runs", str(folder / "none"))
        programs[FIRST] = lambda: train("-c", TO_FIRST_STEP)
        programs[TRAIN] = lambda: train(*COMMAND)
        rounds, warm_up = (1, 0) if options.toy else (options.rounds, 1)
        times = harness.alternate(programs, rounds=rounds, warm_up=warm_up)
    harness.report("start_up", times, BARE, {"graph": graph}, harness.folder(options))


if __name__ == "__main__":
    main()
