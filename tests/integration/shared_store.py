"""Four workers on one store, killed at random moments; run as a program of its own, which forks them.

python shared_store.py FOLDER SEED    # FOLDER/whole: one worker, undisturbed; FOLDER/shared: four, killed
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from gumbel_mpnn.runs.store import SettingFolder
from helpers import small_data
from quick_fit import fit

WORKERS, KILLS = 4, 20
RATES = [0.001 * (k + 1) for k in range(20)]
SPLITS, SEEDS = 2, 5
RUNS = len(RATES) * SPLITS * SEEDS
BYTES = 60_000
"""Memory that lets about four of the ten replicas of a setting train at once."""
write = SettingFolder.write


def note_write(folder: SettingFolder, outcome, *rest) -> None:
    """Write a run and then, in one piece, a line that says which."""
    write(folder, outcome, *rest)
    with (folder.path.parents[4] / "written").open("ab", buffering=0) as file:
        file.write(f"{folder.path.name}/{outcome.replica}\n".encode())


def work(runs: Path) -> None:
    """Every setting, in an order of its own."""
    SettingFolder.write = note_write
    data = small_data()
    for rate in random.Random(os.getpid()).sample(RATES, len(RATES)):
        tables = {"model": {"hidden_channels": 4, "dropout": 0.3}, "train": {"lr": rate, "epochs": 3}}
        fit(data, "gcn", seeds=SEEDS, settings=tables, runs=runs, device="cpu", memory=BYTES)


def start(runs: Path) -> int:
    """A worker in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            work(runs)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return child


def finish(workers: set[int]) -> None:
    """Wait until all workers have ended well."""
    for worker in workers:
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        if status != 0:
            sys.exit(f"a worker ended with {status}")


def disturb(runs: Path, workers: set[int], rng: random.Random) -> None:
    """Kill a worker and start another, again and again, some time after a given number of records is there."""
    for count in sorted(rng.randrange(RUNS - 20) for _ in range(KILLS)):
        while sum(1 for _ in runs.glob("*/*/*/*/*/record.json")) < count:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        victim = rng.choice(sorted(workers))
        os.kill(victim, signal.SIGKILL)
        if os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]) != -signal.SIGKILL:
            sys.exit("a worker had ended before it was killed")
        workers.remove(victim)
        workers.add(start(runs))


def main() -> None:
    """Both stores."""
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    finish({start(folder / "whole" / "runs")})
    workers = {start(folder / "shared" / "runs") for _ in range(WORKERS)}
    disturb(folder / "shared" / "runs", workers, random.Random(seed))
    finish(workers)


if __name__ == "__main__":
    main()
