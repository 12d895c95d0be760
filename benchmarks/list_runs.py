"""Listing a store of 100,000 finished runs: `gm.runs(folder)` by run and by setting, and the command.

Every call reads all records. The command is a process of its own; on an empty folder it shows what of its time is the
start of Python.

python benchmarks/list_runs.py          # 100,000 records are made in a temporary folder, which takes some minutes
python benchmarks/list_runs.py --toy    # seconds, for the tests; nothing is written
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import harness  # before torch: it sets how threads wait

# isort: split
import gumbel_mpnn as gm
from gumbel_mpnn.runs.records import Record
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.util.files import json_with_checksum

SPLITS, SEEDS = 10, 3
DATASETS = ("cora", "citeseer", "pubmed", "squirrel", "chameleon", "actor", "minesweeper", "tolokers")
MODELS = ("mlp", "gcn", "sage", "gat")


def make_store(root: Path, runs: int) -> None:
    """Records of made-up figures, 30 for each setting, as `fit` lays them out; the models are left out."""
    blank = Record("", "0" * 64, {}, 0, 0, "accuracy", 0.0, 0.0, 1, 500, 1.0, {"device": "cpu"})
    for setting in range(runs // (SPLITS * SEEDS)):
        dataset, model = DATASETS[setting % len(DATASETS)], MODELS[setting // len(DATASETS) % len(MODELS)]
        settings = RunSpec.of(dataset, model, overrides=[f"train.lr={0.001 + setting * 1e-6}"]).settings
        fingerprint = settings.fingerprint("")
        folder = root / "benchmark" / dataset / model / fingerprint
        values = {**blank.to_dict(), "fingerprint": fingerprint, "settings": settings.to_dict()}
        for split in range(SPLITS):
            for seed in range(SEEDS):
                place = folder / f"split{split}-seed{seed}"
                place.mkdir(parents=True)
                test = 0.5 + 0.4 * ((setting * 7 + split * 3 + seed) % 101) / 101
                figures = {"split": split, "seed": seed, "val": test, "test": test}
                (place / "record.json").write_bytes(json_with_checksum({**values, **figures}))


def command(root: Path) -> None:
    """The whole command in a process of its own, with the start of Python."""
    subprocess.run([sys.executable, "-m", "gumbel_mpnn", "runs", "--runs", str(root)], check=True, capture_output=True)


def main() -> None:
    """Make the store, time all and print them."""
    parser = harness.arguments(__doc__, rounds=3)
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    runs = 300 if options.toy else options.runs
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_store(root, runs)
        programs = {"by run": lambda: gm.runs(root), "by setting": lambda: gm.runs(root, "setting")}
        times = harness.alternate(programs, rounds=options.rounds, warm_up=0)
        if not options.toy:
            commands = {"command, no runs": lambda: command(root / "none"), "command, all runs": lambda: command(root)}
            times |= harness.alternate(commands, rounds=options.rounds, warm_up=0)
        facts = {"runs": len(gm.runs(root)), "settings": len(gm.runs(root, "setting"))}
    harness.report("list_runs", times, "by run", facts, harness.folder(options))


if __name__ == "__main__":
    main()
