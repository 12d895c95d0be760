"""Four commands on one store, each killed at a random file operation and started again until all runs are there.

python four_writers.py FOLDER KILLS [SEED]

Rounds on fresh stores are repeated until there were that many kills. The counts, and every property that did not hold,
are printed as JSON.
"""

import json
import os
import random
import shutil
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from command_faults import OWN, QUICK, Bench, prepare
from file_faults import KILL, FileFaults

from gumbel_mpnn.cli import main as gumbel_mpnn
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.training import trainer

WRITERS, SETTINGS, RUNS = 4, 6, 4
OPERATIONS = 160
"""A writer is killed at one of so many operations; a setting takes about as many."""
write = SettingFolder.write


def arguments(setting: int) -> list[str]:
    """Train one of the settings."""
    where = ["--splits", "0,1", "--seeds", str(RUNS // 2), "--set", f"train.lr=0.0{setting + 1}"]
    return ["gumbel-mpnn", "train", *OWN, "--model", "gcn", *QUICK, *where]


def noted_write(folder: SettingFolder, outcome, *rest) -> None:
    """Write a run and then, in one piece, a line that says which."""
    write(folder, outcome, *rest)
    with Path("../written").open("ab", buffering=0) as file:
        file.write(f"{folder.path.name}/{outcome.replica}\n".encode())


class Writers:
    """The processes on one store."""

    def __init__(self, bench: Bench, rng: random.Random) -> None:
        self.bench, self.rng = bench, rng
        self.kills, self.problems = 0, list[str]()

    def start(self, at: int | None) -> int:
        """A writer that trains all settings, those that come first in another order than other writers."""
        order = self.rng.sample(range(SETTINGS), SETTINGS)
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            os.chdir(self.bench.work)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            SettingFolder.write = noted_write
            if at is not None:
                FileFaults(self.bench.work, KILL, at).arm()
            for setting in order:
                sys.argv = arguments(setting)
                try:
                    gumbel_mpnn()
                except SystemExit as end:
                    if end.code:
                        os._exit(2)
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)

    def round(self, kills: int) -> None:
        """Fill a store; after so many kills, the writers are left alone."""
        running = {self.start(self.rng.randint(1, OPERATIONS)) for _ in range(WRITERS)}
        while running:
            child, status = os.wait()
            running.remove(child)
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGKILL:
                self.kills += 1
                running.add(self.start(self.rng.randint(1, OPERATIONS) if self.kills < kills else None))
            elif code != 0:
                self.problems.append(f"a writer ended with {code}")


def main() -> None:
    """Rounds until there were enough kills."""
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    trainer.CHECKPOINT_SECONDS, trainer.CHECKPOINT_SHARE = 0, float("inf")
    bench = Bench(folder)
    writers = Writers(bench, random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0))
    whole, rounds = None, 0
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    while whole is None or writers.kills < kills:
        shutil.rmtree(bench.work, ignore_errors=True)
        with suppress(FileNotFoundError):
            (folder / "written").unlink()
        bench.work.mkdir(parents=True)
        prepare(bench.work)
        if whole is None:
            for setting in range(SETTINGS):
                bench.warm_up(tuple(arguments(setting)[1:]))
            whole = bench.state()
            continue
        writers.round(kills)
        rounds += 1
        state, written = bench.state(), (folder / "written").read_text().split()
        for name in sorted(state.keys() | whole.keys()):
            if state.get(name) != whole.get(name):
                writers.problems.append(f"round {rounds}: {name} differs from that of a single writer")
        if len(set(written)) != len(written):
            writers.problems.append(f"round {rounds}: a run was done twice")
    report = {"kills": writers.kills, "rounds": rounds, "runs": rounds * SETTINGS * RUNS, "problems": writers.problems}
    print(json.dumps(report))  # noqa: T201


if __name__ == "__main__":
    main()
