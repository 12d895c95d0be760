"""Every command with a fault at each of its file operations; a program of its own, whose children are forked warm.

python command_faults.py FOLDER [--points N] [--only train,tune] [--faults kill,EIO,ENOSPC] [--seed S]

For each fault, the command starts from the same files, meets the fault, and is then repeated. The counts, and every
property that did not hold, are printed as JSON.
"""

import argparse
import io
import json
import os
import random
import re
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from file_faults import ENOSPC, FAULTS, KILL, NEVER, TOO_LARGE, FileFaults
from memory_faults import MEMORY, MemoryFaults

from gumbel_mpnn.cli import main as gumbel_mpnn
from gumbel_mpnn.data import DatasetSpec, File, specs
from gumbel_mpnn.data.npz import read_graph
from gumbel_mpnn.graph import undirected_keys
from gumbel_mpnn.training import trainer
from helpers import small_data

QUICK = ("--set", "train.epochs=2", "--set", "model.hidden_channels=4", "--device", "cpu")
SPACE = "[train]\nlr = [0.01, 0.02, 0.05]\nepochs = 2\n[model]\nhidden_channels = 4\n"
OWN = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")
OF_TIME = ("seconds", "checksum")
"""What differs between two records of the same run: the time that it took, and a checksum, which is over all of it."""
OF_MEMORY = 40
"""Allocations that fail in each command, of thousands."""
SIZES = [0, 4096, 8192, 100, 1000, 2000, 16384]
RUN = "RUN"
"""Stands for the folder of the setting that was trained before."""
SECONDS = 120
"""A command that takes longer hangs."""
UNFINISHED = ("group-", "checkpoint-", ".")
"""Beginnings of the names of files that a command has not finished."""
NOT_COMPARED = (".journal", ".lock")
"""Ends of the names of journals, whose bytes depend on times, and of locks, which a killed process leaves."""


@dataclass(frozen=True)
class Command:
    """A command, what must have been done before it, and the file that it writes, of which an older one is there."""

    name: str
    arguments: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    out: str | None = None


TRAIN = ("train", *OWN, "--model", "gumbel-mpnn", "--splits", "0,1", *QUICK)
COMMANDS = [
    Command("train", (*TRAIN, "--seeds", "2", "--predictions", "out/nodes.csv", "--force"), out="out/nodes.csv"),
    Command("tune", ("tune", "tiny", "--space", "space.toml", "--trials", "2", "--splits", "0", "--device", "cpu")),
    Command("rewire", ("rewire", RUN, "--out", "out/edges.csv", "--force"), (TRAIN,), "out/edges.csv"),
    Command("predict", ("predict", RUN, *OWN, "--out", "out/nodes.csv", "--force"), (TRAIN,), "out/nodes.csv"),
    Command("export", ("runs", "export", "out/runs.csv", "--force"), (TRAIN,), "out/runs.csv"),
]


def prepare(folder: Path) -> None:
    """The files of the user."""
    data = small_data(nodes=18, features=3, classes=2)
    rows = [
        f"n{k},{a:.3f},{b:.3f},{c:.3f},{'ab'[y]}" for k, ((a, b, c), y) in enumerate(zip(data.x, data.y, strict=True))
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,f,g,h,kind", *rows]) + "\n")
    ends = [f"n{a},n{b}" for a, b in data.edge_index.T.tolist()]
    (folder / "edges.csv").write_text("\n".join(["source,target", *ends]) + "\n")
    (folder / "space.toml").write_text(SPACE)
    masks = {f"{part}_masks": data[f"{part}_mask"].T.numpy() for part in ("train", "val", "test")}
    arrays = {"node_features": data.x.numpy(), "node_labels": data.y.numpy(), "edges": data.edge_index.T.numpy()}
    np.savez(folder / "tiny.npz", **arrays, **masks)
    (folder / "out").mkdir()


def add_tiny() -> None:
    """A data set called tiny, whose file is in the working folder."""
    data = small_data(nodes=18, features=3, classes=2)
    edges = len(undirected_keys(data.edge_index, 18))
    counts = {"num_nodes": 18, "num_edges": edges, "num_features": 3, "num_classes": 2}
    about = {"metric": "accuracy", "protocols": ("own",), "source": "this test", "licence": "none"}
    specs["tiny"] = DatasetSpec("tiny", **about, **counts, read=read_graph, files=(File("tiny.npz"),))


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int
    stderr: str
    operations: int
    writes: list[int]
    """Which of the operations write."""

    @property
    def hangs(self) -> bool:
        return self.code == -signal.SIGALRM


class Bench:
    """A working folder, which begins each time with the same files, and the children that run commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.work, self.start = self.folder / "work", self.folder / "start"
        os.environ.update(XDG_CACHE_HOME=str(self.work / "cache"), GUMBEL_MPNN_DATA=str(self.work))
        os.environ.update(SOURCE_DATE_EPOCH="0")
        os.environ.pop("GUMBEL_MPNN_RUNS", None)

    def set_out(self, command: Command) -> dict[str, object]:
        """Prepare a command and return what an undisturbed one leaves."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        prepare(self.work)
        for before in command.before:
            self._must_end_well(before)
        self._save()
        self.warm_up(command.arguments)
        self.begin()
        self._must_end_well(command.arguments)
        done = self.state()
        if command.out is not None:  # now begin with an older version of the file
            older = (self.work / command.out).read_bytes().splitlines(keepends=True)[:-1]
            self.begin()
            (self.work / command.out).write_bytes(b"".join(older))
            self._save()
        return done

    def warm_up(self, arguments: tuple[str, ...]) -> None:
        """Run the command in this process, so that its children need not import and compile anything."""
        here = Path.cwd()
        os.chdir(self.work)
        sys.argv = self._words(arguments)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit):
            gumbel_mpnn()
        os.chdir(here)
        if len(list(Path("/proc/self/task").iterdir())) > 1:
            sys.exit("a process with threads cannot be forked")

    def _words(self, arguments: tuple[str, ...]) -> list[str]:
        trained = map(str, self.work.glob("runs/train/nodes/*/*"))
        words = [next(trained) if word == RUN else word for word in arguments]
        return ["gumbel-mpnn", *words]

    def _must_end_well(self, arguments: tuple[str, ...]) -> None:
        ended = self.run(arguments)
        if ended.code != 0:
            sys.exit(f"{' '.join(arguments)} ended with {ended.code} without a fault: {ended.stderr}")

    def _save(self) -> None:
        shutil.rmtree(self.start, ignore_errors=True)
        shutil.copytree(self.work, self.start)

    def begin(self) -> None:
        """Restore the files."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.start, self.work)

    def run(self, arguments: tuple[str, ...], kind: str = KILL, at: int = NEVER) -> Ended:
        """Run a command in a child."""
        told, tell = os.pipe()
        counted, count = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(SECONDS)
                os.chdir(self.work)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(tell, 2)
                sys.argv = self._words(arguments)
                faults = (MemoryFaults(at) if kind == MEMORY else FileFaults(self.work, kind, at)).arm()
                try:
                    gumbel_mpnn()
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else int(end.code is not None)
                os.write(count, json.dumps([faults.count, faults.writes]).encode())
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
        os.close(tell)
        os.close(count)
        with os.fdopen(told, errors="replace") as text, os.fdopen(counted) as number:
            stderr, (operations, writes) = text.read(), json.loads(number.read() or "[0, []]")
        return Ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stderr, operations, writes)

    def state(self, folder: Path | None = None) -> dict[str, object]:
        """Every file, by path, but caches and what a kill left beside a file; records without the time they took."""
        root, files = folder or self.work, {}
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            is_left_over = path.suffix in NOT_COMPARED or re.fullmatch(r"\..+\.\d+-[0-9a-f]{8}", path.name)
            if path.is_file() and not is_left_over and not name.startswith("cache/"):
                files[name] = self._content(path)
        return files

    def _content(self, path: Path) -> object:
        content = path.read_bytes()
        if path.name != "record.json":
            return content
        try:
            return {name: value for name, value in json.loads(content).items() if name not in OF_TIME}
        except ValueError:
            return content

    def leftovers(self) -> list[str]:
        """Files that are not finished, anywhere."""
        names = (str(path.relative_to(self.work)) for path in self.work.rglob("*") if path.is_file())
        return [name for name in names if Path(name).name.startswith(UNFINISHED)]


@dataclass
class Trial:
    """One command and one fault, and what was wrong."""

    bench: Bench
    command: Command
    done: dict[str, object]
    kind: str
    at: int

    def problems(self) -> list[str]:
        """Meet the fault, look at the files, and repeat the command."""
        self.bench.begin()
        before = self.bench.state()
        ended = self.bench.run(self.command.arguments, self.kind, self.at)
        found = self._of_the_end(ended)
        # A record that cannot be read is left out with a warning.
        warned = {self.command.out} if "record.json" in ended.stderr and "warning: " in ended.stderr else set()
        found += [
            f"{name} is half written"
            for name, content in self.bench.state().items()
            if not Path(name).name.startswith(UNFINISHED)
            and name not in warned
            and content not in (before.get(name), self.done.get(name))
        ]
        found += [f"{name} is lost" for name in before if name not in self.bench.state() and name in self.done]
        again = self.bench.run(self.command.arguments)
        if again.code != 0:
            found.append(f"repeated, it ended with {again.code}: {again.stderr[-300:]}")
        return found + self._of_the_repetition()

    def _of_the_end(self, ended: Ended) -> list[str]:
        if self.kind == KILL:
            return [] if ended.code in (-signal.SIGKILL, 0) else [f"it ended with {ended.code}: {ended.stderr[-300:]}"]
        found = []
        if ended.hangs:
            found.append("it hangs")
        if "Traceback" in ended.stderr:
            found.append(f"a traceback: {' '.join(ended.stderr.splitlines()[-1:])}")
        errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        if ended.code not in (0, 2) or len(errors) != (ended.code == 2):
            found.append(f"it ended with {ended.code} and {len(errors)} sentences: {ended.stderr[-300:]}")
        return found

    def _of_the_repetition(self) -> list[str]:
        found, state = [], self.bench.state()
        for name in sorted(state.keys() | self.done.keys()):
            if name not in state:
                found.append(f"repeated, {name} is missing")
            elif name not in self.done:
                found.append(f"repeated, {name} is there too")
            elif state[name] != self.done[name]:
                found.append(f"repeated, {name} has another content")
        return found


def points(kind: str, whole: Ended, wanted: int | None, rng: random.Random) -> list[int]:
    """All operations, or some of them, the last one among them; for a full disk those that write, for EFBIG sizes."""
    if kind == TOO_LARGE:
        return SIZES[:wanted]
    every = whole.writes if kind == ENOSPC else list(range(1, whole.operations + 1))
    if kind == MEMORY and wanted is None:
        wanted = OF_MEMORY
    if wanted is None or wanted >= len(every):
        return every
    return sorted({every[-1], *rng.sample(every[:-1], wanted - 1)})


def main() -> None:
    """All commands, all faults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int)
    parser.add_argument("--only", default=",".join(command.name for command in COMMANDS))
    parser.add_argument("--faults", default=",".join((*FAULTS, MEMORY)))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    add_tiny()
    trainer.CHECKPOINT_SECONDS, trainer.CHECKPOINT_SHARE = 0, float("inf")  # a checkpoint after every epoch
    bench = Bench(options.folder)
    report: dict[str, object] = {"commands": {}, "problems": []}
    for command in COMMANDS:
        if command.name not in options.only.split(","):
            continue
        done = bench.set_out(command)
        tried: Counter[str] = Counter()
        wholes: dict[str, Ended] = {}
        started = time.monotonic()
        for kind in options.faults.split(","):
            counted = MEMORY if kind == MEMORY else KILL
            if counted not in wholes:
                bench.begin()
                wholes[counted] = bench.run(command.arguments, counted)
            whole = wholes[counted]
            count = whole.operations
            tried["tensor operations" if kind == MEMORY else "operations"] = count
            for at in points(kind, whole, options.points, rng):
                tried[kind] += 1
                for problem in Trial(bench, command, done, kind, at).problems():
                    report["problems"].append(f"{command.name}, {kind} at operation {at} of {count}: {problem}")
        seconds = round(time.monotonic() - started, 1)
        report["commands"][command.name] = {**tried, "seconds": seconds}
        print(command.name, report["commands"][command.name], file=sys.stderr, flush=True)  # noqa: T201
    print(json.dumps(report, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
