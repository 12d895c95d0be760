"""Listing and filtering a store of 100,000 finished runs by its index, against reading every record.

"listed" and "filtered" include the look at all folders of settings for changes; the command is a process of its own,
and the same command on an empty folder shows what of its time is the start of Python.

python benchmarks/list_runs.py          # 100,000 records are made in a temporary folder, which takes about a minute
python benchmarks/list_runs.py --toy    # seconds, for the tests; nothing is written
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import harness  # before torch: it sets how threads wait

# isort: split
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.runs.query import Record, find_records
from gumbel_mpnn.runs.query.filters import Filter
from gumbel_mpnn.runs.query.index import RunIndex

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
                (place / "record.json").write_text(json.dumps({**values, **figures}, indent=1))
        os.utime(folder, (1_700_000_000, 1_700_000_000))


def list_all(root: Path, *conditions: Filter) -> int:
    """Open the index, look whether the folders have changed, and list: the number of runs."""
    index = RunIndex(root)
    found = sum(row.n for row in index.settings(conditions))
    index.close()
    return found


def command(root: Path) -> None:
    """The whole command in a process of its own, with the start of Python."""
    subprocess.run([sys.executable, "-m", "gumbel_mpnn", "runs", "--runs", str(root)], check=True, capture_output=True)


def timed(program: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    program()
    return time.perf_counter() - start


def main() -> None:
    """Make the store, time all and print them."""
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    runs = 300 if options.toy else options.runs
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_store(root, runs)
        condition = [*Filter.named("dataset", "cora"), Filter.parse("test>=70"), Filter.parse("train.lr>0.0015")]
        times = {"every record read": [timed(lambda: sum(1 for _ in find_records(root)))]}
        times["listed, no index yet"] = [timed(lambda: list_all(root))]
        programs = {"listed": lambda: list_all(root), "filtered": lambda: list_all(root, *condition)}
        times |= harness.alternate(programs, rounds=options.rounds, warm_up=1)
        if not options.toy:
            commands = {"command, no runs": lambda: command(root / "none"), "command, all runs": lambda: command(root)}
            times |= harness.alternate(commands, rounds=3, warm_up=0)
        facts = {"runs": list_all(root), "settings": runs // (SPLITS * SEEDS)}
    harness.report("list_runs", times, "every record read", facts, harness.folder(options))


if __name__ == "__main__":
    main()
